"""Limit on frames that bring no work, which stops every flood of frames. No I/O; the caller passes the clock.

A frame that carries no message costs a server time and its sender nearly nothing. Such frames are PING, SETTINGS,
RST_STREAM, PRIORITY, WINDOW_UPDATE, a DATA of a few bytes, and HEADERS whose call fails. Each of them costs one or more
of a connection's credits; a credit is some 5 to 10 µs. Credits come back with time, with each answered call, and with
bytes sent: a client that receives many bytes must widen its windows. A client that has used all credits floods the
server. An answered call costs nothing for its own headers, whether long or short, known or new.
"""

from collections.abc import Callable

CREDITS_MAX = 1000
"""Largest number of credits at a time, and credits earned a second: some 5 ms of a server's time."""

CREDITS_FIRST = 400
"""Credits of a new connection: fewer, since a peer whose connection was closed may connect again at once."""

CREDITS_PER_ANSWER = 16
"""Credits for an answered call. An honest client sends at most four such frames for a call; but it may cancel most of
its calls because they are late.
"""

BYTES_PER_CREDIT = 1024
"""Number of bytes sent for one credit: clients widen a window, of a stream or the connection, for 8 KiB and more."""

PINGS_MAX, PING_NS = 16, 10**9
"""Largest number of PINGs while no call is answered, and the nanoseconds after which one of them is forgotten. A client
that keeps its connection alive needs one PING in ten seconds. gRPC's own servers allow two PINGs, and then one
PING in five minutes.
"""


class Patience:
    """Credits of one connection. For one thread at a time."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._credits = CREDITS_FIRST
        self._since_ns = now_ns()
        self._answered = 0
        self._sent_bytes = 0
        self._pings = 0
        self._pinged = (0, 0)  # calls answered and bytes sent at the last PING
        self._pinged_ns = self._since_ns

    def spend(self, answered: int, sent_bytes: int, cost: int = 1) -> bool:
        """Takes credits; returns False if too few credits were left. ``answered`` and ``sent_bytes`` are the totals of
        answered calls and sent bytes.
        """
        self._credits -= cost
        if self._credits < 0:
            self._count(answered, sent_bytes)
        return self._credits >= 0

    def ping(self, answered: int, sent_bytes: int) -> bool:
        """Counts a PING; returns False after too many PINGs. The arguments are the same as for ``spend``."""
        now_ns, done = self._now_ns(), (answered, sent_bytes)
        if done != self._pinged:
            self._pings, self._pinged, self._pinged_ns = 0, done, now_ns
        forgotten = (now_ns - self._pinged_ns) // PING_NS
        self._pings = max(0, self._pings - forgotten) + 1
        self._pinged_ns += forgotten * PING_NS
        return self._pings <= PINGS_MAX

    def _count(self, answered: int, sent_bytes: int) -> None:
        """Adds the credits earned since the last call of this."""
        now_ns = self._now_ns()
        earned = (now_ns - self._since_ns) * CREDITS_MAX // 10**9
        earned += (answered - self._answered) * CREDITS_PER_ANSWER + (sent_bytes - self._sent_bytes) // BYTES_PER_CREDIT
        self._since_ns, self._answered, self._sent_bytes = now_ns, answered, sent_bytes
        self._credits = min(CREDITS_MAX, self._credits + earned)
