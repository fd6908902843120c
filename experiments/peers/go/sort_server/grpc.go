package main

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"

	"peers/sorting"
	"peers/sortpb"
)

// helloWithin is in which a connection must have said that it speaks HTTP/2. One that does not would keep the server
// from stopping for grpc-go's own two minutes.
const helloWithin = time.Second

// onGRPC serves experiments.v1.SortService.
type onGRPC struct {
	sortpb.UnimplementedSortServiceServer
	server *grpc.Server
}

func newGRPC() *onGRPC {
	s := &onGRPC{server: grpc.NewServer(grpc.ConnectionTimeout(helloWithin))}
	sortpb.RegisterSortServiceServer(s.server, s)
	return s
}

func (s *onGRPC) MergeSort(_ context.Context, request *sortpb.MergeSortRequest) (*sortpb.MergeSortResponse, error) {
	return &sortpb.MergeSortResponse{Values: sorting.Merge(request.Values)}, nil
}

func (s *onGRPC) QuickSort(_ context.Context, request *sortpb.QuickSortRequest) (*sortpb.QuickSortResponse, error) {
	return &sortpb.QuickSortResponse{Values: sorting.Quick(request.Values)}, nil
}

func (s *onGRPC) Serve(listener *net.TCPListener) error {
	return s.server.Serve(listener)
}

func (s *onGRPC) Stop(within context.Context) bool {
	ended := make(chan struct{})
	go func() {
		s.server.GracefulStop()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-within.Done():
		s.server.Stop()
		return false
	}
}
