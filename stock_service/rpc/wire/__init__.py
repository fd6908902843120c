"""Codecs and state machines of the project's protocols: sockets, HTTP/1.1, HTTP/2 and gRPC. No I/O."""
