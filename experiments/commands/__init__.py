"""The commands of ``python -m experiments``. Each command is a module with ``add_options`` and ``run``."""
