"""Servers in Python as anybody would write them, clients like those of other languages, and ours without a GIL."""
