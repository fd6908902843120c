"""Clients in Python that print what the peers' clients print: the studies' arms beside those of other languages."""
