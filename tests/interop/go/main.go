// A client in another language, of a kind that anyone could write: interop/stockpb is generated, by the test beside this
// folder, from what the server's reflection says of itself. Nothing here comes from the project's own protos.
//
// go run . HOST:PORT NAME QUANTITY looks NAME up, buys QUANTITY of it, looks it up again and asks for a stock that does
// not exist; it prints every reply as one line: the status, then the reply's numbers.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"interop/stockpb"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 4 {
		log.Fatal("usage: go run . HOST:PORT NAME QUANTITY")
	}
	quantity, err := strconv.ParseInt(os.Args[3], 10, 64)
	check(err)
	connection, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	client := stockpb.NewStockServiceClient(connection)
	name := os.Args[2]
	lookup(ctx, client, name)
	trade, err := client.Trade(ctx, &stockpb.TradeRequest{Name: name, Quantity: quantity, Side: stockpb.Side_SIDE_BUY})
	check(err)
	fmt.Println("trade", trade.GetStatus(), trade.GetVolume(), trade.GetSequence())
	lookup(ctx, client, name)
	lookup(ctx, client, "no such stock")
}

func lookup(ctx context.Context, client stockpb.StockServiceClient, name string) {
	reply, err := client.Lookup(ctx, &stockpb.LookupRequest{Name: name})
	check(err)
	fmt.Println("lookup", reply.GetStatus(), reply.GetPriceCents(), reply.GetVolume(), reply.GetSequence())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
