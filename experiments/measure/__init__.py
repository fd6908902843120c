"""Measurement of blocks: starts the processes of servers and clients, and observes the slices or windows in which
clients send."""
