"""The processes of a run: clients, and the server that does nothing; the floor, the search for a rate."""
