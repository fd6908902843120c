// The stock service on grpc-go as it comes: what it costs where no interpreter runs.
//
//	stock_server [--host HOST] [--port N] [--catalog FILE] [--grace-s S]
//
// It answers stock_service.v1.StockService of protos/, with the same statuses as the service in Python. The stocks are
// the default four, or those of a catalog file in TOML.
package main

import (
	"os"

	"peers/process"
)

const defaultPort = 50062

func main() {
	options := process.NewOptions("stock_server", defaultPort)
	file := options.Set.String("catalog", "", "stocks, in TOML; the default four unless said")
	options.Parse(os.Args[1:])
	stocks := defaultStocks
	if *file != "" {
		var err error
		if stocks, err = load(*file); err != nil {
			options.Refuse("--catalog: %v", err)
		}
	}
	os.Exit(process.Run(options, newServer(newCatalog(stocks))))
}
