"""Histories: the requests, replies and times of clients, and the check that a sequential order explains a history."""
