"""What sends: an engine for each kind of client, and what they say on the wire."""
