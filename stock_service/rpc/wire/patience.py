"""How much a peer may ask for that is no work: the bound of every flood of frames. No I/O; the clock is given.

A frame that carries no message costs a server time and its sender nearly nothing: PING, SETTINGS, RST_STREAM, PRIORITY,
WINDOW_UPDATE, a DATA of a few bytes, HEADERS that come to nothing. Each costs one or more of a connection's credits, a
credit being some 5 to 10 µs. They come back with time, with each answered call, and with bytes sent, as a client that
takes much has to widen its windows. Who has none left floods. A call that is answered has paid for its own headers,
however long or new they are.
"""

from collections.abc import Callable

CREDITS_MAX = 1000
"""Credits at a time, and a second: some 5 ms of a server's time."""

CREDITS_FIRST = 400
"""Credits of a new connection: who is cut off may come again at once."""

CREDITS_PER_ANSWER = 16
"""An honest client sends four such frames a call at most; but of its calls most may be late, and be cancelled."""

BYTES_PER_CREDIT = 1024
"""Bytes sent for a credit: clients widen a window for 8 KiB and more, their stream's and their connection's."""

PINGS_MAX, PING_NS = 16, 10**9
"""PINGs while no call is answered, at most; in each so many nanoseconds, one is forgotten. Who keeps a connection alive
needs one in ten seconds. gRPC's own servers allow two, and one in five minutes."""


class Patience:
    """One connection's credits. One thread's at a time."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._credits = CREDITS_FIRST
        self._since_ns = now_ns()
        self._answered = 0
        self._sent_bytes = 0
        self._pings = 0
        self._pinged = (0, 0)  # calls answered and bytes sent at the last of them
        self._pinged_ns = self._since_ns

    def spend(self, answered: int, sent_bytes: int, cost: int = 1) -> bool:
        """Takes credits; whether there were so many. Given are the calls answered, and the bytes sent, in all."""
        self._credits -= cost
        if self._credits < 0:
            self._count(answered, sent_bytes)
        return self._credits >= 0

    def ping(self, answered: int, sent_bytes: int) -> bool:
        """Counts a PING; whether it was not one too many. Given is the same as to ``spend``."""
        now_ns, done = self._now_ns(), (answered, sent_bytes)
        if done != self._pinged:
            self._pings, self._pinged, self._pinged_ns = 0, done, now_ns
        forgotten = (now_ns - self._pinged_ns) // PING_NS
        self._pings = max(0, self._pings - forgotten) + 1
        self._pinged_ns += forgotten * PING_NS
        return self._pings <= PINGS_MAX

    def _count(self, answered: int, sent_bytes: int) -> None:
        """Gives what has been earned since this was last called."""
        now_ns = self._now_ns()
        earned = (now_ns - self._since_ns) * CREDITS_MAX // 10**9
        earned += (answered - self._answered) * CREDITS_PER_ANSWER + (sent_bytes - self._sent_bytes) // BYTES_PER_CREDIT
        self._since_ns, self._answered, self._sent_bytes = now_ns, answered, sent_bytes
        self._credits = min(CREDITS_MAX, self._credits + earned)
