"""Low-priority reads: connections that take long to read are read after all others, for a short while at a time.

One had more to be read than is read at once. The frames of another cost more than work does, or it is new and speaks a
protocol in which they may. On a third all is said, and what still comes is dropped. Who sends little is read first, and
is begun before these are. So it waits for one such while at most, however many peers flood the server. That holds too
where they come again as soon as they are cut off.

While others are at work, these take a fifth of the reading thread's time. Where nothing else comes, they take all of
it. They are served one after the other, each in its turn, so that a new client among them is never kept out.

The reading thread's alone. Left out: what a connection's requests then wait for (``queue.py``).
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
"""They are read for so long at a time. What one read brings is not interrupted: 2 ms where it is a header block that
is as costly as can be."""

REST = 4
"""While others are at work, these rest for so many times as long as they were read."""

LATELY_NS = 10_000_000
"""A thread of the executor may be at work on what it was given within so long, and then needs the GIL."""

PAUSE_S = 0.001
"""So long it is left to the executor's threads, between two whiles, where nothing else comes: epoll's finest unit."""


class LowPriorityReads(Generic[Request]):
    """Those of one server that wait to be read. Times are in nanoseconds, on ``time.monotonic_ns``."""

    def __init__(
        self,
        read: Callable[[ServedConnection[Request], int], object],
        look_after: Callable[[ServedConnection[Request], int], None],
    ) -> None:
        """``read`` reads or drops once what came; ``look_after`` has epoll watch a connection as its state wants."""
        self._read, self._look_after = read, look_after
        self.queue: OrderedDict[ServedConnection[Request], None] = OrderedDict()
        """Those that wait, the longest first; only to be looked at."""
        self.given_ns = 0
        """When the executor was last given anything."""
        self._joined: list[ServedConnection[Request]] = []  # since the last look at what epoll watches
        self._rests_until_ns = 0

    def join(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """There is something to be read on a connection."""
        if not connection.low_priority:
            connection.low_priority = True
            connection.first_ns = connection.first_ns or now_ns
            self.queue[connection] = None
            self._joined.append(connection)

    def forget(self, connection: ServedConnection[Request]) -> None:
        """It is closed: what it holds is not to wait here for its turn."""
        if connection.low_priority:
            connection.low_priority = False
            del self.queue[connection]
            if not self.queue:
                self._joined.clear()

    def pause_s(self, now_ns: int) -> float:
        """How long the reading thread may sleep while any wait."""
        return PAUSE_S if now_ns - self.given_ns < LATELY_NS else 0.0

    def serve(self, alone: bool) -> None:
        """Reads some of them; none while it is others' turn. ``alone``: nothing else came."""
        now_ns = time.monotonic_ns()
        if alone or now_ns >= self._rests_until_ns:
            began_ns, took_ns = time.thread_time_ns(), 0
            for _ in range(len(self.queue)):
                if not self.queue:  # reading one may close others
                    break
                connection, _ = self.queue.popitem(last=False)
                self._serve(connection, now_ns)
                took_ns = time.thread_time_ns() - began_ns
                if took_ns > WHILE_NS:
                    break
            now_ns = time.monotonic_ns()
            self._rests_until_ns = now_ns + REST * took_ns
        joined, self._joined = self._joined, []
        for connection in joined:  # looking after one may close others
            if connection.low_priority and connection.events > 0 and connection.events & select.EPOLLIN:
                self._look_after(connection, now_ns)  # or epoll would say again and again that it is to be read

    def _serve(self, connection: ServedConnection[Request], now_ns: int) -> None:
        connection.low_priority = False
        if connection.stream.state is READING or connection.stream.state is LEAVING:
            self._read(connection, now_ns)
        if not connection.low_priority and connection.events >= 0 and not connection.events & select.EPOLLIN:
            self._look_after(connection, now_ns)

    def clear(self) -> None:
        """All are read by others from here on."""
        for connection in self.queue:
            connection.low_priority = False
        self.queue.clear()
        self._joined.clear()
