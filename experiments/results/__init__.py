"""Measurements as they are kept: blocks, rows, files with a version, and the machine. Nothing here measures."""
