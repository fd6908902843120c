package process

import (
	"log"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	wakeWithin = 100 * time.Millisecond
	retryAfter = 10 * time.Millisecond // out of descriptors: some connection will end
)

// Acceptor takes connections until it is stopped. What had connected before the stop is taken too: the stop is a
// connection of its own, and the kernel hands connections over in order.
type Acceptor struct {
	listener *net.TCPListener

	lock sync.Mutex // guards what follows
	last netip.AddrPort
	shut bool
}

// NewAcceptor takes from a listener, which it closes in the end.
func NewAcceptor(listener *net.TCPListener) *Acceptor {
	return &Acceptor{listener: listener}
}

// Run gives every connection to take, which must not keep it waiting for long. Blocks until Stop.
func (a *Acceptor) Run(take func(*net.TCPConn)) {
	defer a.listener.Close()
	for {
		connection, err := a.listener.AcceptTCP()
		if err != nil {
			if a.isShut() {
				return
			}
			log.Printf("no connection taken: %v", err)
			time.Sleep(retryAfter)
			continue
		}
		if a.isLast(connection) {
			connection.Close()
			return
		}
		take(connection)
	}
}

// Stop has Run return when it has taken what was there. Does not wait for that.
func (a *Acceptor) Stop() {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.shut = true
	waker, err := net.DialTimeout("tcp", a.listener.Addr().String(), wakeWithin)
	if err != nil { // no room even for this one
		a.listener.Close()
		return
	}
	a.last = waker.LocalAddr().(*net.TCPAddr).AddrPort()
	waker.Close()
}

func (a *Acceptor) isShut() bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.shut
}

// isLast says whether a connection is the stop. It waits for Stop to say which that is.
func (a *Acceptor) isLast(connection *net.TCPConn) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.shut && connection.RemoteAddr().(*net.TCPAddr).AddrPort() == a.last
}
