// A load client for the sockets protocol, in Go: what someone else would write, to compare the project's own with.
//
//	socketload -address HOST:PORT -method /package.Service/Method -payload HEX [-rate N]
//
// One goroutine for each connection sends a request, waits for its reply and checks it. Without -rate each sends the
// next at once, a closed loop; with it they take turns: one pacing goroutine says when a request is due, at a constant
// rate, and whichever connection is free sends it, as in ghz. Times are from just before the write to just after the
// reply was read, whatever was due when: service times.
//
// It prints one line of JSON: requests in the measured window, errors, throughput in 1/s, and times in µs. It ends
// with exit code 1 where a connection fails; there are no retries.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	requestHead = 4 + 4 + 4 + 1 // length, call, timeout in ms, length of the method
	replyHead   = 4 + 4 + 1     // length, call, code
	replyMax    = 1 << 20
)

type options struct {
	address     string
	method      string
	payload     []byte
	connections int
	timeout     time.Duration
	rate        float64
	warmUp      time.Duration
	duration    time.Duration
}

// connection is one of them, and what it saw in the measured window.
type connection struct {
	socket net.Conn
	reader *bufio.Reader
	frame  []byte
	call   uint32
	body   []byte
	times  []time.Duration
	errors int
	failed error
}

type report struct {
	Requests     int     `json:"requests"`
	Errors       int     `json:"errors"`
	ThroughputHz float64 `json:"throughput_hz"`
	MeanUs       float64 `json:"mean_us"`
	P50Us        float64 `json:"p50_us"`
	P99Us        float64 `json:"p99_us"`
	P999Us       float64 `json:"p999_us"`
	MaxUs        float64 `json:"max_us"`
}

func main() {
	log.SetFlags(0)
	given, err := parse()
	check(err)
	connections := make([]*connection, given.connections)
	for place := range connections {
		connections[place], err = connect(given)
		check(err)
	}
	start := time.Now()
	from, until := start.Add(given.warmUp), start.Add(given.warmUp+given.duration)
	var due chan struct{}
	if given.rate > 0 {
		// The pacing goroutine sleeps in the kernel, where a thread that it does not share is needed besides.
		runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
		due = make(chan struct{}, given.connections)
		go pace(due, start, until, given.rate)
	}
	var running sync.WaitGroup
	for _, each := range connections {
		running.Add(1)
		go func() {
			defer running.Done()
			each.failed = each.drive(due, from, until)
			each.socket.Close()
		}()
	}
	running.Wait()
	for _, each := range connections {
		check(each.failed)
	}
	check(json.NewEncoder(os.Stdout).Encode(summary(connections, given.duration)))
}

func parse() (options, error) {
	var given options
	var payload string
	flag.StringVar(&given.address, "address", "", "HOST:PORT of the server")
	flag.StringVar(&given.method, "method", "", "full name of the method")
	flag.StringVar(&payload, "payload", "", "the request message, in hexadecimal")
	flag.IntVar(&given.connections, "connections", 1, "connections")
	flag.Float64Var(&given.rate, "rate", 0, "requests a second, of all connections; 0: a closed loop")
	flag.DurationVar(&given.timeout, "timeout", 0, "told to the server with every request; 0: none")
	flag.DurationVar(&given.warmUp, "warm-up", 500*time.Millisecond, "not measured")
	flag.DurationVar(&given.duration, "duration", 2*time.Second, "measured")
	flag.Parse()
	if given.timeout < 0 || given.timeout.Milliseconds() > math.MaxUint32 {
		return given, errors.New("needed: -timeout of 0 to 2^32-1 ms")
	}
	if given.address == "" || len(given.method) == 0 || len(given.method) > 255 || given.connections < 1 {
		return given, errors.New("needed: -address, -method of 1 to 255 bytes, -connections of 1 or more")
	}
	var err error
	given.payload, err = hex.DecodeString(payload)
	return given, err
}

func connect(given options) (*connection, error) {
	socket, err := net.Dial("tcp", given.address) // Go sets TCP_NODELAY
	if err != nil {
		return nil, err
	}
	frame := make([]byte, 0, requestHead+len(given.method)+len(given.payload))
	frame = binary.BigEndian.AppendUint32(frame, uint32(cap(frame)-4))
	frame = binary.BigEndian.AppendUint32(frame, 0) // the call, put in for each request
	frame = binary.BigEndian.AppendUint32(frame, uint32(given.timeout.Milliseconds()))
	frame = append(frame, byte(len(given.method)))
	frame = append(frame, given.method...)
	frame = append(frame, given.payload...)
	reader := bufio.NewReaderSize(socket, 4096)
	return &connection{socket: socket, reader: reader, frame: frame, body: make([]byte, 0, 256)}, nil
}

// drive sends until the window ends: when the channel says so, or at once where there is none.
func (c *connection) drive(due <-chan struct{}, from, until time.Time) error {
	for {
		if due != nil {
			if _, goesOn := <-due; !goesOn {
				return nil
			}
		}
		sent := time.Now()
		if due == nil && !sent.Before(until) {
			return nil
		}
		valid, err := c.exchange()
		if err != nil {
			return err
		}
		took := time.Since(sent)
		switch {
		case sent.Before(from) || !sent.Before(until):
		case valid:
			c.times = append(c.times, took)
		default:
			c.errors++
		}
	}
}

// exchange sends one request and reads its reply; it says whether that was an answer.
func (c *connection) exchange() (bool, error) {
	c.call = c.call%(1<<32-1) + 1
	binary.BigEndian.PutUint32(c.frame[4:], c.call)
	if _, err := c.socket.Write(c.frame); err != nil {
		return false, err
	}
	var head [replyHead]byte
	if _, err := io.ReadFull(c.reader, head[:]); err != nil {
		return false, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length < replyHead-4 || length > replyMax {
		return false, fmt.Errorf("a reply of %d bytes", length)
	}
	if call := binary.BigEndian.Uint32(head[4:]); call != c.call {
		return false, fmt.Errorf("a reply to call %d, where %d was asked", call, c.call)
	}
	c.body = slices.Grow(c.body[:0], int(length-(replyHead-4)))[:length-(replyHead-4)]
	if _, err := io.ReadFull(c.reader, c.body); err != nil {
		return false, err
	}
	return head[8] == 0 && len(c.body) > 0, nil
}

// pace says when a request is due, until the window ends. What no connection is free for waits in the channel.
func pace(due chan<- struct{}, start, until time.Time, rate float64) {
	runtime.LockOSThread()
	gap := float64(time.Second) / rate
	for number := 0; ; number++ {
		at := start.Add(time.Duration(float64(number) * gap))
		if !at.Before(until) {
			close(due)
			return
		}
		for left := time.Until(at); left > 0; left = time.Until(at) {
			wait := syscall.NsecToTimespec(int64(left)) // Go's own timers may be a millisecond late
			_ = syscall.Nanosleep(&wait, nil)
		}
		due <- struct{}{}
	}
}

func summary(connections []*connection, duration time.Duration) report {
	var times []time.Duration
	var result report
	for _, each := range connections {
		times = append(times, each.times...)
		result.Errors += each.errors
	}
	result.Requests = len(times)
	result.ThroughputHz = float64(len(times)) / duration.Seconds()
	if len(times) == 0 {
		return result
	}
	slices.Sort(times)
	var sum time.Duration
	for _, each := range times {
		sum += each
	}
	micros := func(value time.Duration) float64 { return float64(value) / float64(time.Microsecond) }
	at := func(share float64) float64 { return micros(times[min(len(times)-1, int(share*float64(len(times))))]) }
	result.MeanUs = micros(sum) / float64(len(times))
	result.P50Us, result.P99Us, result.P999Us = at(0.5), at(0.99), at(0.999)
	result.MaxUs = micros(times[len(times)-1])
	return result
}

func check(err error) {
	if err != nil {
		log.Fatal("socketload: ", err)
	}
}
