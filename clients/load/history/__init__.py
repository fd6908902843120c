"""Histories of clients: requests, replies and times, and the check that one sequential order of the requests explains
all replies."""
