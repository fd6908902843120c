// A gRPC server in Go for the lean client's tests: the stock service's Lookup, and methods that try what it does not.
// No code is generated: messages are encoded here, by hand, so that building it needs nothing but Go and its modules.
//
// go run . prints "ready HOST:PORT" and serves until SIGTERM, then finishes what was accepted. With -keepalive it pings
// a connection that was silent for a second, and closes it if that is not answered within half of one.
//
//	/stock_service.v1.StockService/Lookup  every stock's price is 100 times the length of its name; volume and sequence 7
//	/interop.Trial/Fail                    the status in the first byte, with a text that is not ASCII
//	/interop.Trial/Large                   300,000 bytes
//	/interop.Trial/Echo                    the request
//	/interop.Trial/Late                    the request, after two seconds
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

const detail = "Kurs über 100 % – ß"

// raw passes messages on as the bytes that they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }
func (raw) Name() string                       { return "raw" }

func lookup(request []byte) ([]byte, error) {
	_, _, size := protowire.ConsumeTag(request)
	if size < 0 {
		return nil, status.Error(codes.InvalidArgument, "no LookupRequest")
	}
	name, size := protowire.ConsumeString(request[size:])
	if size < 0 {
		return nil, status.Error(codes.InvalidArgument, "no LookupRequest")
	}
	var reply []byte
	for field, value := range []int{1, 100 * len(name), 7, 7} { // status OK, price, volume, sequence
		reply = protowire.AppendTag(reply, protowire.Number(field+1), protowire.VarintType)
		reply = protowire.AppendVarint(reply, uint64(value))
	}
	return reply, nil
}

func fail(request []byte) ([]byte, error) {
	return nil, status.Error(codes.Code(request[0]), detail)
}

func method(name string, answer func([]byte) ([]byte, error)) grpc.MethodDesc {
	handler := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var request []byte
		if err := decode(&request); err != nil {
			return nil, err
		}
		reply, err := answer(request)
		return &reply, err
	}
	return grpc.MethodDesc{MethodName: name, Handler: handler}
}

func main() {
	log.SetFlags(0)
	pings := flag.Bool("keepalive", false, "ping silent connections")
	flag.Parse()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	options := []grpc.ServerOption{grpc.ForceServerCodec(raw{})}
	if *pings {
		patience := keepalive.ServerParameters{Time: time.Second, Timeout: time.Second / 2}
		options = append(options, grpc.KeepaliveParams(patience))
	}
	server := grpc.NewServer(options...)
	stock := grpc.ServiceDesc{ServiceName: "stock_service.v1.StockService", HandlerType: (*any)(nil)}
	stock.Methods = []grpc.MethodDesc{method("Lookup", lookup)}
	trial := grpc.ServiceDesc{ServiceName: "interop.Trial", HandlerType: (*any)(nil)}
	trial.Methods = []grpc.MethodDesc{
		method("Fail", fail),
		method("Large", func([]byte) ([]byte, error) { return bytes.Repeat([]byte("large "), 50_000), nil }),
		method("Echo", func(request []byte) ([]byte, error) { return request, nil }),
		method("Late", func(request []byte) ([]byte, error) { time.Sleep(2 * time.Second); return request, nil }),
	}
	server.RegisterService(&stock, struct{}{})
	server.RegisterService(&trial, struct{}{})

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		server.GracefulStop()
	}()
	fmt.Printf("ready %s\n", listener.Addr())
	if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		log.Fatal(err)
	}
}
