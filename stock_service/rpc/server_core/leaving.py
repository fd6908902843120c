"""When a connection that was half-closed may be closed for good.

A kernel that closes a connection with bytes unread resets it. The reset destroys replies that are still on their way,
and on some systems those that the client has not read yet. So after its last reply the server half-closes. Then it
reads and drops, until the client ends too. A client that stays and says nothing must not hold the server up. It is
closed once its kernel has acknowledged everything and nothing has come for ``QUIET_S``. One that goes on sending is
closed after ``LINGER_S``. Who has not acknowledged everything is waited for: for ``read_s``, or for the grace.
"""

from dataclasses import dataclass

QUIET_S = 0.1
"""Seconds without a byte, after which a client is taken to have no more on its way: the round trip of a far network."""

LINGER_S = 1.0
"""Seconds for which a client may go on sending after the server's last word, which it has acknowledged."""

LOOK_S = 0.02
"""Seconds between two looks at the connections that are leaving: their kernels tell nobody of an acknowledgement."""


@dataclass(slots=True)
class Leaving:
    """One connection that was half-closed, on a clock in nanoseconds."""

    since_ns: int
    """When it was half-closed."""
    heard_ns: int
    """When something last came, or ``since_ns``."""

    def may_end(self, now_ns: int) -> bool:
        """Whether it may be closed if all is acknowledged: it is quiet, or has lingered."""
        return now_ns - self.heard_ns > QUIET_S * 1e9 or now_ns - self.since_ns > LINGER_S * 1e9
