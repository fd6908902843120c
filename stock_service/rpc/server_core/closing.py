"""How connections come to their end: lingering close, idle eviction, timeouts, and a budget of buffered bytes.

**Lingering close.** A kernel that closes a connection with bytes unread resets it. The reset destroys replies that are
still on their way, and on some systems those that the client has not read yet. So after its last reply the server
half-closes. Then it reads and drops, until the client ends too. A client that stays and says nothing must not hold the
server up: its connection is closed once its kernel has acknowledged everything and nothing has come for ``QUIET_S``. A
connection whose client goes on sending is closed after ``LINGER_S``. A client that has not acknowledged everything is
waited for: for the read timeout, or for the grace.

**Idle eviction.** At the limit of connections, the one on which nothing has happened for longest yields to a new one.
So clients that connect and say nothing keep nobody else out. A connection that is served, or has just been, stays.

**Age.** A client that keeps its connection for ever never hears of a server that was added. So a connection may have an
age, give or take a tenth, lest those that came together leave together. Then its client is told to go on with another
one: HTTP/2 has GOAWAY for that, HTTP/1.1 ``Connection: close`` with the next reply. The sockets protocol has only the
goodbye: what was read is answered, and of what came later the client knows that it was not begun. After the grace the
connection is closed.

**Buffered bytes.** One budget bounds what a server holds of requests that are not whole or not begun, and of replies
that nobody takes. Each connection alone is bounded by the largest frame; a thousand of them together would be too much.
Over the budget, the connection that holds most is closed, and then the next. So a connection that holds little is left
alone, however many hold much. Of those that hold as much, the one that was silent longest is closed. What TLS keeps of
a handshake or of half a record counts too. Left out: what the kernel holds, which SO_RCVBUF bounds for each connection.
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
"""Seconds without a byte, after which a client is taken to have no more on its way: the round trip of a far network."""

LINGER_S = 1.0
"""Seconds for which a client may go on sending after the server's last word, which it has acknowledged."""

LOOK_S = 0.02
"""Seconds between two looks at the half-closed connections: their kernels tell nobody of an acknowledgement."""

CLOSING_NS = 1_000_000
"""Half-closed connections are looked at and closed for so long at a time, in nanoseconds. To close one with bytes
unread takes 50 µs, and in a flood hundreds are due at once."""


@dataclass(slots=True)
class Lingering:
    """One connection that was half-closed, on a clock in nanoseconds."""

    since_ns: int
    """When it was half-closed."""
    heard_ns: int
    """When something last came, or ``since_ns``."""

    def may_end(self, now_ns: int) -> bool:
        """Whether it may be closed if all is acknowledged: it is quiet, or has lingered."""
        return now_ns - self.heard_ns > QUIET_S * 1e9 or now_ns - self.since_ns > LINGER_S * 1e9


class LingeringClose(Generic[Request]):
    """The connections of a server that were half-closed; the reading thread's. Times are ``time.monotonic_ns``."""

    def __init__(
        self, read_timeout_s: float, goodbye: bytes, close: Callable[[ServedConnection[Request]], None]
    ) -> None:
        """``close`` closes a connection and has it forgotten here; ``read_timeout_s``: for one that takes nothing.

        ``goodbye`` is the protocol's.
        """
        self._goodbye = goodbye
        self._read_ns = int(read_timeout_s * 1e9)
        self._close = close
        self.half_closed: dict[ServedConnection[Request], Lingering] = {}
        """Only to be looked at."""
        self.next_look_ns = 0
        """When ``look`` is due."""
        # the rest of a look that took too long: some of these may be closed by now; None: no look has begun
        self._looking: Iterator[tuple[ServedConnection[Request], Lingering]] | None = None
        self._by_ns = 0  # when stopping: who has everything is waited for no longer

    def stop(self, grace_s: float) -> None:
        """The server stops. From any thread."""
        self._by_ns = self._by_ns or time.monotonic_ns() + int(min(grace_s / 2, LINGER_S) * 1e9)

    def begin(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Half-closes a connection on which all is said."""
        if (self._by_ns or connection.retired) and not connection.parted:  # it is the server that ends it
            connection.parted = True
            connection.say(self._goodbye)
            if not connection.stream.finished:
                return  # once it is sent
        connection.stream.leave()
        self.half_closed[connection] = Lingering(now_ns, now_ns)
        try:
            connection.bytes.half_close()
        except OSError:
            pass  # the client has gone, which epoll will say

    def dismiss(self, connection: ServedConnection[Request]) -> None:
        """Closes an idle connection at once. Should a request be on its way, its client knows that it was not begun."""
        connection.give_up(self._goodbye)
        self._close(connection)

    def drop(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Reads some of what nobody will answer; closes where the client has ended."""
        try:
            more = connection.bytes.drop()
        except BlockingIOError:
            return
        except OSError:
            more = 0  # it is gone: there is nothing to lose
        if more:
            self.half_closed[connection].heard_ns = now_ns
        else:
            self._close(connection)

    def look(self, now_ns: int) -> None:
        """Closes those that have everything, and have been quiet or have lingered; and those that take nothing.

        May be called as often as one likes. A look that takes longer than ``CLOSING_NS`` goes on at the next call,
        with the connections that were not looked at.
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
        """It is closed."""
        self.half_closed.pop(connection, None)


EVICT_AFTER_S = 1.0
"""A connection may be evicted once nothing has happened on it for so long: a client at work says something sooner."""

_AT_ONCE = 64
"""Connections found in one look through all of them."""

_LOOK_S = 0.1
"""After a look that found none, the next one is so much later."""


class IdleEviction(Generic[Request]):
    """Finds the connection to evict; the reading thread's. Times are in nanoseconds, on any one clock."""

    def __init__(self) -> None:
        self._found: list[ServedConnection[Request]] = []  # the longest idle last
        self._next_look_ns = 0

    def longest_idle(
        self, connections: Collection[ServedConnection[Request]], now_ns: int
    ) -> ServedConnection[Request] | None:
        """The connection to close for a new one; None: none has been idle for long enough."""
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
"""At most for what was read of one connection and not cut into frames, and for TLS."""


def budget_bytes(buffered_bytes_max: int, frame_bytes_max: int) -> int:
    """The budget: as asked, but never so little that one whole request would exceed it by itself.

    While it comes, a request takes an eighth more than its bytes (``ServedStream.held_bytes``).
    """
    return max(buffered_bytes_max, frame_bytes_max + frame_bytes_max // 8 + CARRIER_BYTES)


class BufferedBytes(Generic[Request]):
    """The sum, and who has which part of it. The reading thread's."""

    def __init__(self, most: int, make_pay: Callable[[ServedConnection[Request]], None]) -> None:
        """``most``: bytes, of all connections together. ``make_pay`` closes one that holds too much."""
        self._most = most
        self._make_pay = make_pay
        self._total = 0
        self._held: dict[ServedConnection[Request], int] = {}

    def note(self, connection: ServedConnection[Request]) -> None:
        """Counts what a connection holds now. Where all hold too much, whoever holds most pays."""
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
        """It holds nothing, or is closed."""
        self._total -= self._held.pop(connection, 0)


class Connections(Generic[Request]):
    """The open connections of a server, and who of them is closed when; the reading thread's.

    A connection is closed here alone, so no descriptor can be closed, and its number reused, under another's hands.
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
        self._read_timeout_s, self._idle_ns, self._read_ns = (
            own.read_timeout_s,
            int(options.idle_timeout_s * 1e9),
            int(own.read_timeout_s * 1e9),
        )
        self.sweep_s = max(0.05, min(options.idle_timeout_s, own.read_timeout_s, self._age_s or math.inf) / 4)
        """Seconds from one look at all timeouts to the next."""
        self.next_sweep_ns = 0
        """When ``sweep`` is due."""
        self.renewed = False
        """Whether the next sweep is to ``renew`` all connections; set by any thread."""

    def room(self, now_ns: int) -> bool:
        """Whether there may be one more connection; at the limit the longest idle one yields, if any does."""
        if len(self.by_fd) < self._most:
            return True
        evicted = self._eviction.longest_idle(self.by_fd.values(), now_ns)
        if evicted is None:
            return False
        self.lingering.dismiss(evicted)
        return True

    def add(self, connection: ServedConnection[Request]) -> None:
        """A connection was accepted: it is read from now on."""
        self.by_fd[connection.fd] = connection
        self._listening.epoll.register(connection.fd, select.EPOLLIN)
        connection.events = select.EPOLLIN
        if self._age_s:
            connection.retires_ns = time.monotonic_ns() + int(self._age_s * self._rng.uniform(0.9, 1.1) * 1e9)

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
        """The client has gone: closes the connection as soon as no worker holds it."""
        connection.cut()
        if connection.stream.done:
            self.close(connection)
        else:
            self._unwatch(connection)

    def sweep(self, now_ns: int, look_after: Callable[[ServedConnection[Request], int], object]) -> None:
        """Closes the connections whose time is up, and renews. ``look_after`` has sent what they have to say."""
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
                    detail = f"a request was not whole within {self._read_timeout_s:g} s"
                    connection.reply(self._protocol.farewell(FaultCode.DEADLINE_EXCEEDED, detail))
                    look_after(connection, now_ns)
                case Overdue.IDLE:
                    self.lingering.dismiss(connection)
        self._listening.accept(True)

    def _retire(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Has an old connection end; closes one that has not within the grace."""
        stays = (READING, PAUSED, ENDING) if connection.retired else (READING, PAUSED)
        if connection.stream.state not in stays:
            connection.retires_ns = 0  # it ends by itself
        elif not connection.retired:
            connection.retires_ns = now_ns + self._grace_ns
            connection.retire()
        elif connection.stream.idle:
            self.lingering.dismiss(connection)
        else:
            self.cut(connection)
            with suppress(OSError):  # it is closed
                connection.bytes.half_close()  # so that its client need not wait for what is still at work

    def _make_pay(self, connection: ServedConnection[Request]) -> None:
        """Cuts a connection that holds too much. Of requests that may be begun nobody says that they had no effect."""
        if connection.events < 0:  # it was cut and told before, and a request of it has just ended
            return
        code = FaultCode.INTERNAL if connection.stream.owes else FaultCode.RESOURCE_EXHAUSTED
        connection.give_up(self._protocol.farewell(code, "the server holds too many bytes"))
        self.cut(connection)

    def _unwatch(self, connection: ServedConnection[Request]) -> None:
        """Has epoll forget a connection: closing alone would not, while a process forked just now has it open."""
        if connection.events >= 0:
            self._listening.epoll.unregister(connection.fd)
            connection.events = -1
