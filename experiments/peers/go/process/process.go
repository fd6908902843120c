// Package process is what every server here owes to whoever starts it: the options --host, --port and --grace-s, the
// line "ready HOST:PORT", and an orderly end.
//
// SIGTERM or SIGINT: no more connections, what was accepted is finished within --grace-s, exit 0, or 1 where that was
// too short. A second signal ends the process at once with exit 1. A bad option, or a port that is taken: one line on
// standard error, exit 2.
package process

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

const (
	failedExit = 1
	usageExit  = 2
	graceMaxS  = 3600
)

// Options are the ones that every server has.
type Options struct {
	host   string
	port   int
	graceS float64
	Set    *flag.FlagSet // to which a server adds its own
}

// Server is what a process serves with.
type Server interface {
	// Serve answers until Stop. Blocks.
	Serve(listener *net.TCPListener) error
	// Stop takes no more connections, and waits until what was accepted is finished or the context ends. Says whether
	// it was finished.
	Stop(within context.Context) bool
}

// NewOptions has the options of every server, with a default port.
func NewOptions(program string, port int) *Options {
	o := &Options{Set: flag.NewFlagSet(program, flag.ContinueOnError)}
	o.Set.SetOutput(io.Discard)
	o.Set.StringVar(&o.host, "host", "127.0.0.1", "loopback address to listen on")
	o.Set.IntVar(&o.port, "port", port, "port to listen on, 0 for a free one")
	o.Set.Float64Var(&o.graceS, "grace-s", 5, "time to finish what was accepted, when stopping")
	return o
}

// Parse reads the command line. Ends the process where it is wrong, and after --help.
func (o *Options) Parse(arguments []string) {
	if err := o.Set.Parse(arguments); err == flag.ErrHelp {
		o.Set.SetOutput(os.Stdout)
		o.Set.PrintDefaults()
		os.Exit(0)
	} else if err != nil {
		o.Refuse("%v", err)
	}
	if o.Set.NArg() > 0 {
		o.Refuse("got %q, allowed: options alone", o.Set.Arg(0))
	}
	if address, err := netip.ParseAddr(o.host); err != nil || !address.IsLoopback() || !address.Is4() {
		o.Refuse("--host: got %q, allowed: a loopback address of IPv4, such as 127.0.0.1", o.host)
	}
	o.CheckRange("port", o.port, 0, 65535)
	if !(o.graceS >= 0 && o.graceS <= graceMaxS) {
		o.Refuse("--grace-s: got %v, allowed: 0 to %d", o.graceS, graceMaxS)
	}
}

// CheckRange refuses a number that is out of range.
func (o *Options) CheckRange(name string, got, least, most int) {
	if got < least || got > most {
		o.Refuse("--%s: got %d, allowed: %d to %d", name, got, least, most)
	}
}

// Refuse ends the process with one line that says what is wrong.
func (o *Options) Refuse(said string, values ...any) {
	fmt.Fprintf(os.Stderr, o.Set.Name()+": "+said+"\n", values...)
	os.Exit(usageExit)
}

// Run serves until a signal comes, and gives the process's exit code. Blocks.
func Run(o *Options, server Server) int {
	log.SetPrefix(o.Set.Name() + ": ")
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	listener, err := net.Listen("tcp4", net.JoinHostPort(o.host, strconv.Itoa(o.port)))
	if err != nil {
		o.Refuse("--port: %v; allowed: a port that is not taken, or 0 for a free one", err)
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener.(*net.TCPListener)) }()
	fmt.Printf("ready %s\n", listener.Addr())
	select {
	case <-signals:
	case err := <-failed:
		log.Printf("the server failed: %v", err)
		return failedExit
	}
	go func() {
		<-signals
		os.Exit(failedExit)
	}()
	within, cancel := context.WithTimeout(context.Background(), time.Duration(o.graceS*float64(time.Second)))
	defer cancel()
	if !server.Stop(within) {
		log.Printf("--grace-s %v was too short: what had not ended was given up", o.graceS)
		return failedExit
	}
	return 0
}
