"""The commands of ``python -m experiments``. Each command is a module with ``add_options`` and ``run``."""

PROGRAM = "python -m experiments"

FAILED_EXIT = 1
"""Exit code if a server or a client failed, or if a check found a difference."""
