package main

import (
	"errors"
	"flag"
	"net"
	"net/rpc"
	"slices"
	"strings"
	"testing"
	"time"

	"peers/sorting"
)

// serve answers one connection of net/rpc with a service under the name SortService; gives the address.
func serve(t *testing.T, service any) string {
	t.Helper()
	server := rpc.NewServer()
	if err := server.RegisterName("SortService", service); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		if connection, err := listener.Accept(); err == nil {
			server.ServeConn(connection)
		}
	}()
	return listener.Addr().String()
}

// Lazy gives back what it got.
type Lazy struct{}

func (Lazy) MergeSortRemote(args *sorting.Args, reply *sorting.SortResponse) error {
	reply.Array = args.Array
	return nil
}

// A run has a time for connecting and one for each call.
func TestEveryCallHasItsTime(t *testing.T) {
	given := options{mechanism: "net-rpc", address: serve(t, sorting.SortService{}), algorithm: "quick", count: 7}
	took, err := measure(given)
	if err != nil || took.connect <= 0 || len(took.calls) != 7 || slices.Min(took.calls) <= 0 {
		t.Errorf("%v, %v", took, err)
	}
}

// A reply that is not sorted ends the run.
func TestAWrongReply(t *testing.T) {
	given := options{mechanism: "net-rpc", address: serve(t, Lazy{}), algorithm: "merge", count: 1}
	if _, err := measure(given); err == nil || !strings.Contains(err.Error(), "not sorted") {
		t.Errorf("got %v", err)
	}
}

// Without a server there is no time, on either mechanism.
func TestNobodyThere(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	for mechanism := range dials {
		given := options{mechanism: mechanism, address: listener.Addr().String(), algorithm: "merge", count: 1}
		if _, err := measure(given); err == nil {
			t.Errorf("%s: no error", mechanism)
		}
	}
}

// Connecting, the first call and the others are told apart.
func TestPrint(t *testing.T) {
	var out strings.Builder
	took := times{connect: 5, calls: []time.Duration{4, 3, 2}}
	if err := took.print(&out); err != nil {
		t.Fatal(err)
	}
	want := `{"what":"connect","ns":5}
{"what":"first call","ns":4}
{"what":"call","ns":3}
{"what":"call","ns":2}
`
	if out.String() != want {
		t.Errorf("got %s", out.String())
	}
}

// A bad option is refused with what is allowed.
func TestBadOptions(t *testing.T) {
	for _, line := range []string{
		"--mechanism soap --address a:1", "--mechanism grpc", "--mechanism grpc --address a:1 --count 0",
		"--mechanism grpc --address a:1 --algorithm bubble", "--mechanism grpc --address a:1 --array-len -1",
		"--mechanism grpc --address a:1 more", "--no-such",
	} {
		if _, err := parse(strings.Fields(line)); err == nil || errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: got %v", line, err)
		}
	}
	if _, err := parse(strings.Fields("--mechanism grpc --address a:1")); err != nil {
		t.Error(err)
	}
}
