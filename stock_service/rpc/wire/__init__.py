"""The sockets transport's bytes."""
