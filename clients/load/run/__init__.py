"""Runs: the client processes, the null server (a server that does nothing), the floor (a client's times on the null
server), and the search for the highest rate."""
