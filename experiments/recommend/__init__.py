"""The command ``recommend``: the number and kind of workers that a server should have. See its README."""
