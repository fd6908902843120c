"""Measurement of blocks: processes of servers and clients, slices or windows, and their order."""
