"""Protection against floods of HTTP/2 frames: a limit on frames without a message. No I/O; the caller passes the clock.

A frame without a message costs the server processor time, and the sender nearly nothing. Such frames are PING,
SETTINGS, RST_STREAM, PRIORITY, WINDOW_UPDATE, DATA of a few bytes, and HEADERS whose call fails. Each such frame costs
the connection one or more *credits*. One credit stands for some 5 to 10 µs of the server's time. A connection earns
credits with time, with answered calls, and with the bytes that the server sends: a client that receives many bytes must
send WINDOW_UPDATE. If a connection has no credits left, its frames count as a flood. The headers of an answered call
cost nothing, whether long or short, known or new.
"""

from collections.abc import Callable

CREDITS_MAX = 1000
"""Largest number of credits that a connection may have, and number of credits that a connection earns in a second.
These 1000 credits stand for at least 5 ms of a server's time.
"""

CREDITS_FIRST = 400
"""Number of credits of a new connection. The number is below ``CREDITS_MAX``: a client may connect again at once when
the server has closed its connection.
"""

CREDITS_PER_ANSWER = 16
"""Number of credits that an answered call earns. An honest client sends at most four frames without a message for a
call. An answered call earns more than four credits, since a client may also cancel late calls, which earn no credits.
"""

BYTES_PER_CREDIT = 1024
"""Number of bytes that the server must send until the connection earns one credit. A client's WINDOW_UPDATE widens a
window by 8 KiB or more.
"""

PINGS_MAX, PING_NS = 16, 10**9
"""Largest count of PINGs while the server answers no call and sends no byte. The count falls by 1 after each
``PING_NS`` nanoseconds. A client that keeps its connection alive needs one PING in ten seconds. gRPC's own servers
allow two PINGs, and then one PING in five minutes.
"""


class Patience:
    """Credits and PINGs of one connection. Not thread-safe."""

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
        """Takes ``cost`` credits; returns False if the connection had too few credits. ``answered`` and ``sent_bytes``
        are totals of the connection: the answered calls, and the bytes that the server has sent.
        """
        self._credits -= cost
        if self._credits < 0:
            self._count(answered, sent_bytes)
        return self._credits >= 0

    def ping(self, answered: int, sent_bytes: int) -> bool:
        """Counts a PING; returns False after too many PINGs. ``answered`` and ``sent_bytes`` are totals, as in
        ``spend``.
        """
        now_ns, done = self._now_ns(), (answered, sent_bytes)
        if done != self._pinged:
            self._pings, self._pinged, self._pinged_ns = 0, done, now_ns
        forgotten = (now_ns - self._pinged_ns) // PING_NS
        self._pings = max(0, self._pings - forgotten) + 1
        self._pinged_ns += forgotten * PING_NS
        return self._pings <= PINGS_MAX

    def _count(self, answered: int, sent_bytes: int) -> None:
        """Adds the credits that the connection has earned since the last call of this method."""
        now_ns = self._now_ns()
        earned = (now_ns - self._since_ns) * CREDITS_MAX // 10**9
        earned += (answered - self._answered) * CREDITS_PER_ANSWER + (sent_bytes - self._sent_bytes) // BYTES_PER_CREDIT
        self._since_ns, self._answered, self._sent_bytes = now_ns, answered, sent_bytes
        self._credits = min(CREDITS_MAX, self._credits + earned)
