"""Low-priority reads: one time budget for all reads that take much time and bring few requests.

The server reads a connection at low priority in these cases:

| the connection | reason |
|---|---|
| had more bytes than one read takes | the server reads other connections first |
| had refused requests within the last second | a refusal serves no client |
| sends frames that cost the server time and bring no request | such frames are a flood |
| is new, on a protocol with such frames | a client whose connection was closed may connect again |
| is LEAVING: the last reply was sent | the server drops its bytes |

The server reads all other connections at once, and begins the requests of these connections before any low-priority
read. So a client that sends little waits at most ``WHILE_NS`` for low-priority reads, even if many clients flood the
server.

While requests are under way, or the server reads other connections, the budget is a fifth of the reading thread's time.
Otherwise the budget is all of this thread's time. The time that any thread takes to decompress gzip messages counts as
time for reading.

The server takes the waiting connections in the order in which they joined the queue. So every client has its turn. But
every second turn is for a *cheap* connection. All low-priority reads of a cheap connection together have taken at most
``WHILE_NS``. So a new client does not wait for all costly connections.

| state of a connection | event | action | next state |
|---|---|---|---|
| read at once | bytes came | read | read at once |
| read at once | bytes came, in a case above | join the queue; epoll stops watching | waiting |
| waiting | its turn has come | read once | read at once |
| waiting | the connection was closed | leave the queue | – |

Only the reading thread uses this module. Left out: the wait of requests that the server has read (``queue.py``).
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
"""Time in nanoseconds after which low-priority reads pause. One read may take longer: the most costly header block
takes 2 ms.
"""

REST = 4
"""Time of the pause after low-priority reads, divided by the time of these reads, while other connections have work."""

PAUSE_S = 0.001
"""Longest sleep of the reading thread, in seconds, while connections wait for low-priority reads: epoll's smallest
unit.
"""


class LowPriorityReads(Generic[Request]):
    """Queue of one server's connections that wait for a low-priority read. Times are on ``time.monotonic_ns``."""

    def __init__(
        self,
        read: Callable[[ServedConnection[Request], int], object],
        look_after: Callable[[ServedConnection[Request], int], None],
    ) -> None:
        """``read`` reads or drops bytes of a connection once. ``look_after`` sets the events that epoll watches for a
        connection, by the connection's state.
        """
        self._read, self._look_after = read, look_after
        self.queue: OrderedDict[ServedConnection[Request], None] = OrderedDict()
        """Waiting connections, in the order in which they joined. Other code may only read this field."""
        self._cheap: OrderedDict[ServedConnection[Request], None] = OrderedDict()  # the cheap waiting connections
        self._cheap_next = True  # True: the next turn is for a cheap connection
        self._is_reading = False
        self._joined: list[ServedConnection[Request]] = []  # joined since the last ``serve``: epoll still watches them
        self._rests_until_ns = 0  # end of the pause after the last low-priority reads

    def join(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Adds a connection with unread bytes to the queue. Does nothing if the queue has the connection already."""
        if not connection.low_priority:
            connection.low_priority = True
            connection.first_ns = connection.first_ns or now_ns
            self.queue[connection] = None
            self._joined.append(connection)
            if not self._is_reading:  # during ``serve``, the cost of the connection's read is not known yet
                self._join_cheap(connection)

    def _join_cheap(self, connection: ServedConnection[Request]) -> None:
        if connection.low_priority and connection.cost_ns <= WHILE_NS:
            self._cheap[connection] = None

    def forget(self, connection: ServedConnection[Request]) -> None:
        """Removes a closed connection, so that Python can free the connection's memory at once."""
        if connection.low_priority:
            connection.low_priority = False
            self._leave(connection)
            if not self.queue:
                self._joined.clear()

    def serve(self, others: bool) -> None:
        """Reads waiting connections, for ``WHILE_NS`` at most. ``others`` is True if requests are under way, or other
        connections were just read: then ``serve`` reads nothing during the pause after low-priority reads.
        """
        now_ns = time.monotonic_ns()
        if not others or now_ns >= self._rests_until_ns:
            thread_ns, took_ns = time.thread_time_ns(), 0
            self._is_reading = True
            for _ in range(len(self.queue)):
                if not self.queue:  # reading a connection may close other connections
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
            for connection in self._joined:  # only now, so that this call reads each connection once
                self._join_cheap(connection)
            now_ns = time.monotonic_ns()
            self._rests_until_ns = now_ns + REST * took_ns
        joined, self._joined = self._joined, []
        for connection in joined:  # looking after a connection may close other connections
            if connection.low_priority and connection.events > 0 and connection.events & select.EPOLLIN:
                self._look_after(connection, now_ns)  # otherwise epoll would report the same bytes again and again

    def _next(self) -> ServedConnection[Request]:
        """Chooses the connection to read next, and removes it from the queue. If a cheap connection waits, every second
        choice is a cheap connection.
        """
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
        """Empties the queue at a stop: a stopping server reads no connection at low priority."""
        for connection in self.queue:
            connection.low_priority = False
        self.queue.clear()
        self._cheap.clear()
        self._joined.clear()
