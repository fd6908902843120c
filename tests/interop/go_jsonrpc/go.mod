module interop/jsonrpc

go 1.22
