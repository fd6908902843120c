"""Runs: the client processes, the null server, the floor, and the search for the highest rate. The null server is a
server that does nothing. The floor is a client's times on the null server.
"""
