"""Whether this Python has a GIL: then one thread of a process computes at a time."""

import sys


def has_gil() -> bool:
    """False in a free-threaded build whose GIL is off."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())
