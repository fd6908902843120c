package main

import (
	"encoding/binary"
	"os"
	"slices"
	"time"
)

// report is of calls that were due in the measured window, but for AllCalls. Response times begin when a call was due;
// percentiles are exact, and are 0 where nothing was answered.
type report struct {
	Calls         int            `json:"calls"`      // answered with OK, by a message that is not empty
	Good          int            `json:"good"`       // of these, within the deadline; all where there is none
	Errors        map[string]int `json:"errors"`     // by gRPC's code; EmptyReply: an empty message with OK
	NeverSent     int            `json:"never_sent"` // due while as many were in flight as may be
	Seconds       float64        `json:"seconds"`
	ThroughputHz  float64        `json:"throughput_hz"`
	GoodHz        float64        `json:"good_hz"`
	MeanUs        float64        `json:"mean_us"`
	P50Us         float64        `json:"p50_us"`
	P90Us         float64        `json:"p90_us"`
	P99Us         float64        `json:"p99_us"`
	P999Us        float64        `json:"p999_us"`
	MaxUs         float64        `json:"max_us"`
	LateSends     int            `json:"late_sends"` // over a millisecond after they were due
	LateUsP99     float64        `json:"late_us_p99"`
	InFlightMost  int            `json:"in_flight_most"`
	InFlightLimit int            `json:"in_flight_limit"`
	ClientCPUS    float64        `json:"client_cpu_s"`
	AllCalls      int            `json:"all_calls"` // answered with OK, those of the warm-up too
}

func (l *load) report() report {
	made := report{Errors: map[string]int{}, NeverSent: l.neverSent, InFlightMost: l.mostAtOnce}
	made.InFlightLimit, made.ClientCPUS = len(l.workers), l.processorS[1]-l.processorS[0]
	made.Seconds = max(0, time.Duration(l.until.Load())-l.from).Seconds()
	var times, late []int64
	for _, each := range l.workers {
		times, late = append(times, each.times...), append(late, each.late...)
		made.AllCalls += each.allCalls
		for kind, count := range each.errors {
			made.Errors[kind] += count
		}
	}
	slices.Sort(times)
	slices.Sort(late)
	made.Calls, made.Good, made.LateSends = len(times), len(times), len(late)-upTo(late, lateAfter)
	if l.given.deadline > 0 {
		made.Good = upTo(times, l.given.deadline)
	}
	if made.Seconds > 0 {
		made.ThroughputHz, made.GoodHz = float64(made.Calls)/made.Seconds, float64(made.Good)/made.Seconds
	}
	for _, each := range times {
		made.MeanUs += float64(each) / 1000 / float64(len(times))
	}
	made.P50Us, made.P90Us, made.P99Us = at(times, 0.5), at(times, 0.9), at(times, 0.99)
	made.P999Us, made.MaxUs, made.LateUsP99 = at(times, 0.999), at(times, 1), at(late, 0.99)
	return made
}

// at is the value at a share of sorted nanoseconds, in µs; 0 of none.
func at(sorted []int64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]) / 1000
}

// upTo is how many of sorted nanoseconds are within a limit.
func upTo(sorted []int64, limit time.Duration) int {
	place, _ := slices.BinarySearch(sorted, int64(limit)+1)
	return place
}

// writeTimes puts every response time into the file that was asked for.
func (l *load) writeTimes() error {
	if l.given.times == "" {
		return nil
	}
	var bytes []byte
	for _, each := range l.workers {
		for _, took := range each.times {
			bytes = binary.LittleEndian.AppendUint64(bytes, uint64(took))
		}
	}
	return os.WriteFile(l.given.times, bytes, 0o644)
}
