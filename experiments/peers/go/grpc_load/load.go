package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	connectMax = 5 * time.Second  // of all connections
	drainMax   = 10 * time.Second // for calls in flight when the load ends; those left are cancelled, and are errors
	lateAfter  = time.Millisecond // a send later than this is a late one
	napMax     = 10 * time.Millisecond
	entryBytes = 1024 // of a name and its value, at most
	newBytes   = 16
)

// raw sends a []byte as it is, and says how long a reply is. Its name is empty, so that the content type is that of
// generated clients.
type raw struct{}

func (raw) Name() string { return "" }

func (raw) Marshal(message any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(message.([]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, length any) error {
	*length.(*int) = data.Len()
	return nil
}

// load is a run. Moments are since its start.
type load struct {
	given       options
	connections []*grpc.ClientConn
	workers     []*worker // connection by connection in turn
	base        context.Context
	cancel      context.CancelFunc
	changing    [2]string // name of the metadata that has a new part, and the rest of its value
	start       time.Time
	from        time.Duration
	until       atomic.Int64 // nanoseconds; a signal brings it forward
	running     sync.WaitGroup
	neverSent   int
	mostAtOnce  int
	processorS  [2]float64 // at the window's begin and end
}

// worker makes one call at a time. What it counts is of calls due in the measured window, but for allCalls.
type worker struct {
	connection *grpc.ClientConn
	random     *rand.Rand
	times      []int64 // ns, of answered calls
	late       []int64 // ns, of all sent
	errors     map[string]int
	allCalls   int
}

// newLoad connects. An error says what could not be connected to.
func newLoad(given options) (*load, error) {
	l := &load{given: given, from: given.warmUp}
	l.until.Store(int64(given.warmUp + given.duration))
	l.base, l.cancel = context.WithCancel(context.Background())
	within, done := context.WithTimeout(l.base, connectMax)
	defer done()
	for range given.connections {
		connection, err := grpc.NewClient("passthrough:///"+given.address,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})), grpc.WithDisableRetry())
		if err != nil {
			return nil, err
		}
		l.connections = append(l.connections, connection)
		connection.Connect()
		for state := connection.GetState(); state != connectivity.Ready; state = connection.GetState() {
			if state == connectivity.TransientFailure || !connection.WaitForStateChange(within, state) {
				l.close()
				return nil, fmt.Errorf("no connection to %s", given.address)
			}
		}
	}
	for place := range given.connections * given.inFlight {
		connection, random := l.connections[place%given.connections], rand.New(rand.NewPCG(given.seed, uint64(place)+1))
		l.workers = append(l.workers, &worker{connection: connection, random: random, errors: map[string]int{}})
	}
	l.describe()
	return l, nil
}

// describe puts into every call what does not change from call to call.
func (l *load) describe() {
	constant := entries(l.given.metadataBytes)
	if l.given.metadataNew {
		l.changing, constant = [2]string{constant[0], constant[1][newBytes:]}, constant[2:]
	}
	if l.given.token != "" {
		constant = append(constant, "authorization", "Bearer "+l.given.token)
	}
	l.base = metadata.AppendToOutgoingContext(l.base, constant...)
}

// entries are names and values of so many bytes together, in entries of about one length. Always the same.
func entries(bytes int) (made []string) {
	random := rand.NewChaCha8([32]byte{})
	count := (bytes + entryBytes - 1) / entryBytes
	for place := range count {
		name, value := fmt.Sprintf("x-load-%02d", place), make([]byte, entryBytes)
		_, _ = random.Read(value) // never fails
		made = append(made, name, hex.EncodeToString(value)[:(bytes+place)/count-len(name)])
	}
	return made
}

func (l *load) now() time.Duration { return time.Since(l.start) }

func (l *load) ended(at time.Duration) bool { return int64(at) >= l.until.Load() }

func (l *load) close() {
	l.cancel()
	for _, each := range l.connections {
		each.Close()
	}
}

// run makes the calls, and says whether a signal ended them. A second signal gives up what is in flight.
func (l *load) run(signals <-chan os.Signal) (interrupted bool) {
	l.start = time.Now()
	if l.given.rate > 0 {
		l.running.Go(l.pace)
	} else {
		l.mostAtOnce = len(l.workers)
		for _, each := range l.workers {
			l.running.Go(func() { each.loop(l) })
		}
	}
	for place, moment := range []time.Duration{l.from, l.from + l.given.duration} {
		if !interrupted {
			select {
			case <-time.After(moment - l.now()):
			case <-signals:
				interrupted = true
				l.until.Store(int64(l.now()))
			}
		}
		l.processorS[place] = processorS()
	}
	done := make(chan struct{})
	go func() {
		l.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-signals:
	case <-time.After(drainMax):
	}
	l.cancel()
	<-done
	return interrupted
}

// loop makes one call after another.
func (w *worker) loop(l *load) {
	for due := l.now(); !l.ended(due); due = l.now() {
		w.call(l, due)
	}
}

// pace begins calls when they are due, whether or not earlier ones were answered, as long as a worker is free.
func (l *load) pace() {
	runtime.LockOSThread()
	random := rand.New(rand.NewPCG(l.given.seed, 0))
	free := make(chan *worker, len(l.workers))
	for _, each := range l.workers {
		free <- each
	}
	gap := func() float64 { return float64(time.Second) / l.given.rate }
	if l.given.poisson {
		gap = func() float64 { return float64(time.Second) / l.given.rate * random.ExpFloat64() }
	}
	for at := 0.0; ; at += gap() {
		due := time.Duration(at) // of this call alone, whose goroutine reads it later
		for left := due - l.now(); left > 0 && !l.ended(due); left = due - l.now() {
			nap := syscall.NsecToTimespec(int64(min(left, napMax))) // Go's own timers may be a millisecond late
			_ = syscall.Nanosleep(&nap, nil)
		}
		if l.ended(due) {
			return
		}
		select {
		case each := <-free:
			l.running.Go(func() {
				each.call(l, due)
				free <- each
			})
		default:
			if due >= l.from {
				l.neverSent++
			}
		}
		l.mostAtOnce = max(l.mostAtOnce, len(l.workers)-len(free))
	}
}

// call makes one call, and notes how it ended.
func (w *worker) call(l *load, due time.Duration) {
	ctx := l.base
	if l.given.traceparent {
		trace, span := [2]uint64{w.random.Uint64(), w.random.Uint64()}, w.random.Uint64()|1
		value := fmt.Sprintf("00-%016x%016x-%016x-01", trace[0], trace[1], span)
		ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", value)
	}
	if l.given.metadataNew {
		value := fmt.Sprintf("%0*x%s", newBytes, w.random.Uint64(), l.changing[1])
		ctx = metadata.AppendToOutgoingContext(ctx, l.changing[0], value)
	}
	if l.given.deadline > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, l.given.deadline)
		defer done()
	}
	sent, length := l.now(), 0
	err := w.connection.Invoke(ctx, l.given.method, l.given.payload, &length)
	took := l.now() - due
	if err == nil {
		w.allCalls++
	}
	if due < l.from || l.ended(due) {
		return
	}
	if l.given.rate > 0 {
		w.late = append(w.late, int64(sent-due))
	}
	switch {
	case err != nil:
		w.errors[status.Code(err).String()]++
	case length == 0:
		w.errors["EmptyReply"]++
	default:
		w.times = append(w.times, int64(took))
	}
}

// processorS is the processor time of this process, in seconds.
func processorS() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // it has no way to fail
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}
