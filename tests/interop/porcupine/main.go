// An independent judge of histories: Porcupine, with a model of the catalog that shares no line with ours.
//
// porcupine FILE...: each a history as clients/load/history/as_json.py writes it. Prints a line for each: its name, and
// "linearizable", "not linearizable" or "not decided". Exits with 2 for a file that is no history.
//
// Every use of a request id is an operation of its own here, and the catalog remembers replies by id. A commit may have
// any number over the last of its stock, because each stock is judged alone.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	ok = iota + 1
	suspended
	unknownStock
	invalidPrice
	invalidQuantity
	invalidSide
)

const patience = 60 * time.Second // for one history

type reply struct {
	Status   int   `json:"status"`
	Price    int64 `json:"price_cents"`
	Volume   int64 `json:"volume"`
	Sequence int64 `json:"sequence"`
}

type request struct {
	Kind     string
	Name     string `json:"name"`
	Price    int64  `json:"price_cents"`
	Quantity int64  `json:"quantity"`
	Side     int    `json:"side"`
	ID       string `json:"request_id"`
}

type operation struct {
	Kind     string  `json:"kind"`
	Request  request `json:"request"`
	Called   int64   `json:"called_ns"`
	Returned *int64  `json:"returned_ns"`
	End      string  `json:"end"`
	Reply    reply   `json:"reply"`
}

type stock struct {
	Name     string `json:"name"`
	Price    int64  `json:"price_cents"`
	Limit    int64  `json:"volume_limit"`
	Volume   int64  `json:"volume"`
	Sequence int64  `json:"sequence"`
}

type history struct {
	Stocks     []stock     `json:"stocks"`
	Operations []operation `json:"operations"`
}

// used is what a catalog remembers of a request id.
type used struct {
	by     request
	reply  reply
	number bool // whether the reply's number is known
}

// state is a stock, and the ids used for it, by id. Where exact is false its number is at least sequence.
type state struct {
	there         bool
	price, volume int64
	limit         int64
	sequence      int64
	exact         bool
	ids           []*used
}

func (s state) equal(other state) bool {
	if s.there != other.there || s.price != other.price || s.volume != other.volume || s.sequence != other.sequence ||
		s.exact != other.exact || len(s.ids) != len(other.ids) {
		return false
	}
	for place, one := range s.ids {
		if *one != *other.ids[place] {
			return false
		}
	}
	return true
}

// find gives what is remembered of an id, or nil, and its place.
func (s state) find(id string) (*used, int) {
	place := sort.Search(len(s.ids), func(at int) bool { return s.ids[at].by.ID >= id })
	if place < len(s.ids) && s.ids[place].by.ID == id {
		return s.ids[place], place
	}
	return nil, place
}

// remember gives the state with one id more.
func (s state) remember(place int, one *used) state {
	ids := make([]*used, 0, len(s.ids)+1)
	ids = append(ids, s.ids[:place]...)
	ids = append(ids, one)
	s.ids = append(ids, s.ids[place:]...)
	return s
}

// step is the sequential specification: whether a request may end so in a state, and the state behind it.
func step(s state, in request, out operation) (bool, state) {
	if in.Kind == "lookup" {
		return look(s, out)
	}
	if in.Kind == "trade" && in.ID != "" {
		known, place := s.find(in.ID)
		if known != nil {
			return again(s, known, in, out), s
		}
		if out.End == "refused" {
			return false, s
		}
		legal, after, said := change(s, in, out)
		return legal, after.remember(place, &used{in, said, out.End == "told" || said.Sequence == 0})
	}
	if out.End == "refused" {
		return false, s
	}
	legal, after, _ := change(s, in, out)
	return legal, after
}

// again says whether a second use of an id may end so. A first use of which nothing was heard has a number that nobody
// was told before.
func again(s state, known *used, in request, out operation) bool {
	switch out.End {
	case "unknown":
		return true
	case "refused":
		return known.by != in
	}
	said := known.reply
	if !known.number {
		if out.Reply.Sequence < said.Sequence {
			return false
		}
		said.Sequence = out.Reply.Sequence
	}
	return known.by == in && out.Reply == said
}

func look(s state, out operation) (bool, state) {
	if out.End == "unknown" {
		return true, s
	}
	if !s.there {
		return out.Reply == reply{Status: unknownStock}, s
	}
	status := ok
	if s.volume >= s.limit {
		status = suspended
	}
	if out.Reply.Status != status || out.Reply.Price != s.price || out.Reply.Volume != s.volume {
		return false, s
	}
	if s.exact {
		return out.Reply.Sequence == s.sequence, s
	}
	legal := out.Reply.Sequence >= s.sequence
	s.sequence, s.exact = out.Reply.Sequence, true
	return legal, s
}

// change applies a trade or an update: whether it may end so, the state behind it, and its reply.
func change(s state, in request, out operation) (bool, state, reply) {
	told := out.End == "told"
	if status := refusal(s, in); status != ok {
		said := reply{Status: status}
		return !told || out.Reply == said, s, said
	}
	if in.Kind == "trade" && s.volume+in.Quantity > s.limit {
		said := reply{Status: suspended, Volume: s.volume}
		return !told || out.Reply == said, s, said
	}
	if in.Kind == "trade" {
		s.volume += in.Quantity
	} else {
		s.price = in.Price
	}
	s.sequence++
	s.exact = told
	said := reply{Status: ok, Sequence: s.sequence}
	if in.Kind == "trade" {
		said.Volume = s.volume
	}
	if !told {
		return true, s, said
	}
	if out.Reply.Sequence < s.sequence {
		return false, s, said
	}
	s.sequence = out.Reply.Sequence
	said.Sequence = s.sequence
	return out.Reply == said, s, said
}

// refusal is why a request is refused whatever the volume, or ok.
func refusal(s state, in request) int {
	switch {
	case !s.there:
		return unknownStock
	case in.Kind == "update" && in.Price < 0:
		return invalidPrice
	case in.Kind == "trade" && (in.Quantity <= 0 || in.Quantity > math.MaxInt32):
		return invalidQuantity
	case in.Kind == "trade" && in.Side != 1 && in.Side != 2:
		return invalidSide
	}
	return ok
}

func model(start state) porcupine.Model {
	return porcupine.Model{
		Init: func() interface{} { return start },
		Step: func(before, in, out interface{}) (bool, interface{}) {
			return step(before.(state), in.(request), out.(operation))
		},
		Equal: func(one, other interface{}) bool { return one.(state).equal(other.(state)) },
	}
}

// judge says what is to be said of a history, stock by stock.
func judge(asked history) (string, error) {
	starts := map[string]state{}
	for _, each := range asked.Stocks {
		starts[each.Name] = state{true, each.Price, each.Volume, each.Limit, each.Sequence, true, nil}
	}
	byName, nameOf := map[string][]porcupine.Operation{}, map[string]string{}
	for place, each := range asked.Operations {
		in := each.Request
		in.Kind = each.Kind
		if in.ID != "" && nameOf[in.ID] != "" && nameOf[in.ID] != in.Name {
			return "", fmt.Errorf("id %s is used for several stocks, which this judge does not take", in.ID)
		}
		nameOf[in.ID] = in.Name
		returned := int64(math.MaxInt64)
		if each.Returned != nil {
			returned = *each.Returned
		}
		byName[in.Name] = append(byName[in.Name], porcupine.Operation{
			ClientId: place, Input: in, Call: each.Called, Output: each, Return: returned,
		})
	}
	until, decided := time.Now().Add(patience), true
	for name, operations := range byName {
		switch porcupine.CheckOperationsTimeout(model(starts[name]), operations, max(time.Until(until), time.Second)) {
		case porcupine.Illegal:
			return "not linearizable", nil
		case porcupine.Unknown:
			decided = false
		}
	}
	if !decided {
		return "not decided", nil
	}
	return "linearizable", nil
}

func main() {
	for _, name := range os.Args[1:] {
		data, err := os.ReadFile(name)
		var asked history
		if err == nil {
			err = json.Unmarshal(data, &asked)
		}
		var said string
		if err == nil {
			said, err = judge(asked)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "porcupine: %s: %v\n", name, err)
			os.Exit(2)
		}
		fmt.Printf("%s\t%s\n", name, said)
	}
}
