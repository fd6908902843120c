package main

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"peers/sortpb"
)

// onGRPC calls experiments.v1.SortService. Messages hold int64, and are changed into int outside the time.
type onGRPC struct {
	connection *grpc.ClientConn
	once       func(context.Context) ([]int64, error)
	reply      []int64
}

func dialGRPC(within context.Context, address string) (sorter, error) {
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	connection.Connect()
	for state := connection.GetState(); state != connectivity.Ready; state = connection.GetState() {
		if state == connectivity.TransientFailure || !connection.WaitForStateChange(within, state) {
			connection.Close()
			return nil, errors.New("nobody answers there")
		}
	}
	return &onGRPC{connection: connection}, nil
}

func (s *onGRPC) prepare(algorithm string, values []int) {
	client := sortpb.NewSortServiceClient(s.connection)
	wide := make([]int64, len(values))
	for place, value := range values {
		wide[place] = int64(value)
	}
	if algorithm == "merge" {
		request := &sortpb.MergeSortRequest{Values: wide}
		s.once = func(within context.Context) ([]int64, error) {
			reply, err := client.MergeSort(within, request)
			return reply.GetValues(), err
		}
	} else {
		request := &sortpb.QuickSortRequest{Values: wide}
		s.once = func(within context.Context) ([]int64, error) {
			reply, err := client.QuickSort(within, request)
			return reply.GetValues(), err
		}
	}
}

func (s *onGRPC) call() (err error) {
	s.reply, err = s.once(context.Background())
	return err
}

func (s *onGRPC) sorted() []int {
	narrow := make([]int, len(s.reply))
	for place, value := range s.reply {
		narrow[place] = int(value)
	}
	return narrow
}

func (s *onGRPC) close() error { return s.connection.Close() }
