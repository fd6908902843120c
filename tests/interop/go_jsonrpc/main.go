// A client of Go's own net/rpc/jsonrpc: trades and looks up, and prints what it got, a line each.
package main

import (
	"fmt"
	"log"
	"net/rpc/jsonrpc"
	"os"
)

type lookupRequest struct {
	Name string `json:"name"`
}

type lookupResponse struct {
	Status     int   `json:"status"`
	PriceCents int64 `json:"price_cents"`
	Volume     int64 `json:"volume"`
	Sequence   int64 `json:"sequence"`
}

type tradeRequest struct {
	Name     string `json:"name"`
	Quantity int64  `json:"quantity"`
	Side     int    `json:"side"`
}

type tradeResponse struct {
	Status   int   `json:"status"`
	Volume   int64 `json:"volume"`
	Sequence int64 `json:"sequence"`
}

func main() {
	client, err := jsonrpc.Dial("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var traded tradeResponse
	if err := client.Call("StockService.Trade", tradeRequest{"FishCo", 7, 1}, &traded); err != nil {
		log.Fatal(err)
	}
	fmt.Println(traded.Status, traded.Volume, traded.Sequence)

	var found [20]lookupResponse
	done := make(chan error, len(found))
	for i := range found { // all under way on one connection
		go func() { done <- client.Call("StockService.Lookup", lookupRequest{"FishCo"}, &found[i]) }()
	}
	for range found {
		if err := <-done; err != nil {
			log.Fatal(err)
		}
	}
	for _, each := range found {
		if each != found[0] {
			log.Fatal("two replies differ: ", each, found[0])
		}
	}
	fmt.Println(found[0].Status, found[0].PriceCents, found[0].Volume, found[0].Sequence)

	fmt.Println(client.Call("StockService.None", lookupRequest{}, &found[0]))
	fmt.Println(client.Call("StockService.Lookup", tradeRequest{"FishCo", 7, 1}, &found[0]))
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
}
