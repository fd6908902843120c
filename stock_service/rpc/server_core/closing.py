"""Ends of connections: lingering close, idle eviction, timeouts, and a budget of buffered bytes.

**Lingering close.** If a server closes a connection with unread bytes, the kernel resets the connection. The reset
destroys replies on their way to the client, and on some systems also replies that the client has not read yet. So after
the last reply the server half-closes the connection. Then the server reads and drops bytes until the client also ends
the connection. A client that stays and sends nothing must not delay the server. So the server closes the connection
once the client's kernel has acknowledged all bytes and no byte has come for ``QUIET_S``. A connection whose client
continues to send is closed after ``LINGER_S``. For a client that has not acknowledged all bytes, the server waits for
the read timeout, or for the grace.

**Idle eviction.** At the limit of connections, the connection that was idle for the longest time is closed for a new
connection. So clients that connect and send nothing keep no other client out. A connection with a current or very
recent request stays open.

**Age.** A client that keeps one connection for ever never reaches a server that was added later. So the age of
connections may be limited. The age varies by a tenth, so that connections that began together do not end together. At
this age the server tells the client to use another connection: by GOAWAY in HTTP/2, and by ``Connection: close`` with
the next reply in HTTP/1.1. The sockets protocol has only a goodbye, a last frame: the server answers the requests that
it has read, and the goodbye tells the client that later requests were not begun. After the grace the connection is
closed.

**Buffered bytes.** One budget bounds the bytes that a server holds: requests that are not whole or not begun, and
replies that clients do not take. The largest frame bounds each connection alone; a thousand connections together would
hold too much. Over the budget, the connection that holds the most bytes is closed, and then the next. So a connection
that holds few bytes stays open, even if many connections hold many bytes. Of connections that hold equally many bytes,
the connection that was silent longest is closed. The bytes that TLS keeps of a handshake or of half a record count too.
Left out: bytes in the kernel, which SO_RCVBUF limits for each connection.
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
"""Seconds without a byte from a client, after which the server expects no more bytes: the round trip of a far
network.
"""

LINGER_S = 1.0
"""Seconds for which a client may continue to send after it has acknowledged the server's last bytes."""

LOOK_S = 0.02
"""Seconds between two looks at the half-closed connections: the kernel reports no acknowledgement by itself."""

CLOSING_NS = 1_000_000
"""Longest time, in nanoseconds, for which half-closed connections are looked at and closed without a pause. Closing a
connection with unread bytes takes 50 µs. In a flood hundreds of connections must be closed at once.
"""


@dataclass(slots=True)
class Lingering:
    """State of a half-closed connection. Times are in nanoseconds."""

    since_ns: int
    """Time when it was half-closed."""
    heard_ns: int
    """Time when bytes last came, or ``since_ns``."""

    def may_end(self, now_ns: int) -> bool:
        """True if the client was quiet for ``QUIET_S``, or the connection has lingered for ``LINGER_S``: the connection
        may be closed once all bytes are acknowledged.
        """
        return now_ns - self.heard_ns > QUIET_S * 1e9 or now_ns - self.since_ns > LINGER_S * 1e9


class LingeringClose(Generic[Request]):
    """The connections of a server that were half-closed; the reading thread's. Times are ``time.monotonic_ns``."""

    def __init__(
        self, read_timeout_s: float, goodbye: bytes, close: Callable[[ServedConnection[Request]], None]
    ) -> None:
        """``close`` closes a connection and calls ``forget`` of this object. ``read_timeout_s`` is the limit for a
        client that takes no bytes. ``goodbye`` is the protocol's goodbye.
        """
        self._goodbye = goodbye
        self._read_ns = int(read_timeout_s * 1e9)
        self._close = close
        self.half_closed: dict[ServedConnection[Request], Lingering] = {}
        """The half-closed connections, only to be read by others."""
        self.next_look_ns = 0
        """Time when ``look`` is due."""
        # connections left from a look that took too long, some closed by now; None: no look has begun
        self._looking: Iterator[tuple[ServedConnection[Request], Lingering]] | None = None
        self._by_ns = 0  # when stopping: the end of waiting for clients that have all their replies

    def stop(self, grace_s: float) -> None:
        """Notes that the server stops. Any thread may call this."""
        self._by_ns = self._by_ns or time.monotonic_ns() + int(min(grace_s / 2, LINGER_S) * 1e9)

    def begin(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Half-closes a connection on which all bytes were sent."""
        if (self._by_ns or connection.retired) and not connection.parted:  # it is the server that ends it
            connection.parted = True
            connection.say(self._goodbye)
            if not connection.stream.finished:
                return  # half-closed later, once the goodbye is sent
        connection.stream.leave()
        self.half_closed[connection] = Lingering(now_ns, now_ns)
        try:
            connection.bytes.half_close()
        except OSError:
            pass  # the client has gone, which epoll will report

    def dismiss(self, connection: ServedConnection[Request]) -> None:
        """Closes an idle connection at once, after a goodbye: a request on its way was not begun."""
        connection.give_up(self._goodbye)
        self._close(connection)

    def drop(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Reads some bytes that will not be answered; closes the connection where the client has ended."""
        try:
            more = connection.bytes.drop()
        except BlockingIOError:
            return
        except OSError:
            more = 0  # the client is gone: nothing can be lost
        if more:
            self.half_closed[connection].heard_ns = now_ns
        else:
            self._close(connection)

    def look(self, now_ns: int) -> None:
        """Closes connections that may end and have all bytes acknowledged, and those whose client takes no bytes.

        May be called at any rate. A look that takes longer than ``CLOSING_NS`` continues at the next call, with the
        remaining connections.
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
        """Removes a closed connection."""
        self.half_closed.pop(connection, None)


EVICT_AFTER_S = 1.0
"""Time without events after which a connection may be evicted: an active client sends bytes sooner."""

_AT_ONCE = 64
"""Largest number of connections found in one look through all of them."""

_LOOK_S = 0.1
"""Time until the next look, after a look that found no idle connection."""


class IdleEviction(Generic[Request]):
    """Finds the connection to evict; the reading thread's. Times are in nanoseconds, on any one clock."""

    def __init__(self) -> None:
        self._found: list[ServedConnection[Request]] = []  # the longest idle last
        self._next_look_ns = 0

    def longest_idle(
        self, connections: Collection[ServedConnection[Request]], now_ns: int
    ) -> ServedConnection[Request] | None:
        """The connection to close for a new connection; None if no connection has been idle for long enough."""
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
"""Largest number of bytes, with TLS's own bytes, that were read from one connection and not cut into frames."""


def budget_bytes(buffered_bytes_max: int, frame_bytes_max: int) -> int:
    """The budget: ``buffered_bytes_max``, or the memory that one whole request needs, if this is more.

    A request that has come in part takes an eighth more memory than its bytes (``ServedStream.held_bytes``).
    """
    return max(buffered_bytes_max, frame_bytes_max + frame_bytes_max // 8 + CARRIER_BYTES)


class BufferedBytes(Generic[Request]):
    """The number of bytes that each connection holds, and their sum. For the reading thread."""

    def __init__(self, most: int, make_pay: Callable[[ServedConnection[Request]], None]) -> None:
        """``most`` is in bytes, for all connections together. ``make_pay`` closes a connection that holds too much."""
        self._most = most
        self._make_pay = make_pay
        self._total = 0
        self._held: dict[ServedConnection[Request], int] = {}

    def note(self, connection: ServedConnection[Request]) -> None:
        """Counts the bytes that a connection holds now. If all connections together hold too many bytes, closes the
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
        """Forgets a connection that holds nothing, or is closed."""
        self._total -= self._held.pop(connection, 0)


class Connections(Generic[Request]):
    """The open connections of a server, and the close of each connection at its time. For the reading thread.

    Only this class closes connections. So no descriptor can be closed, and its number reused, while other code uses the
    descriptor.
    """

    def __init__(
        self,
        listening: Listening,
        protocol: WireProtocol[Request],
        options: ServeOptions,
        own: ReadOptions,
        forget: Callable[[ServedConnection[Request]], object],
    ) -> None:
        """``forget`` is called for each connection that is closed."""
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
        """Seconds from one look at all timeouts to the next."""
        self.next_sweep_ns = 0
        """When ``sweep`` is due."""
        self.renewed = False
        """True if the next sweep is to ``renew`` all connections. Any thread sets it."""

    def room(self, now_ns: int) -> bool:
        """True if there may be one more connection. At the limit, closes the connection that was idle longest, if there
        is an idle connection.
        """
        if len(self.by_fd) < self._most:
            return True
        evicted = self._eviction.longest_idle(self.by_fd.values(), now_ns)
        if evicted is None:
            return False
        self.lingering.dismiss(evicted)
        return True

    def add(self, connection: ServedConnection[Request]) -> None:
        """Adds a connection that was accepted: it is read from now on."""
        self.by_fd[connection.fd] = connection
        self._listening.epoll.register(connection.fd, select.EPOLLIN)
        connection.events = select.EPOLLIN
        if self._age_s:
            age_s = self._age_s * self._rng.uniform(0.9, 1.075)  # a sweep may find it a fortieth of the age later
            connection.retires_ns = time.monotonic_ns() + int(age_s * 1e9)

    def close(self, connection: ServedConnection[Request]) -> None:
        """Closes a connection."""
        del self.by_fd[connection.fd]
        self.lingering.forget(connection)
        self.buffered.forget(connection)
        self._forget(connection)
        self._unwatch(connection)
        connection.close()
        self._listening.accept(True)

    def cut(self, connection: ServedConnection[Request]) -> None:
        """Ends a connection whose client has gone: closes it as soon as no worker holds it."""
        connection.cut()
        if connection.stream.done:
            self.close(connection)
        else:
            self._unwatch(connection)

    def sweep(self, now_ns: int, look_after: Callable[[ServedConnection[Request], int], object]) -> None:
        """Closes the connections whose time is over, and renews connections. ``look_after`` has sent their last bytes
        before.
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
        """Makes an old connection end; closes the connection if it has not ended within the grace."""
        stays = (READING, PAUSED, ENDING) if connection.retired else (READING, PAUSED)
        if connection.stream.state not in stays:
            connection.retires_ns = 0  # it ends by itself
        elif not connection.retired:
            connection.retires_ns = now_ns + self._grace_ns
            connection.retire()
        else:
            self.cut(connection)
            with suppress(OSError):  # it is closed
                connection.bytes.half_close()  # so that its client does not wait for requests that still run

    def _make_pay(self, connection: ServedConnection[Request]) -> None:
        """Closes a connection that holds too many bytes, with a fault: INTERNAL if requests may have had an effect."""
        if connection.events < 0:  # it was cut before, and a request of it has just ended
            return
        code = FaultCode.INTERNAL if connection.stream.owes else FaultCode.RESOURCE_EXHAUSTED
        connection.give_up(self._protocol.farewell(code, "the server holds too many bytes"))
        self.cut(connection)

    def _unwatch(self, connection: ServedConnection[Request]) -> None:
        """Removes a connection from epoll. Closing alone would not remove it, while a process that was forked just now
        has it open.
        """
        if connection.events >= 0:
            self._listening.epoll.unregister(connection.fd)
            connection.events = -1
