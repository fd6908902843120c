package main

import (
	"context"
	"net"
	"net/rpc"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"peers/process"
	"peers/sorting"
	"peers/sortpb"
)

const patience = 10 * time.Second

var sorted = []int{3, 9, 10, 27, 38, 43, 82}

// serve starts a server on a free port; gives its address and what stops it.
func serve(t *testing.T, server process.Server) (string, func() bool) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener.(*net.TCPListener)) }()
	stop := sync.OnceValue(func() bool {
		within, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		finished := server.Stop(within)
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		return finished
	})
	t.Cleanup(func() { stop() })
	return listener.Addr().String(), stop
}

// Both procedures of net/rpc sort.
func TestNetRPC(t *testing.T) {
	address, _ := serve(t, newNetRPC())
	client, err := rpc.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, method := range []string{"SortService.MergeSortRemote", "SortService.QuickSortRemote"} {
		var reply sorting.SortResponse
		if err := client.Call(method, &sorting.Args{Array: sorting.Fixed}, &reply); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(reply.Array, sorted) {
			t.Errorf("%s: %v", method, reply.Array)
		}
	}
}

// Both methods on gRPC sort.
func TestGRPC(t *testing.T) {
	address, _ := serve(t, newGRPC())
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	client := sortpb.NewSortServiceClient(connection)
	values, want := []int64{2, -1, 1 << 40}, []int64{-1, 2, 1 << 40}
	merged, err := client.MergeSort(t.Context(), &sortpb.MergeSortRequest{Values: values})
	if err != nil || !slices.Equal(merged.Values, want) {
		t.Errorf("merge: %v, %v", merged, err)
	}
	parted, err := client.QuickSort(t.Context(), &sortpb.QuickSortRequest{Values: values})
	if err != nil || !slices.Equal(parted.Values, want) {
		t.Errorf("quick: %v, %v", parted, err)
	}
}

// A stopping net/rpc server answers all that had arrived, and ends though the client stays.
func TestNetRPCStops(t *testing.T) {
	address, stop := serve(t, newNetRPC())
	client, err := rpc.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	args := &sorting.Args{Array: make([]int, 1000)}
	for place := range args.Array {
		args.Array[place] = -place
	}
	under := make([]*rpc.Call, 20)
	for number := range under { // a request is in the socket when Go returns, and all together fit into its buffer
		under[number] = client.Go("SortService.QuickSortRemote", args, new(sorting.SortResponse), nil)
	}
	if !stop() {
		t.Error("the server was not finished")
	}
	for number, call := range under {
		<-call.Done
		if reply := call.Reply.(*sorting.SortResponse); call.Error != nil || !slices.IsSorted(reply.Array) {
			t.Errorf("call %d: %v", number, call.Error)
		}
	}
}
