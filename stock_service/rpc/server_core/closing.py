"""Ends of connections: lingering close, idle eviction, age limit, timeouts, and a budget of buffered bytes.

**Lingering close.** If a server closes a connection with unread bytes, the kernel resets the connection. The reset
destroys replies on their way to the client, and on some systems also replies that the client has not read yet. So after
the last reply the server half-closes the connection. Then the server reads and drops bytes until the client also ends
the connection. But a client that neither sends nor closes must not delay the server. So the server also closes the
connection once the client's kernel has acknowledged all bytes and no byte has come for ``QUIET_S``. If the client
continues to send, the server closes the connection after ``LINGER_S``. If the client's kernel does not acknowledge all
bytes, the server closes the connection after the read timeout. A stopping server closes the connection after the grace.

**Idle eviction.** If a connection comes when the number of connections is at its limit, the server closes the
connection that was idle for the longest time. So clients that connect and send nothing do not prevent other clients
from connecting. A connection with a current or very recent request stays open.

**Age.** A client that keeps its connection for ever never connects to a server that was added later. So an option
limits the age of connections. Each connection's age limit is varied at random, by a tenth at most. So connections that
began together end at different times. At its age limit the connection begins to end. The server tells the client to use
another connection: in HTTP/2 by GOAWAY, in HTTP/1.1 by ``Connection: close`` with the next reply. In the sockets
protocol the server answers the requests that it has already read, and then sends a *goodbye*. This last frame means:
the server has begun no later request. After the grace the server closes the connection.

**Buffered bytes.** One budget limits the bytes that a server holds: unfinished requests, requests that have not begun,
replies that clients do not take, and, with TLS, the bytes of a handshake or of a partial record. The limit of a frame's
size also limits the bytes of one connection. But a thousand such connections would hold too many bytes. If the sum of
all bytes is over the budget, the server closes the connection that holds the most bytes. The server repeats this step
until the sum is within the budget. So a connection that holds few bytes stays open. If several connections hold the
most bytes, the server closes the connection that was silent longest. Left out: bytes in the kernel, which SO_RCVBUF
limits for each connection.
"""

import math
import random
import select
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.server_core.connection import ServedConnection
from stock_service.rpc.server_core.listening import Listening
from stock_service.rpc.server_core.options import ReadOptions, ServeOptions
from stock_service.rpc.server_core.protocol import Request, WireProtocol
from stock_service.rpc.wire.served_stream import ENDING, PAUSED, READING, Overdue

QUIET_S = 0.1
"""Time in seconds: the round-trip time to a distant client. If no byte of a client has come for this time, the server
expects no more bytes.
"""

LINGER_S = 1.0
"""Seconds after the half-close for which a client may continue to send."""

LOOK_S = 0.02
"""Seconds between two looks. At each look the server searches the half-closed connections for those that it may close.
The kernel does not report by itself that a client's kernel has acknowledged all bytes.
"""

CLOSING_NS = 1_000_000
"""Longest time, in nanoseconds, of one look at the half-closed connections. Closing a connection with unread bytes
takes 50 µs, and a flood may bring hundreds of such connections at once.
"""


@dataclass(slots=True)
class Lingering:
    """State of a half-closed connection, which the server closes later. Times are on ``time.monotonic_ns``."""

    since_ns: int
    """Time of the half-close."""
    heard_ns: int
    """Time when bytes last came; ``since_ns`` before any bytes."""

    def may_end(self, now_ns: int) -> bool:
        """Returns True if no byte has come for ``QUIET_S``, or if ``LINGER_S`` have passed since the half-close. Then
        the connection may be closed once all bytes are acknowledged.
        """
        return now_ns - self.heard_ns > QUIET_S * 1e9 or now_ns - self.since_ns > LINGER_S * 1e9


class LingeringClose(Generic[Request]):
    """The half-closed connections of a server. Only the reading thread uses the object; ``stop`` is thread-safe. Times
    are on ``time.monotonic_ns``.
    """

    def __init__(
        self, read_timeout_s: float, goodbye: bytes, close: Callable[[ServedConnection[Request]], None]
    ) -> None:
        """``read_timeout_s`` is the longest time, in seconds, that a client may take to acknowledge all bytes.
        ``goodbye`` is the protocol's goodbye; may be empty. ``close`` closes a connection, and must call ``forget``.
        """
        self._goodbye = goodbye
        self._read_ns = int(read_timeout_s * 1e9)
        self._close = close
        self.half_closed: dict[ServedConnection[Request], Lingering] = {}
        """The half-closed connections. Other code may only read this field."""
        self.next_look_ns = 0
        """Time from which ``look`` searches the half-closed connections again."""
        # connections that a long look left for the next call, perhaps closed since then; None: no such look
        self._looking: Iterator[tuple[ServedConnection[Request], Lingering]] | None = None
        self._by_ns = 0  # when stopping: time limit for clients that have all their replies, and do not close

    def stop(self, grace_s: float) -> None:
        """Notes that the server is stopping. From now on, a client that has all its replies must close the connection
        within half of ``grace_s``, and within ``LINGER_S``. Thread-safe.
        """
        self._by_ns = self._by_ns or time.monotonic_ns() + int(min(grace_s / 2, LINGER_S) * 1e9)

    def begin(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Half-closes a connection on which all replies were sent. Sends the goodbye first if the server ends the
        connection.
        """
        if (self._by_ns or connection.retired) and not connection.parted:  # the server ends the connection
            connection.parted = True
            connection.say(self._goodbye)
            if not connection.stream.finished:
                return  # a later call half-closes the connection, once the goodbye was sent
        connection.stream.leave()
        self.half_closed[connection] = Lingering(now_ns, now_ns)
        try:
            connection.bytes.half_close()
        except OSError:
            pass  # the client has gone, which epoll will report

    def dismiss(self, connection: ServedConnection[Request]) -> None:
        """Sends a goodbye, and closes an idle connection at once. The server does not begin a request that arrives
        later.
        """
        connection.give_up(self._goodbye)
        self._close(connection)

    def drop(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Reads and drops bytes of a half-closed connection. Closes the connection if no more bytes can come."""
        try:
            more = connection.bytes.drop()
        except BlockingIOError:
            return
        except OSError:
            more = 0  # the client is gone, so a close can destroy no reply
        if more:
            self.half_closed[connection].heard_ns = now_ns
        else:
            self._close(connection)

    def look(self, now_ns: int) -> None:
        """Closes a half-closed connection whose bytes are all acknowledged, if ``may_end`` is True or the time limit of
        ``stop`` is over. Also closes a connection whose bytes are not acknowledged within the read timeout, unless the
        server is stopping.

        Does nothing before ``next_look_ns``. A look that takes longer than ``CLOSING_NS`` continues at the next call,
        with the remaining connections.
        """
        if now_ns < self.next_look_ns:
            return
        until_ns = time.monotonic_ns() + CLOSING_NS
        late = 0 < self._by_ns < now_ns
        if self._looking is None:
            self._looking = iter(list(self.half_closed.items()))
        for connection, lingering in self._looking:
            if connection not in self.half_closed:
                continue
            given_up = not self._by_ns and now_ns - lingering.since_ns > self._read_ns
            if given_up or ((late or lingering.may_end(now_ns)) and not connection.bytes.unacknowledged()):
                self._close(connection)
            if time.monotonic_ns() > until_ns:
                return
        self._looking = None
        self.next_look_ns = now_ns + int(LOOK_S * 1e9)

    def forget(self, connection: ServedConnection[Request]) -> None:
        """Removes a closed connection from ``half_closed``."""
        self.half_closed.pop(connection, None)


EVICT_AFTER_S = 1.0
"""Time in seconds. A connection without events for this time may be evicted: an active client sends bytes sooner."""

_AT_ONCE = 64
"""Largest number of idle connections that one search finds and keeps for later evictions."""

_LOOK_S = 0.1
"""Seconds until the next search, after a search that found no idle connection."""


class IdleEviction(Generic[Request]):
    """Finder of the connection to evict. Only the reading thread uses the object. All times are on the same clock."""

    def __init__(self) -> None:
        self._found: list[ServedConnection[Request]] = []  # idle connections of the last search, the longest idle last
        self._next_look_ns = 0

    def longest_idle(
        self, connections: Collection[ServedConnection[Request]], now_ns: int
    ) -> ServedConnection[Request] | None:
        """Returns the connection that has been idle for the longest time. The server may close this connection for a
        new one. Returns None if no connection has been idle for ``EVICT_AFTER_S``.
        """
        before_ns = now_ns - int(EVICT_AFTER_S * 1e9)
        while True:
            while self._found:
                connection = self._found.pop()
                if 0 < connection.stream.idle_since_ns <= before_ns:
                    return connection
            if now_ns < self._next_look_ns:
                return None
            idle = [each for each in connections if 0 < each.stream.idle_since_ns <= before_ns]
            idle.sort(key=lambda each: each.stream.idle_since_ns)
            self._found = idle[:_AT_ONCE][::-1]
            if not idle:
                self._next_look_ns = now_ns + int(_LOOK_S * 1e9)
                return None


CARRIER_BYTES = 65_536
"""Number of bytes that one connection may hold besides its largest request, for the next request and for TLS."""


def budget_bytes(buffered_bytes_max: int, frame_bytes_max: int) -> int:
    """Returns the budget in bytes: the larger of two numbers. One is ``buffered_bytes_max``. The other is
    ``CARRIER_BYTES`` plus the memory of a request with ``frame_bytes_max`` bytes.

    The memory of an unfinished request is an eighth larger than the request (``ServedStream.held_bytes``).
    """
    return max(buffered_bytes_max, frame_bytes_max + frame_bytes_max // 8 + CARRIER_BYTES)


class BufferedBytes(Generic[Request]):
    """Budget of the bytes that the connections of a server hold. Only the reading thread uses the object."""

    def __init__(self, most: int, make_pay: Callable[[ServedConnection[Request]], None]) -> None:
        """``most`` is the budget in bytes, for all connections. ``make_pay`` closes a connection that holds too many
        bytes.
        """
        self._most = most
        self._make_pay = make_pay
        self._total = 0
        self._held: dict[ServedConnection[Request], int] = {}

    def note(self, connection: ServedConnection[Request]) -> None:
        """Counts the bytes that a connection holds now. While all connections together are over the budget, closes the
        connection that holds the most bytes.
        """
        held = connection.held()
        self.forget(connection)
        if held:
            self._held[connection] = held
            self._total += held
        connection.holds = held > 0
        while self._total > self._most:
            payer = max(self._held, key=self._held.__getitem__)
            self.forget(payer)
            self._make_pay(payer)

    def forget(self, connection: ServedConnection[Request]) -> None:
        """Removes a connection's bytes from the sum, because the connection holds no bytes or is closed."""
        self._total -= self._held.pop(connection, 0)


class Connections(Generic[Request]):
    """The open connections of a server. Closes connections at their limits. Only the reading thread uses this object.

    Only this class closes connections.
    """

    def __init__(
        self,
        listening: Listening,
        protocol: WireProtocol[Request],
        options: ServeOptions,
        own: ReadOptions,
        forget: Callable[[ServedConnection[Request]], object],
    ) -> None:
        """``forget`` is called with each connection that ``close`` closes."""
        self.by_fd: dict[int, ServedConnection[Request]] = {}
        self.lingering: LingeringClose[Request] = LingeringClose(own.read_timeout_s, protocol.goodbye(), self.close)
        self.buffered: BufferedBytes[Request]
        self.buffered = BufferedBytes(budget_bytes(own.buffered_bytes_max, options.frame_bytes_max), self._make_pay)
        self._eviction: IdleEviction[Request] = IdleEviction()
        self._age_s, self._grace_ns = options.connection_age_s, int(options.connection_grace_s * 1e9)
        self._rng = random.Random()
        self._listening, self._protocol, self._forget = listening, protocol, forget
        self._most = options.connections_max
        self._idle_ns, self._read_ns = int(options.idle_timeout_s * 1e9), int(own.read_timeout_s * 1e9)
        self.sweep_s = max(0.05, min(options.idle_timeout_s, own.read_timeout_s, (self._age_s or math.inf) / 10) / 4)
        """Seconds between two sweeps, which check the timeouts of all connections."""
        self.next_sweep_ns = 0
        """Time from which the reading thread calls ``sweep`` again."""
        self.renewed = False
        """True if the next sweep must call ``ServedConnection.renew`` for all connections. Any thread may set this
        field.
        """

    def room(self, now_ns: int) -> bool:
        """Returns True if the server may accept one more connection. At the limit, first evicts the connection that
        ``IdleEviction`` finds.
        """
        if len(self.by_fd) < self._most:
            return True
        evicted = self._eviction.longest_idle(self.by_fd.values(), now_ns)
        if evicted is None:
            return False
        self.lingering.dismiss(evicted)
        return True

    def add(self, connection: ServedConnection[Request]) -> None:
        """Adds an accepted connection, and registers the connection in epoll."""
        self.by_fd[connection.fd] = connection
        self._listening.epoll.register(connection.fd, select.EPOLLIN)
        connection.events = select.EPOLLIN
        if self._age_s:
            age_s = self._age_s * self._rng.uniform(0.9, 1.075)  # a sweep may come a fortieth of the age later
            connection.retires_ns = time.monotonic_ns() + int(age_s * 1e9)

    def close(self, connection: ServedConnection[Request]) -> None:
        """Closes a connection at once, and removes it from every table."""
        del self.by_fd[connection.fd]
        self.lingering.forget(connection)
        self.buffered.forget(connection)
        self._forget(connection)
        self._unwatch(connection)
        connection.close()
        self._listening.accept(True)

    def cut(self, connection: ServedConnection[Request]) -> None:
        """Ends a connection whose client has gone. If a worker is still running a request of the connection, the server
        closes the connection after this request.
        """
        connection.cut()
        if connection.stream.done:
            self.close(connection)
        else:
            self._unwatch(connection)

    def sweep(self, now_ns: int, look_after: Callable[[ServedConnection[Request], int], object]) -> None:
        """Checks the timeouts and ages of all connections. If ``renewed`` is set, has the calls that watch for
        changes answered again. ``look_after`` is the function that takes a connection's next steps.
        """
        self.next_sweep_ns = now_ns + int(self.sweep_s * 1e9)
        renewed, self.renewed = self.renewed, False
        for connection in list(self.by_fd.values()):
            if renewed:
                connection.renew()
                look_after(connection, now_ns)
            if 0 < connection.retires_ns <= now_ns:
                self._retire(connection, now_ns)
                look_after(connection, now_ns)
            idle_ns = self._read_ns if connection.bytes.opening else self._idle_ns
            match connection.stream.overdue(now_ns, idle_ns, self._read_ns):
                case Overdue.REPLY:
                    self.cut(connection)
                case Overdue.REQUEST:
                    detail = f"a request was not whole within {self._read_ns / 1e9:g} s"
                    connection.reply(self._protocol.farewell(FaultCode.DEADLINE_EXCEEDED, detail))
                    look_after(connection, now_ns)
                case Overdue.IDLE:
                    self.lingering.dismiss(connection)
        self._listening.accept(True)

    def _retire(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Begins the end of a connection at its age limit. Cuts a connection that has not ended within the grace."""
        stays = (READING, PAUSED, ENDING) if connection.retired else (READING, PAUSED)
        if connection.stream.state not in stays:
            connection.retires_ns = 0  # the connection is ending already
        elif not connection.retired:
            connection.retires_ns = now_ns + self._grace_ns
            connection.retire()
        else:
            self.cut(connection)
            with suppress(OSError):  # ``cut`` may have closed the connection
                connection.bytes.half_close()  # tells the client not to wait for requests that still run

    def _make_pay(self, connection: ServedConnection[Request]) -> None:
        """Closes a connection that holds too many bytes. First sends a fault: INTERNAL if the server may have begun a
        request of the connection, otherwise RESOURCE_EXHAUSTED.
        """
        if connection.events < 0:  # the connection was cut before, and closes when its last request ends
            return
        code = FaultCode.INTERNAL if connection.stream.owes else FaultCode.RESOURCE_EXHAUSTED
        connection.give_up(self._protocol.farewell(code, "the server holds too many bytes"))
        self.cut(connection)

    def _unwatch(self, connection: ServedConnection[Request]) -> None:
        """Removes a connection from epoll. A close alone would not remove a connection that a forked process also has
        open.
        """
        if connection.events >= 0:
            self._listening.epoll.unregister(connection.fd)
            connection.events = -1
