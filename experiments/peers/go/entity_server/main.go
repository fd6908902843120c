// The entity server of the comparison of thread pools in Rust and Go: entities by id over HTTP/1.1.
//
//	entity_server [--host HOST] [--port N] [--workers N] [--queue-limit N] [--grace-s S] [--idle-s S]
//	              [--entities N]
//
//	GET /entities/ID   200 {"id":…,"description":…,"value":…}, or 404
//	PUT /entities/ID   with such a body: 200 {"created":true} for a new id, false for a known one
//
// Its pool is written by hand: goroutines, fixed in number, take connections from one channel. A worker keeps its
// connection until that ends, so that with connections that stay, more of them than workers wait. Its locks have two
// levels: one on the map, one on each entry.
package main

import (
	"os"
	"time"

	"peers/process"
)

const (
	defaultPort   = 50071
	workersMax    = 1024
	queueLimitMax = 1_000_000
	idleMaxS      = 86400
	entitiesMax   = 1_000_000
)

func main() {
	options := process.NewOptions("entity_server", defaultPort)
	workers := options.Set.Int("workers", 8, "goroutines that serve connections")
	queueLimit := options.Set.Int("queue-limit", 1024, "connections that may wait for a worker, beside the kernel's")
	idleS := options.Set.Int("idle-s", 60, "after which a connection without a request is closed")
	entities := options.Set.Int("entities", 0, "entities that there are from the start, with the ids from 1")
	options.Parse(os.Args[1:])
	options.CheckRange("workers", *workers, 1, workersMax)
	options.CheckRange("queue-limit", *queueLimit, 1, queueLimitMax)
	options.CheckRange("idle-s", *idleS, 1, idleMaxS)
	options.CheckRange("entities", *entities, 0, entitiesMax)
	server := newServer(newStore(*entities), *workers, *queueLimit, time.Duration(*idleS)*time.Second)
	os.Exit(process.Run(options, server))
}
