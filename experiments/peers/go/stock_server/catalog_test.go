package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"peers/stockpb"
)

const buy = stockpb.Side_SIDE_BUY

// Trades fill a stock's volume up to its limit, and number the commits; a refusal is none.
func TestTrades(t *testing.T) {
	c := newCatalog([]stock{{"a", 1.15, 10}})
	for _, each := range []struct {
		name             string
		quantity         int64
		side             stockpb.Side
		status           stockpb.Status
		volume, sequence int64
	}{
		{"a", 6, buy, stockpb.Status_STATUS_OK, 6, 1},
		{"a", 5, buy, stockpb.Status_STATUS_SUSPENDED, 6, 0},
		{"a", 0, 0, stockpb.Status_STATUS_INVALID_QUANTITY, 0, 0},
		{"a", 1 << 31, buy, stockpb.Status_STATUS_INVALID_QUANTITY, 0, 0},
		{"a", 1, 3, stockpb.Status_STATUS_INVALID_SIDE, 0, 0},
		{"b", 0, 0, stockpb.Status_STATUS_UNKNOWN_STOCK, 0, 0},
		{"a", 4, stockpb.Side_SIDE_SELL, stockpb.Status_STATUS_OK, 10, 2},
	} {
		reply, err := c.tradeOnce(each.name, each.quantity, each.side, "")
		if err != nil || reply.Status != each.status || reply.Volume != each.volume || reply.Sequence != each.sequence {
			t.Errorf("%v: %v, %v", each, reply, err)
		}
	}
	if at := c.lookup("a"); at.Status != stockpb.Status_STATUS_SUSPENDED || at.PriceCents != 115 || at.Sequence != 2 {
		t.Error(at)
	}
}

// The same trade sent again has one effect; an id for another trade, and one that is too long, are faults.
func TestRequestIDs(t *testing.T) {
	c := newCatalog(defaultStocks)
	for range 2 {
		if reply, err := c.tradeOnce("FishCo", 3, buy, "one"); err != nil || reply.Volume != 3 || reply.Sequence != 1 {
			t.Error(reply, err)
		}
	}
	if _, err := c.tradeOnce("FishCo", 4, buy, "one"); err != errUsedID {
		t.Error(err)
	}
	if _, err := c.tradeOnce("FishCo", 4, buy, strings.Repeat("é", requestIDMax+1)); err != errLongID {
		t.Error(err)
	}
}

// Past the window the oldest id is forgotten, and no other.
func TestTheWindow(t *testing.T) {
	c := newCatalog(defaultStocks)
	for number := range idsMax + 1 {
		c.remember(string(rune(number+0x10000)), &first{})
	}
	if len(c.ids) != idsMax || c.ids[string(rune(0x10000))] != nil || c.ids[string(rune(0x10001))] == nil {
		t.Error(len(c.ids))
	}
}

// An update sets a price of 0 or more.
func TestUpdates(t *testing.T) {
	c := newCatalog(defaultStocks)
	if reply := c.update("FishCo", -1); reply.Status != stockpb.Status_STATUS_INVALID_PRICE || reply.Sequence != 0 {
		t.Error(reply)
	}
	if reply := c.update("FishCo", 0); reply.Status != stockpb.Status_STATUS_OK || reply.Sequence != 1 {
		t.Error(reply)
	}
	if reply := c.update("none", -1); reply.Status != stockpb.Status_STATUS_UNKNOWN_STOCK {
		t.Error(reply)
	}
	if at := c.lookup("FishCo"); at.PriceCents != 0 || at.Sequence != 1 {
		t.Error(at)
	}
}

// A catalog file gives the stocks; a bad one is refused and named.
func TestFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stocks.toml")
	for text, good := range map[string]bool{
		"[[stocks]]\nname = \"a\"\nprice = 15.99\nvolume_limit = 7\n": true,
		"[[stocks]]\nname = \"a\"\nprice = 15\nvolume_limit = 7\n":    true,
		"[[stocks]]\nname = \"a\"\nprice = -1\nvolume_limit = 7\n":    false,
		"stocks = 1\n": false,
		"":             false,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		stocks, err := load(file)
		if good != (err == nil) || (err != nil && !strings.Contains(err.Error(), file)) {
			t.Errorf("%q: %v, %v", text, stocks, err)
		}
	}
}
