"""The command ``recommend``: advice on the number and kind of a server's workers, by a model or by measurements."""
