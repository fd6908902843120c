"""A time as Linux's ``struct timeval``, which SO_RCVTIMEO and SO_SNDTIMEO take."""

from struct import Struct

_TIMEVAL = Struct("@ll")


def timeval(timeout_s: float) -> bytes:
    """Converts a time in seconds, of 1 µs or more, to the kernel's struct timeval, in which 0 means for ever."""
    whole_s = int(timeout_s)
    return _TIMEVAL.pack(whole_s, max(1, int((timeout_s - whole_s) * 1e6)))
