"""Measurement of blocks: server processes, client processes, slices by turns, and the order of them all."""
