// A load client for any unary gRPC method, on grpc-go: its calls look like those of real clients, whose deadline, trace
// and token differ from call to call.
//
//	grpc_load -address HOST:PORT [-call /package.Service/Method] [-data-hex HEX] [-connections C] [-in-flight K]
//	          [-rate R [-arrivals constant|poisson] [-seed N]] [-warm-up D] [-duration D] [-deadline D] [-traceparent]
//	          [-token TOKEN] [-metadata-bytes N [-metadata-new]] [-times FILE]
//
// Without -rate it is a closed loop: each of C connections has K calls at a time. With -rate it is an open loop: calls
// are due on a schedule, whatever became of earlier ones, and a response time begins when the call was due. A call that
// is due while all C × K are in flight is never sent, and counted.
//
// It prints one line of JSON (see report.go). SIGINT and SIGTERM end the load: what was measured until then is printed.
// Exit codes: 0; 1 no connection, or a file that cannot be written; 2 a wrong option; 130 a signal.
package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
	"time"
)

const (
	failedExit      = 1
	usageExit       = 2
	interruptedExit = 130

	connectionsMax = 1024
	callsMax       = 1 << 16 // in flight, of all connections
	openInFlight   = 256     // of each connection, in an open loop, unless said
	lastsMax       = 10 * time.Minute
	metadataLeast  = 100
	metadataMost   = 15 << 10
)

type options struct {
	address       string
	method        string
	payload       []byte
	connections   int
	inFlight      int
	rate          float64
	poisson       bool
	seed          uint64
	warmUp        time.Duration
	duration      time.Duration
	deadline      time.Duration
	traceparent   bool
	token         string
	metadataBytes int
	metadataNew   bool
	times         string
}

var (
	methodPattern = regexp.MustCompile(`^/[\w.]+/\w+$`)
	tokenPattern  = regexp.MustCompile(`^[!-~]*$`)
)

func main() {
	given, err := parse(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	exitIf(err, usageExit)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if given.rate > 0 {
		// The pacing goroutine sleeps in the kernel, where a thread that it does not share is needed besides.
		runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	}
	l, err := newLoad(given)
	exitIf(err, failedExit)
	interrupted := l.run(signals)
	l.close()
	exitIf(json.NewEncoder(os.Stdout).Encode(l.report()), failedExit)
	exitIf(l.writeTimes(), failedExit)
	if interrupted {
		os.Exit(interruptedExit)
	}
}

// parse reads the command line; an error is one line that says what is allowed. -help prints the options.
func parse(arguments []string, help io.Writer) (options, error) {
	var given options
	var data, arrivals string
	set := flag.NewFlagSet("grpc_load", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&given.address, "address", "", "HOST:PORT of the server")
	set.StringVar(&given.method, "call", "/stock_service.v1.StockService/Lookup", "a unary method")
	set.StringVar(&data, "data-hex", "0a0947616d655374617274", "the request message as bytes, in hexadecimal")
	set.IntVar(&given.connections, "connections", 1, "connections, each of HTTP/2")
	set.IntVar(&given.inFlight, "in-flight", 0, "calls at a time on each connection; 0: 1, or 256 with -rate")
	set.Float64Var(&given.rate, "rate", 0, "calls due a second, on all connections; 0: a closed loop")
	set.StringVar(&arrivals, "arrivals", "constant", "constant or poisson: the gaps between calls of an open loop")
	set.Uint64Var(&given.seed, "seed", 1, "of gaps, traces and metadata")
	set.DurationVar(&given.warmUp, "warm-up", 500*time.Millisecond, "not measured")
	set.DurationVar(&given.duration, "duration", 2*time.Second, "measured")
	set.DurationVar(&given.deadline, "deadline", 0, "of each call, from its send; 0: none")
	set.BoolVar(&given.traceparent, "traceparent", false, "a new W3C trace context in each call")
	set.StringVar(&given.token, "token", "", "sent in each call, as authorization: Bearer TOKEN")
	set.IntVar(&given.metadataBytes, "metadata-bytes", 0, "names and values of further metadata; 0: none")
	set.BoolVar(&given.metadataNew, "metadata-new", false, "16 bytes of the metadata are new in each call")
	set.StringVar(&given.times, "times", "", "a file for all response times: ns, 8 bytes each, little-endian")
	if err := set.Parse(arguments); errors.Is(err, flag.ErrHelp) {
		set.SetOutput(help)
		set.PrintDefaults()
		return given, err
	} else if err != nil {
		return given, err
	}
	given.poisson = arrivals == "poisson"
	if given.inFlight == 0 {
		given.inFlight = 1
		if given.rate > 0 {
			given.inFlight = openInFlight
		}
	}
	var wrongHex, wrongAddress error
	given.payload, wrongHex = hex.DecodeString(data)
	_, _, wrongAddress = net.SplitHostPort(given.address)
	calls := given.connections * given.inFlight
	for _, each := range []struct {
		isGood  bool
		allowed string
	}{
		{set.NArg() == 0, "options alone"},
		{wrongAddress == nil, "-address HOST:PORT, which is needed"},
		{methodPattern.MatchString(given.method), "-call /package.Service/Method"},
		{wrongHex == nil, "-data-hex of two hexadecimal digits a byte"},
		{given.connections >= 1 && given.connections <= connectionsMax, "-connections of 1 to 1024"},
		{given.inFlight >= 1 && given.inFlight <= callsMax && calls <= callsMax,
			"-in-flight of 1 or more, 65536 on all connections"},
		{given.rate == 0 || given.rate >= 0.1 && given.rate <= 1e6, "-rate of 0, or 0.1 to 1000000"},
		{given.poisson || arrivals == "constant", "-arrivals constant or poisson"},
		{given.warmUp >= 0 && given.warmUp <= lastsMax, "-warm-up of 0s to 10m"},
		{given.duration >= time.Millisecond && given.duration <= lastsMax, "-duration of 1ms to 10m"},
		{given.deadline >= 0, "-deadline of 0s or more"},
		{tokenPattern.MatchString(given.token), "-token of visible ASCII characters"},
		{given.metadataBytes == 0 || given.metadataBytes >= metadataLeast && given.metadataBytes <= metadataMost,
			"-metadata-bytes of 0, or 100 to 15360"},
		{given.metadataBytes > 0 || !given.metadataNew, "-metadata-new with -metadata-bytes"},
	} {
		if !each.isGood {
			return given, errors.New("allowed: " + each.allowed)
		}
	}
	return given, nil
}

func exitIf(err error, code int) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "grpc_load:", err)
		os.Exit(code)
	}
}
