"""Python peers: servers in plain style, clients like the clients in other languages, and our server without a GIL."""
