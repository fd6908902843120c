"""Runs: the client processes, the floor (a client's times on a server that does nothing), and the search for the
highest rate.
"""
