"""The command ``recommend``: how many workers a server should have, and of which kind. See its README."""
