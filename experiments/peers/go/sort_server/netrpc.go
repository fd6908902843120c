package main

import (
	"context"
	"net"
	"net/rpc"
	"sync"

	"peers/process"
	"peers/sorting"
)

// netRPC serves net/rpc. A connection has a goroutine, and each of its requests another, as net/rpc makes them.
type netRPC struct {
	server   *rpc.Server
	acceptor chan *process.Acceptor // one, once it serves
	accepted chan struct{}          // closed when no more connections come
	serving  sync.WaitGroup

	lock        sync.Mutex // guards connections
	connections map[*net.TCPConn]struct{}
}

func newNetRPC() *netRPC {
	server := rpc.NewServer()
	if err := server.Register(sorting.SortService{}); err != nil {
		panic(err) // its methods are not as net/rpc wants them
	}
	return &netRPC{
		server:      server,
		acceptor:    make(chan *process.Acceptor, 1),
		accepted:    make(chan struct{}),
		connections: map[*net.TCPConn]struct{}{},
	}
}

func (s *netRPC) Serve(listener *net.TCPListener) error {
	acceptor := process.NewAcceptor(listener)
	s.acceptor <- acceptor
	acceptor.Run(func(connection *net.TCPConn) {
		s.lock.Lock()
		s.connections[connection] = struct{}{}
		s.lock.Unlock()
		s.serving.Go(func() {
			s.server.ServeConn(connection) // closes it, after the last reply
			s.lock.Lock()
			delete(s.connections, connection)
			s.lock.Unlock()
		})
	})
	close(s.accepted)
	return nil
}

// Stop ends the reading of every connection, where what has arrived is still read: net/rpc then answers it, and closes.
func (s *netRPC) Stop(within context.Context) bool {
	(<-s.acceptor).Stop()
	ended := make(chan struct{})
	go func() {
		<-s.accepted
		s.lock.Lock()
		for connection := range s.connections {
			connection.CloseRead()
		}
		s.lock.Unlock()
		s.serving.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-within.Done():
		return false
	}
}
