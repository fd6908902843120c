package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const patience = 10 * time.Second

type running struct {
	*server
	address string
	stop    func(grace time.Duration) bool // says whether it finished
}

// untilQuiet waits until so many connections are waited on for a request.
func (r running) untilQuiet(connections int) {
	for {
		r.lock.Lock()
		count := len(r.quiet)
		r.lock.Unlock()
		if count == connections {
			return
		}
		runtime.Gosched()
	}
}

// serve starts a server on a free port.
func serve(t *testing.T, workers int) running {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(newStore(0), workers, 16, patience)
	go s.Serve(listener.(*net.TCPListener))
	var once sync.Once
	stop := func(grace time.Duration) (finished bool) {
		once.Do(func() {
			within, cancel := context.WithTimeout(context.Background(), grace)
			defer cancel()
			finished = s.Stop(within)
		})
		return finished
	}
	t.Cleanup(func() { stop(patience) })
	return running{s, listener.Addr().String(), stop}
}

type client struct {
	net.Conn
	replies *bufio.Reader
	t       *testing.T
}

func dial(t *testing.T, address string) *client {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	connection.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { connection.Close() })
	return &client{connection, bufio.NewReader(connection), t}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) expect(status int, body string) {
	c.t.Helper()
	reply, err := http.ReadResponse(c.replies, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	got, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != status || !strings.Contains(string(got), body) {
		c.t.Fatalf("got %d %s (%v), want %d %s", reply.StatusCode, got, err, status, body)
	}
}

func (c *client) expectClosed() {
	c.t.Helper()
	if _, err := c.replies.ReadByte(); err != io.EOF {
		c.t.Fatalf("not closed: %v", err)
	}
}

func put(id int, description string) string {
	body := fmt.Sprintf(`{"id":%d,"description":%q,"value":0.5}`, id, description)
	head := "PUT /entities/%d HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
	return fmt.Sprintf(head+"%s", id, len(body), body)
}

func get(id int) string {
	return fmt.Sprintf("GET /entities/%d HTTP/1.1\r\nHost: localhost\r\n\r\n", id)
}

// An id is absent, then new, then known, on one connection; pipelined requests are answered in order.
func TestGetAndPut(t *testing.T) {
	server := serve(t, 2)
	c := dial(t, server.address)
	c.send(get(7))
	c.expect(404, "no entity 7")
	c.send(put(7, "first") + get(7) + put(7, "second") + get(7))
	c.expect(200, `{"created":true}`)
	c.expect(200, `{"id":7,"description":"first","value":0.5}`)
	c.expect(200, `{"created":false}`)
	c.expect(200, `{"id":7,"description":"second","value":0.5}`)
}

// What is no request is told so; after bytes that cannot be understood the connection is closed.
func TestRefusals(t *testing.T) {
	server := serve(t, 2)
	for _, request := range []string{
		"nonsense\r\n\r\n", strings.Replace(put(7, "a"), "/entities/7", "/entities/8", 1),
		"PUT /entities/1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n{\"id",
	} {
		c := dial(t, server.address)
		c.send(request)
		c.expect(400, "error")
		c.expectClosed()
	}
	c := dial(t, server.address)
	c.send("DELETE /entities/1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	c.expect(405, "GET, PUT")
	c.send("GET /entities/one HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	c.expect(404, "error")
}

// A client that asks for it, and one of HTTP/1.0, gets one reply and the connection's end.
func TestConnectionClose(t *testing.T) {
	server := serve(t, 1)
	for _, request := range []string{
		"GET /entities/1 HTTP/1.0\r\n\r\n", "GET /entities/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
	} {
		c := dial(t, server.address)
		c.send(request)
		c.expect(404, "error")
		c.expectClosed()
	}
}

// Stopping finishes the request under way and those of connections that wait for a worker, and closes idle ones.
func TestStopFinishesWhatWasAccepted(t *testing.T) {
	server := serve(t, 2)
	idle, half := dial(t, server.address), dial(t, server.address)
	for _, c := range []*client{idle, half} {
		c.send(get(1))
		c.expect(404, "error")
	}
	server.untilQuiet(2)
	request := put(1, "half")
	half.send(request[:len(request)-5])
	server.untilQuiet(1)
	queued := []*client{dial(t, server.address), dial(t, server.address)}
	for number, c := range queued {
		c.send(put(10+number, "queued"))
	}
	stopped := make(chan bool)
	go func() { stopped <- server.stop(patience) }()
	idle.expectClosed()
	half.send(request[len(request)-5:])
	half.expect(200, `{"created":true}`)
	half.expectClosed()
	for _, c := range queued {
		c.expect(200, `{"created":true}`)
	}
	if !<-stopped {
		t.Error("it did not finish")
	}
	if _, err := net.Dial("tcp", server.address); err == nil {
		t.Error("it still listens")
	}
}

// A request that does not come in time is given up.
func TestGraceEnds(t *testing.T) {
	server := serve(t, 1)
	half := dial(t, server.address)
	half.send(get(1))
	half.expect(404, "error")
	server.untilQuiet(1)
	half.send("GET /entities/1 HT")
	server.untilQuiet(0)
	if server.stop(200 * time.Millisecond) {
		t.Error("it says that it finished")
	}
}
