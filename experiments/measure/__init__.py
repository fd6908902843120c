"""Measurement of blocks: the processes of servers and clients, and the slices or windows in which clients send."""
