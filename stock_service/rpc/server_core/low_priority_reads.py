"""Low-priority reads: one time budget for all reads that cost more time than the requests in them are worth.

A connection is read at low priority in these cases:

| the connection | reason |
|---|---|
| had more bytes than one read takes | other connections are read first |
| was refused requests within the last second | refusing serves no client |
| sends frames that cost more than they ask for | such frames are a flood |
| is new, on a protocol with such frames | a peer that was cut off may come again |
| is LEAVING: the last reply was sent | its bytes are dropped |

Other connections are read at once. The requests of other connections are begun before any low-priority read. So a
client that sends little waits for low-priority reads for at most ``WHILE_NS``, however many peers flood the server.

The budget is a fifth of the reading thread's time while requests are under way or other connections are read. Otherwise
the budget is all of the thread's time. Decompressing messages in gzip counts as reading, on any thread.

Connections are read in the order in which they joined the queue. So a new client is never kept out. But every second
read is for a cheap connection: all its low-priority reads together took at most ``WHILE_NS``. So a new client does not
wait for all costly connections that joined earlier.

| state | event | action | next state |
|---|---|---|---|
| at once | bytes came | read | at once |
| at once | bytes came, in a case above | join the queue; epoll watches no more | waiting |
| waiting | the turn has come | read once | at once |
| waiting | closed | leave the queue | – |

For the reading thread alone. Left out: the wait of a connection's requests after the read (``queue.py``).
"""

import select
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic

from stock_service.rpc.server_core.connection import ServedConnection
from stock_service.rpc.server_core.protocol import Request
from stock_service.rpc.wire.served_stream import LEAVING, READING

WHILE_NS = 1_000_000
"""Time for which low-priority reads continue without a pause. The work of one read is not interrupted: 2 ms for the
most costly header block.
"""

REST = 4
"""Ratio of the pause after low-priority reads to the time of these reads, while other connections are at work."""

PAUSE_S = 0.001
"""Seconds between two looks of the reading thread at the executor, while low-priority reads pause: epoll's smallest
unit.
"""


class LowPriorityReads(Generic[Request]):
    """The connections of one server that wait to be read. Times are in nanoseconds, on ``time.monotonic_ns``."""

    def __init__(
        self,
        read: Callable[[ServedConnection[Request], int], object],
        look_after: Callable[[ServedConnection[Request], int], None],
    ) -> None:
        """``read`` reads or drops the bytes of a connection once. ``look_after`` sets the events that epoll watches, by
        the connection's state.
        """
        self._read, self._look_after = read, look_after
        self.queue: OrderedDict[ServedConnection[Request], None] = OrderedDict()
        """Connections that wait, the longest first; only to be read by others."""
        self._cheap: OrderedDict[ServedConnection[Request], None] = OrderedDict()  # the cheap ones, in the same order
        self._cheap_next = True  # True: the next turn is theirs
        self._is_reading = False
        self._joined: list[ServedConnection[Request]] = []  # since the last change of the events that epoll watches
        self._rests_until_ns = 0

    def join(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Adds a connection that has bytes to read."""
        if not connection.low_priority:
            connection.low_priority = True
            connection.first_ns = connection.first_ns or now_ns
            self.queue[connection] = None
            self._joined.append(connection)
            if not self._is_reading:  # otherwise it was read just now, and its cost is not known yet
                self._join_cheap(connection)

    def _join_cheap(self, connection: ServedConnection[Request]) -> None:
        if connection.low_priority and connection.cost_ns <= WHILE_NS:
            self._cheap[connection] = None

    def forget(self, connection: ServedConnection[Request]) -> None:
        """Removes a connection that is closed, so that its memory does not wait for a turn."""
        if connection.low_priority:
            connection.low_priority = False
            self._leave(connection)
            if not self.queue:
                self._joined.clear()

    def serve(self, others: bool) -> None:
        """Reads waiting connections. ``others`` is True if requests are under way, or other connections were read just
        now.
        """
        now_ns = time.monotonic_ns()
        if not others or now_ns >= self._rests_until_ns:
            thread_ns, took_ns = time.thread_time_ns(), 0
            self._is_reading = True
            for _ in range(len(self.queue)):
                if not self.queue:  # reading one may close others
                    break
                connection = self._next()
                self._serve(connection, now_ns)
                before_ns, thread_ns = thread_ns, time.thread_time_ns()
                cost_ns, connection.later_ns = thread_ns - before_ns + connection.later_ns, 0
                connection.cost_ns += cost_ns
                took_ns += cost_ns
                if took_ns > WHILE_NS:
                    break
            self._is_reading = False
            for connection in self._joined:  # only now, so that each is read once in this round
                self._join_cheap(connection)
            now_ns = time.monotonic_ns()
            self._rests_until_ns = now_ns + REST * took_ns
        joined, self._joined = self._joined, []
        for connection in joined:  # looking after one may close others
            if connection.low_priority and connection.events > 0 and connection.events & select.EPOLLIN:
                self._look_after(connection, now_ns)  # without this, epoll would report its bytes again and again

    def _next(self) -> ServedConnection[Request]:
        """Takes the next connection out of the queue."""
        connection = next(iter(self._cheap if self._cheap and self._cheap_next else self.queue))
        self._cheap_next = not self._cheap_next
        self._leave(connection)
        return connection

    def _leave(self, connection: ServedConnection[Request]) -> None:
        del self.queue[connection]
        self._cheap.pop(connection, None)

    def _serve(self, connection: ServedConnection[Request], now_ns: int) -> None:
        connection.low_priority = False
        if connection.stream.state is READING or connection.stream.state is LEAVING:
            self._read(connection, now_ns)
        if not connection.low_priority and connection.events >= 0 and not connection.events & select.EPOLLIN:
            self._look_after(connection, now_ns)

    def clear(self) -> None:
        """Empties the queue: a stopping server reads every connection at once."""
        for connection in self.queue:
            connection.low_priority = False
        self.queue.clear()
        self._cheap.clear()
        self._joined.clear()
