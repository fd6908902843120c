package main

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"peers/stockpb"
)

// helloWithin is in which a connection must have said that it speaks HTTP/2. One that does not would keep the server
// from stopping for grpc-go's own two minutes.
const helloWithin = time.Second

// server serves stock_service.v1.StockService.
type server struct {
	stockpb.UnimplementedStockServiceServer
	catalog *catalog
	grpc    *grpc.Server
}

func newServer(of *catalog) *server {
	s := &server{catalog: of, grpc: grpc.NewServer(grpc.ConnectionTimeout(helloWithin))}
	stockpb.RegisterStockServiceServer(s.grpc, s)
	return s
}

func (s *server) Lookup(_ context.Context, asked *stockpb.LookupRequest) (*stockpb.LookupResponse, error) {
	return s.catalog.lookup(asked.Name), nil
}

func (s *server) Trade(_ context.Context, asked *stockpb.TradeRequest) (*stockpb.TradeResponse, error) {
	reply, err := s.catalog.tradeOnce(asked.Name, asked.Quantity, asked.Side, asked.RequestId)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return reply, nil
}

func (s *server) Update(_ context.Context, asked *stockpb.UpdateRequest) (*stockpb.UpdateResponse, error) {
	return s.catalog.update(asked.Name, asked.PriceCents), nil
}

func (s *server) Serve(listener *net.TCPListener) error {
	return s.grpc.Serve(listener)
}

func (s *server) Stop(within context.Context) bool {
	ended := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-within.Done():
		s.grpc.Stop()
		return false
	}
}
