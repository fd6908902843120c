package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"peers/process"
)

const (
	requestBytesMax = 1 << 20
	requestWithin   = 10 * time.Second // of a request's first byte its last one must have come
	replyWithin     = 10 * time.Second // in which a client must have taken its reply

	// lastChance is how long a connection without a request has, when stopping, to bring one that is on its way.
	lastChance = 50 * time.Millisecond
)

// server is the pool: workers that take connections from a channel.
type server struct {
	entities *store
	workers  int
	idle     time.Duration
	waiting  chan *net.TCPConn
	acceptor chan *process.Acceptor // one, once it serves
	running  sync.WaitGroup

	lock     sync.Mutex // guards what follows
	stopping bool
	quiet    map[*net.TCPConn]struct{} // connections that a worker waits on for a request
}

func newServer(entities *store, workers, queueLimit int, idle time.Duration) *server {
	return &server{
		entities: entities,
		workers:  workers,
		idle:     idle,
		waiting:  make(chan *net.TCPConn, queueLimit),
		acceptor: make(chan *process.Acceptor, 1),
		quiet:    map[*net.TCPConn]struct{}{},
	}
}

// Serve starts all workers at once, and gives them connections until Stop.
func (s *server) Serve(listener *net.TCPListener) error {
	for range s.workers {
		s.running.Go(func() {
			for connection := range s.waiting {
				s.serve(connection)
			}
		})
	}
	acceptor := process.NewAcceptor(listener)
	s.acceptor <- acceptor
	acceptor.Run(func(connection *net.TCPConn) { s.waiting <- connection }) // a full queue leaves them to the kernel
	close(s.waiting)
	return nil
}

// Stop lets every connection that was accepted finish its request.
func (s *server) Stop(within context.Context) bool {
	s.lock.Lock()
	s.stopping = true
	for connection := range s.quiet {
		connection.SetReadDeadline(time.Now().Add(lastChance))
	}
	s.lock.Unlock()
	ended := make(chan struct{})
	go func() {
		(<-s.acceptor).Stop()
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-within.Done():
		return false
	}
}

// serve answers a connection's requests until it ends, or the server does.
func (s *server) serve(connection *net.TCPConn) {
	defer connection.Close()
	limited := &io.LimitedReader{R: connection}
	reader := bufio.NewReader(limited)
	for {
		limited.N = requestBytesMax
		if !s.requestComes(connection, reader) {
			return
		}
		connection.SetReadDeadline(time.Now().Add(requestWithin))
		request, err := http.ReadRequest(reader)
		var reply reply
		if err != nil {
			reply = refusal(http.StatusBadRequest, "no request of HTTP/1.1, cut off, or over 1 MiB")
		} else {
			reply = s.entities.answer(request)
			reply.last = reply.last || request.Close
		}
		reply.last = reply.last || s.isStopping()
		connection.SetWriteDeadline(time.Now().Add(replyWithin))
		if _, err := connection.Write(reply.bytes()); err != nil || reply.last {
			return
		}
	}
}

// requestComes waits for a request's first byte. While it does, the connection is quiet.
func (s *server) requestComes(connection *net.TCPConn, reader *bufio.Reader) bool {
	s.lock.Lock()
	patience := s.idle
	if s.stopping {
		patience = lastChance
	}
	connection.SetReadDeadline(time.Now().Add(patience))
	s.quiet[connection] = struct{}{}
	s.lock.Unlock()
	_, err := reader.Peek(1)
	s.lock.Lock()
	delete(s.quiet, connection)
	s.lock.Unlock()
	return err == nil
}

func (s *server) isStopping() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.stopping
}
