package main

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"peers/stockpb"
)

const (
	quantityMax  = math.MaxInt32
	nameMax      = 64
	requestIDMax = 64
	idsMax       = 100_000 // request ids that are remembered; an older one is taken for a new one
)

var (
	errLongID = fmt.Errorf("request_id has too many characters, allowed: 1 to %d, or none at all", requestIDMax)
	errUsedID = errors.New("request_id was used for another trade: a new one needs a new id")
)

// stock is a stock as a catalog file has it.
type stock struct {
	Name        string  `toml:"name"`
	Price       float64 `toml:"price"` // dollars
	VolumeLimit int64   `toml:"volume_limit"`
}

var defaultStocks = []stock{
	{"GameStart", 15.99, 1_000_000},
	{"FishCo", 42.50, 1_000_000},
	{"BoarCo", 8.75, 1_000_000},
	{"MenhirCo", 101.20, 1_000_000},
}

// load reads a catalog file.
func load(file string) ([]stock, error) {
	var read struct {
		Stocks []stock `toml:"stocks"`
	}
	if _, err := toml.DecodeFile(file, &read); err != nil {
		return nil, fmt.Errorf("%s: %v", file, err)
	}
	if len(read.Stocks) == 0 {
		return nil, fmt.Errorf("%s: got no stock, allowed: tables [[stocks]]", file)
	}
	seen := map[string]bool{}
	for number, each := range read.Stocks {
		length := utf8.RuneCountInString(each.Name)
		if length < 1 || length > nameMax || each.Price < 0 || each.VolumeLimit < 0 || seen[each.Name] {
			return nil, fmt.Errorf("%s: stocks[%d]: allowed: a new name, a price and a limit of 0 or more", file, number+1)
		}
		seen[each.Name] = true
	}
	return read.Stocks, nil
}

// entry is a stock as it stands.
type entry struct {
	priceCents, volume, volumeLimit, sequence int64
}

// first is the first use of a request id.
type first struct {
	name     string
	quantity int64
	side     stockpb.Side
	reply    *stockpb.TradeResponse
}

// catalog is every stock, behind one mutex.
type catalog struct {
	lock    sync.Mutex // guards all that follows
	entries map[string]*entry
	commits int64
	ids     map[string]*first
	oldest  []string // a ring of the ids in ids, once it is full
	next    int      // where in the ring the next id goes
}

func newCatalog(stocks []stock) *catalog {
	c := &catalog{entries: make(map[string]*entry, len(stocks)), ids: map[string]*first{}}
	for _, each := range stocks {
		c.entries[each.Name] = &entry{priceCents: int64(math.Round(each.Price * 100)), volumeLimit: each.VolumeLimit}
	}
	return c
}

func (c *catalog) lookup(name string) *stockpb.LookupResponse {
	c.lock.Lock()
	defer c.lock.Unlock()
	found := c.entries[name]
	if found == nil {
		return &stockpb.LookupResponse{Status: stockpb.Status_STATUS_UNKNOWN_STOCK}
	}
	status := stockpb.Status_STATUS_OK
	if found.volume >= found.volumeLimit {
		status = stockpb.Status_STATUS_SUSPENDED
	}
	return &stockpb.LookupResponse{
		Status: status, PriceCents: found.priceCents, Volume: found.volume, Sequence: found.sequence,
	}
}

// tradeOnce trades, but for a request id that was used: it gives that trade's reply again.
func (c *catalog) tradeOnce(name string, quantity int64, side stockpb.Side, id string) (*stockpb.TradeResponse, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if id == "" {
		return c.trade(name, quantity, side), nil
	}
	if utf8.RuneCountInString(id) > requestIDMax {
		return nil, errLongID
	}
	if used := c.ids[id]; used != nil {
		if used.name != name || used.quantity != quantity || used.side != side {
			return nil, errUsedID
		}
		return used.reply, nil
	}
	reply := c.trade(name, quantity, side)
	c.remember(id, &first{name, quantity, side, reply})
	return reply, nil
}

func (c *catalog) remember(id string, use *first) {
	if len(c.oldest) < idsMax {
		c.oldest = append(c.oldest, id)
	} else {
		delete(c.ids, c.oldest[c.next])
		c.oldest[c.next] = id
		c.next = (c.next + 1) % idsMax
	}
	c.ids[id] = use
}

// trade needs the lock to be held.
func (c *catalog) trade(name string, quantity int64, side stockpb.Side) *stockpb.TradeResponse {
	found := c.entries[name]
	switch {
	case found == nil:
		return &stockpb.TradeResponse{Status: stockpb.Status_STATUS_UNKNOWN_STOCK}
	case quantity < 1 || quantity > quantityMax:
		return &stockpb.TradeResponse{Status: stockpb.Status_STATUS_INVALID_QUANTITY}
	case side != stockpb.Side_SIDE_BUY && side != stockpb.Side_SIDE_SELL:
		return &stockpb.TradeResponse{Status: stockpb.Status_STATUS_INVALID_SIDE}
	case quantity > found.volumeLimit-found.volume:
		return &stockpb.TradeResponse{Status: stockpb.Status_STATUS_SUSPENDED, Volume: found.volume}
	}
	c.commits++
	found.volume += quantity
	found.sequence = c.commits
	return &stockpb.TradeResponse{Status: stockpb.Status_STATUS_OK, Volume: found.volume, Sequence: c.commits}
}

func (c *catalog) update(name string, priceCents int64) *stockpb.UpdateResponse {
	c.lock.Lock()
	defer c.lock.Unlock()
	found := c.entries[name]
	switch {
	case found == nil:
		return &stockpb.UpdateResponse{Status: stockpb.Status_STATUS_UNKNOWN_STOCK}
	case priceCents < 0:
		return &stockpb.UpdateResponse{Status: stockpb.Status_STATUS_INVALID_PRICE}
	}
	c.commits++
	found.priceCents, found.sequence = priceCents, c.commits
	return &stockpb.UpdateResponse{Status: stockpb.Status_STATUS_OK, Sequence: c.commits}
}
