"""The commands of ``python -m experiments``, a module each: ``add_options`` and ``run``."""
