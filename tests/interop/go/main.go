// A client in another language, of a kind that anyone could write: interop/stockpb is generated, by the test beside this
// folder, from what the server's reflection says of itself. Nothing here comes from the project's own protos.
//
// go run . HOST:PORT NAME QUANTITY looks NAME up, buys QUANTITY of it with a request_id, again, and then one more with the
// same, sets its price, looks it up, asks for a stock that does not exist, and calls a method that does not. It prints
// every reply as one line, the status, then the reply's numbers; or "fault" and gRPC's code.
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
	"google.golang.org/grpc/status"

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
	for _, shares := range []int64{quantity, quantity, quantity + 1} {
		trade(ctx, client, &stockpb.TradeRequest{Name: name, Quantity: shares, Side: stockpb.Side_SIDE_BUY, RequestId: "once"})
	}
	update, err := client.Update(ctx, &stockpb.UpdateRequest{Name: name, PriceCents: 9999})
	check(err)
	fmt.Println("update", update.GetStatus(), update.GetSequence())
	lookup(ctx, client, name)
	lookup(ctx, client, "no such stock")
	err = connection.Invoke(ctx, "/stock_service.v1.StockService/Missing", &stockpb.LookupRequest{}, &stockpb.LookupResponse{})
	fmt.Println("fault", status.Code(err))
}

func trade(ctx context.Context, client stockpb.StockServiceClient, request *stockpb.TradeRequest) {
	reply, err := client.Trade(ctx, request)
	if err != nil {
		fmt.Println("fault", status.Code(err))
		return
	}
	fmt.Println("trade", reply.GetStatus(), reply.GetVolume(), reply.GetSequence())
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
