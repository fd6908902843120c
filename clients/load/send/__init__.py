"""Senders: for each kind of client, the code that sends requests and receives replies."""
