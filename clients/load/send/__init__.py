"""Senders: an engine for each kind of client, and the bytes that it puts on the wire."""
