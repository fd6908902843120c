package main

import (
	"context"
	"net"
	"net/rpc"

	"peers/sorting"
)

// onNetRPC calls SortService of net/rpc.
type onNetRPC struct {
	client *rpc.Client
	method string
	args   sorting.Args
	reply  sorting.SortResponse
}

func dialNetRPC(within context.Context, address string) (sorter, error) {
	connection, err := new(net.Dialer).DialContext(within, "tcp", address) // Go sets TCP_NODELAY
	if err != nil {
		return nil, err
	}
	return &onNetRPC{client: rpc.NewClient(connection)}, nil
}

func (s *onNetRPC) prepare(algorithm string, values []int) {
	s.method = map[string]string{"merge": "SortService.MergeSortRemote", "quick": "SortService.QuickSortRemote"}[algorithm]
	s.args = sorting.Args{Array: values}
}

// call has no deadline: net/rpc has none, and neither mechanism is to have a timer in its times that the other lacks.
func (s *onNetRPC) call() error {
	s.reply = sorting.SortResponse{}
	return s.client.Call(s.method, &s.args, &s.reply)
}

func (s *onNetRPC) sorted() []int { return s.reply.Array }
func (s *onNetRPC) close() error  { return s.client.Close() }
