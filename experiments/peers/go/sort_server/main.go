// A server that sorts, on Go's net/rpc or on gRPC. The sorting is the same, so that the two differ in the mechanism.
//
//	sort_server --mechanism net-rpc|grpc [--host HOST] [--port N] [--grace-s S]
//
// net-rpc: gob over TCP, the service SortService with MergeSortRemote and QuickSortRemote; a goroutine for each
// request. grpc: experiments.v1.SortService of protos/, on grpc-go as it comes.
package main

import (
	"os"

	"peers/process"
)

const defaultPort = 50061

func main() {
	options := process.NewOptions("sort_server", defaultPort)
	mechanism := options.Set.String("mechanism", "", "net-rpc or grpc")
	options.Parse(os.Args[1:])
	var server process.Server
	switch *mechanism {
	case "net-rpc":
		server = newNetRPC()
	case "grpc":
		server = newGRPC()
	default:
		options.Refuse("--mechanism: got %q, allowed: net-rpc, grpc", *mechanism)
	}
	os.Exit(process.Run(options, server))
}
