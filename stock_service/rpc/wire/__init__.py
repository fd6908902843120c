"""The bytes of every protocol here: sockets, HTTP/1.1, HTTP/2 and gRPC, with the states of a connection. No I/O."""
