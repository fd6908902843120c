package main

import (
	"encoding/binary"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// server answers every method with a message of one byte, and keeps what each call came with.
type server struct {
	lock    sync.Mutex
	seen    []metadata.MD
	left    []time.Duration // until the deadline, of calls that had one
	began   chan struct{}   // gets a value for each call that has begun
	release chan struct{}   // calls are answered once it is closed; nil: at once
	answer  func(call int) ([]byte, error)
}

func (s *server) handle(_ any, stream grpc.ServerStream) error {
	length := 0
	if err := stream.RecvMsg(&length); err != nil {
		return err
	}
	came, _ := metadata.FromIncomingContext(stream.Context())
	s.lock.Lock()
	call := len(s.seen)
	s.seen = append(s.seen, came)
	if deadline, has := stream.Context().Deadline(); has {
		s.left = append(s.left, time.Until(deadline))
	}
	s.lock.Unlock()
	select {
	case s.began <- struct{}{}:
	default:
	}
	if s.release != nil {
		select {
		case <-s.release:
		case <-stream.Context().Done():
		}
	}
	reply, err := []byte{1}, error(nil)
	if s.answer != nil {
		reply, err = s.answer(call)
	}
	if err != nil {
		return err
	}
	return stream.SendMsg(reply)
}

// against is a load on the server, from a command line; it is connected, and not yet run.
func against(t *testing.T, s *server, line string) *load {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving := grpc.NewServer(grpc.UnknownServiceHandler(s.handle), grpc.ForceServerCodecV2(raw{}))
	go func() { _ = serving.Serve(listener) }()
	t.Cleanup(serving.Stop)
	given, err := parse(strings.Fields("-address "+listener.Addr().String()+" -warm-up 0s "+line), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLoad(given)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l
}

// different says how many values of an entry there were among the calls, and fails where one has it not.
func different(t *testing.T, s *server, name string) map[string]bool {
	t.Helper()
	values := map[string]bool{}
	for _, each := range s.seen {
		if len(each.Get(name)) != 1 {
			t.Fatalf("%s: %v", name, each)
		}
		values[each.Get(name)[0]] = true
	}
	return values
}

// Every call has the content type of generated clients, a trace of its own, the token, and metadata of so many bytes.
func TestCallsDiffer(t *testing.T) {
	s := &server{}
	l := against(t, s, "-duration 100ms -connections 2 -in-flight 3 -deadline 2s -traceparent -token abc.d "+
		"-metadata-bytes 2500 -metadata-new")
	l.run(nil)
	made, trace := l.report(), regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`)
	if made.Calls != len(s.seen) || made.Good != made.Calls || made.AllCalls != made.Calls || made.Calls < 6 {
		t.Errorf("%+v of %d", made, len(s.seen))
	}
	if made.InFlightMost != 6 || made.InFlightLimit != 6 || made.Seconds != 0.1 || made.ClientCPUS <= 0 {
		t.Errorf("%+v", made)
	}
	traces := different(t, s, "traceparent")
	for each := range traces {
		if !trace.MatchString(each) {
			t.Error(each)
		}
	}
	news := different(t, s, "x-load-00")
	if len(traces) != len(s.seen) || len(news) != len(s.seen) || len(different(t, s, "x-load-01")) != 1 {
		t.Errorf("%d traces, %d new parts, of %d calls", len(traces), len(news), len(s.seen))
	}
	if values := different(t, s, "authorization"); len(values) != 1 || !values["Bearer abc.d"] {
		t.Error(values)
	}
	if values := different(t, s, "content-type"); len(values) != 1 || !values["application/grpc"] {
		t.Error(values)
	}
	for _, each := range s.seen {
		bytes := 0
		for name, values := range each {
			if strings.HasPrefix(name, "x-load-") {
				bytes += len(name) + len(values[0])
			}
		}
		if bytes != 2500 {
			t.Fatalf("%d bytes of metadata", bytes)
		}
	}
	if len(s.left) != len(s.seen) || s.left[0] > 2*time.Second || s.left[0] < time.Second {
		t.Errorf("%d deadlines, of %v", len(s.left), s.left[:1])
	}
}

// Without those options no call differs from another: metadata is constant, and there is no deadline.
func TestCallsAreAlike(t *testing.T) {
	s := &server{}
	against(t, s, "-duration 50ms -metadata-bytes 15360").run(nil)
	for place := range 15 {
		if values := different(t, s, "x-load-"+strconv.Itoa(100 + place)[1:]); len(values) != 1 {
			t.Errorf("%d values", len(values))
		}
	}
	if len(s.left) != 0 || len(s.seen[0].Get("traceparent")) != 0 || len(s.seen[0].Get("authorization")) != 0 {
		t.Errorf("%v, %v", s.left, s.seen[0])
	}
}

// Calls that fail are counted by gRPC's code, an empty reply too, and are in no time.
func TestErrorsByCode(t *testing.T) {
	s := &server{answer: func(call int) ([]byte, error) {
		switch call {
		case 0, 3:
			return nil, status.Error(codes.ResourceExhausted, "full")
		case 1:
			return nil, nil
		default:
			return []byte{1}, nil
		}
	}}
	l := against(t, s, "-duration 50ms")
	l.run(nil)
	made := l.report()
	if len(made.Errors) != 2 || made.Errors["ResourceExhausted"] != 2 || made.Errors["EmptyReply"] != 1 {
		t.Errorf("%v", made.Errors)
	}
	if made.Calls != len(s.seen)-3 || made.AllCalls != len(s.seen)-2 {
		t.Errorf("%+v of %d", made, len(s.seen))
	}
}

// In an open loop calls are due whatever became of earlier ones; those past the bound are counted, and never sent.
func TestAnOpenLoopDoesNotWait(t *testing.T) {
	s := &server{release: make(chan struct{}), began: make(chan struct{}, 100)}
	l := against(t, s, "-duration 100ms -rate 500 -connections 2 -in-flight 3")
	go func() {
		for range 6 {
			<-s.began
		}
		<-time.After(l.given.duration - l.now()) // the schedule has passed
		close(s.release)
	}()
	l.run(nil)
	made := l.report()
	if made.Calls != 6 || made.NeverSent != 50-6 || made.InFlightMost != 6 || made.InFlightLimit != 6 {
		t.Errorf("%+v", made)
	}
	if len(s.seen) != 6 || made.MaxUs < 50_000 {
		t.Errorf("%d calls; %+v", len(s.seen), made)
	}
}

// A Poisson schedule is the seed's, and has the declared rate within chance.
func TestPoisson(t *testing.T) {
	counts := map[int]bool{}
	for range 2 {
		l := against(t, &server{}, "-duration 200ms -rate 1000 -arrivals poisson -seed 7")
		l.run(nil)
		made := l.report()
		counts[made.Calls+made.NeverSent] = true
	}
	for count := range counts {
		if len(counts) != 1 || count < 140 || count > 260 || count == 200 {
			t.Errorf("%v calls", counts)
		}
	}
}

// A response time begins when the call was due: one that was sent late is slow, and not within its deadline.
func TestResponseTimesBeginWhenDue(t *testing.T) {
	l := against(t, &server{}, "-duration 1m -rate 1 -deadline 1s")
	l.start = time.Now().Add(-10 * time.Second)
	l.workers[0].call(l, l.now()-2*time.Second)
	l.workers[1].call(l, l.now())
	made := l.report()
	if made.Calls != 2 || made.Good != 1 || made.LateSends != 1 || made.MaxUs < 2e6 || made.MaxUs > 3e6 {
		t.Errorf("%+v", made)
	}
	if made.LateUsP99 < 2e6 {
		t.Errorf("%+v", made)
	}
}

// Calls of the warm-up are made, and measured in nothing but their number.
func TestTheWarmUp(t *testing.T) {
	s := &server{}
	l := against(t, s, "-warm-up 50ms -duration 1ms -rate 200")
	l.run(nil)
	if made := l.report(); made.Calls != 1 || made.AllCalls != 11 || len(s.seen) != 11 {
		t.Errorf("%+v", made)
	}
}

// A signal ends the load early, and what was measured stays.
func TestASignal(t *testing.T) {
	s := &server{began: make(chan struct{}, 1)}
	l, signals := against(t, s, "-duration 10m"), make(chan os.Signal, 1)
	go func() {
		<-s.began
		<-s.began
		signals <- os.Interrupt
	}()
	if !l.run(signals) {
		t.Error("not interrupted")
	}
	if made := l.report(); made.Calls < 1 || made.Seconds <= 0 || made.Seconds > 60 || made.ThroughputHz <= 0 {
		t.Errorf("%+v", made)
	}
}

// A second signal gives up the calls in flight: they are errors.
func TestASecondSignal(t *testing.T) {
	s := &server{began: make(chan struct{}, 1), release: make(chan struct{})}
	l, signals := against(t, s, "-duration 10m"), make(chan os.Signal, 2)
	go func() {
		<-s.began
		signals <- os.Interrupt
		signals <- os.Interrupt
	}()
	if !l.run(signals) || l.report().Errors["Canceled"] != 1 {
		t.Errorf("%+v", l.report())
	}
}

// Percentiles are exact, and every time is in the file that was asked for.
func TestTimes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "times")
	l := &load{given: options{times: file, duration: time.Second}}
	l.until.Store(int64(time.Second))
	first, second := &worker{}, &worker{}
	for number := range int64(1000) {
		first.times, second.times = append(first.times, 1000*(2000-number)), append(second.times, 1000*(number+1))
	}
	l.workers = []*worker{first, second}
	made := l.report()
	if made.P50Us != 1001 || made.P90Us != 1801 || made.P99Us != 1981 || made.P999Us != 1999 || made.MaxUs != 2000 {
		t.Errorf("%+v", made)
	}
	if made.MeanUs < 1000.49 || made.MeanUs > 1000.51 || made.ThroughputHz != 2000 {
		t.Errorf("%+v", made)
	}
	if err := l.writeTimes(); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(file)
	if err != nil || len(kept) != 16_000 || binary.LittleEndian.Uint64(kept) != 2_000_000 {
		t.Errorf("%d bytes, %v", len(kept), err)
	}
}

// Without a server there is no load.
func TestNobodyThere(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	_, err = newLoad(options{address: listener.Addr().String(), connections: 1, inFlight: 1})
	if err == nil || !strings.Contains(err.Error(), "no connection to 127.0.0.1:") {
		t.Error(err)
	}
}

// A wrong option is refused in one line that says what is allowed.
func TestWrongOptions(t *testing.T) {
	for _, line := range []string{
		"", "-address 5001", "-address a:1 more", "-address a:1 -call Lookup", "-address a:1 -data-hex 0",
		"-address a:1 -connections 0", "-address a:1 -connections 1024 -in-flight 65", "-address a:1 -in-flight -1",
		"-address a:1 -rate -1", "-address a:1 -rate 1e-9", "-address a:1 -rate NaN", "-address a:1 -arrivals zipf",
		"-address a:1 -warm-up -1s", "-address a:1 -duration 0s", "-address a:1 -duration 11m",
		"-address a:1 -deadline -1s", "-address a:1 -token é", "-address a:1 -metadata-bytes 99",
		"-address a:1 -metadata-bytes 15361", "-address a:1 -metadata-new", "-address a:1 -such", "-rate x",
	} {
		if _, err := parse(strings.Fields(line), io.Discard); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", line, err)
		}
	}
	var help strings.Builder
	if _, err := parse([]string{"-help"}, &help); err != flag.ErrHelp || !strings.Contains(help.String(), "-metadata-new") {
		t.Errorf("%v, %s", err, help.String())
	}
}
