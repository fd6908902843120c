// A client that sorts by remote procedures and says how long each call took.
//
//	sort_client --mechanism net-rpc|grpc --address HOST:PORT [--algorithm merge|quick] [--count N] [--array-len N]
//
// One connection, one call at a time. Every reply is checked, outside the time. In the end it prints a line of JSON for
// each time, in nanoseconds: {"what":"connect","ns":…}, {"what":"first call","ns":…}, and for every other call
// {"what":"call","ns":…}. On both mechanisms the connection is there before the first call begins. With --array-len 0
// every call sorts the seven numbers of the original; else as many random ones. Any error ends it with exit code 1,
// a bad option with 2.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"peers/sorting"
)

const (
	countMax      = 10_000_000
	arrayLenMax   = 100_000
	connectWithin = 10 * time.Second
)

// sorter calls a server on one connection.
type sorter interface {
	// prepare makes the request, which is the same for every call.
	prepare(algorithm string, values []int)
	// call sorts once, and keeps the reply. It waits for as long as the connection is there.
	call() error
	// sorted is the last reply.
	sorted() []int
	close() error
}

var dials = map[string]func(context.Context, string) (sorter, error){"net-rpc": dialNetRPC, "grpc": dialGRPC}

type options struct {
	mechanism, address, algorithm string
	count, arrayLen               int
	seed                          uint64
}

func main() {
	given, err := parse(os.Args[1:])
	if err == flag.ErrHelp {
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "sort_client: %v\n", err)
		os.Exit(2)
	}
	times, err := measure(given)
	if err == nil {
		err = times.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "sort_client: %v\n", err)
		os.Exit(1)
	}
}

func parse(arguments []string) (options, error) {
	var given options
	set := flag.NewFlagSet("sort_client", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&given.mechanism, "mechanism", "", "net-rpc or grpc")
	set.StringVar(&given.address, "address", "", "HOST:PORT of the server")
	set.StringVar(&given.algorithm, "algorithm", "merge", "merge or quick")
	set.IntVar(&given.count, "count", 100, "calls, the first one included")
	set.IntVar(&given.arrayLen, "array-len", 0, "random numbers in a call's array; 0: the original's seven")
	set.Uint64Var(&given.seed, "seed", 1, "of the random numbers")
	err := set.Parse(arguments)
	if err == flag.ErrHelp {
		set.SetOutput(os.Stdout)
		set.PrintDefaults()
	}
	switch {
	case err != nil:
		return given, err
	case set.NArg() > 0:
		return given, fmt.Errorf("got %q, allowed: options alone", set.Arg(0))
	case dials[given.mechanism] == nil:
		return given, fmt.Errorf("--mechanism: got %q, allowed: net-rpc, grpc", given.mechanism)
	case given.algorithm != "merge" && given.algorithm != "quick":
		return given, fmt.Errorf("--algorithm: got %q, allowed: merge, quick", given.algorithm)
	case given.count < 1 || given.count > countMax:
		return given, fmt.Errorf("--count: got %d, allowed: 1 to %d", given.count, countMax)
	case given.arrayLen < 0 || given.arrayLen > arrayLenMax:
		return given, fmt.Errorf("--array-len: got %d, allowed: 0 to %d", given.arrayLen, arrayLenMax)
	case given.address == "":
		return given, errors.New("--address: HOST:PORT is needed")
	}
	return given, nil
}

// values is what a call sorts.
func (given options) values() []int {
	if given.arrayLen == 0 {
		return sorting.Fixed
	}
	random := rand.New(rand.NewPCG(given.seed, 0))
	values := make([]int, given.arrayLen)
	for place := range values {
		values[place] = random.IntN(1 << 31)
	}
	return values
}

type times struct {
	connect time.Duration
	calls   []time.Duration
}

func measure(given options) (times, error) {
	values := given.values()
	want := slices.Sorted(slices.Values(values))
	took := times{calls: make([]time.Duration, 0, given.count)}
	ready, cancel := context.WithTimeout(context.Background(), connectWithin)
	defer cancel()
	start := time.Now()
	server, err := dials[given.mechanism](ready, given.address)
	took.connect = time.Since(start)
	if err != nil {
		return took, fmt.Errorf("no connection to %s: %w", given.address, err)
	}
	defer server.close()
	server.prepare(given.algorithm, values)
	for range given.count {
		start := time.Now()
		err := server.call()
		took.calls = append(took.calls, time.Since(start))
		if err != nil {
			return took, fmt.Errorf("call %d: %w", len(took.calls), err)
		}
		if !slices.Equal(server.sorted(), want) {
			return took, fmt.Errorf("call %d: the reply is not sorted as it must be", len(took.calls))
		}
	}
	return took, nil
}

func (took times) print(to io.Writer) error {
	out := bufio.NewWriter(to)
	line := func(what string, time time.Duration) {
		fmt.Fprintf(out, "{\"what\":%q,\"ns\":%d}\n", what, time.Nanoseconds())
	}
	line("connect", took.connect)
	for number, time := range took.calls {
		if number == 0 {
			line("first call", time)
		} else {
			line("call", time)
		}
	}
	return out.Flush()
}
