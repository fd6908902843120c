"""Encoding of a time limit as Linux's ``struct timeval``, for the socket options SO_RCVTIMEO and SO_SNDTIMEO."""

from struct import Struct

_TIMEVAL = Struct("@ll")


def timeval(timeout_s: float) -> bytes:
    """Encodes a time limit in seconds. The result is 1 µs or more, since the kernel reads 0 as no time limit."""
    whole_s = int(timeout_s)
    return _TIMEVAL.pack(whole_s, max(1, int((timeout_s - whole_s) * 1e6)))
