"""Connections that were half-closed, and when each may be closed for good.

A kernel that closes a connection with bytes unread resets it. The reset destroys replies that are still on their way,
and on some systems those that the client has not read yet. So after its last reply the server half-closes. Then it
reads and drops, until the client ends too. A client that stays and says nothing must not hold the server up. It is
closed once its kernel has acknowledged everything and nothing has come for ``QUIET_S``. One that goes on sending is
closed after ``LINGER_S``. Who has not acknowledged everything is waited for: for ``read_s``, or for the grace.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from stock_service.rpc.server_core.protocol import Request
from stock_service.rpc.server_core.served_connection import ServedConnection

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


class Departures(Generic[Request]):
    """The connections of a server that are leaving; the reading thread's. Times are ``time.monotonic_ns``."""

    def __init__(self, read_s: float, goodbye: bytes, close: Callable[[ServedConnection[Request]], None]) -> None:
        """``close`` closes a connection and has it forgotten here; ``read_s``: who takes nothing is closed then.

        ``goodbye`` is the protocol's.
        """
        self._goodbye = goodbye
        self._read_ns = int(read_s * 1e9)
        self._close = close
        self._leaving: dict[ServedConnection[Request], Leaving] = {}
        self._next_look_ns = 0
        self._by_ns = 0  # when stopping: who has everything is waited for no longer

    def __bool__(self) -> bool:
        """Whether any connection is leaving."""
        return bool(self._leaving)

    def stop(self, grace_s: float) -> None:
        """The server stops. From any thread."""
        self._by_ns = self._by_ns or time.monotonic_ns() + int(min(grace_s / 2, LINGER_S) * 1e9)

    def begin(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Half-closes a connection on which all is said."""
        if self._by_ns and not connection.parted:  # it is the server that ends it
            connection.parted = True
            connection.say(self._goodbye)
            if not connection.stream.finished:
                return  # once it is sent
        connection.stream.leave()
        self._leaving[connection] = Leaving(now_ns, now_ns)
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
            self._leaving[connection].heard_ns = now_ns
        else:
            self._close(connection)

    def look(self, now_ns: int) -> None:
        """Closes those that have everything, and have been quiet or have lingered; and those that take nothing.

        May be called as often as one likes.
        """
        if now_ns < self._next_look_ns:
            return
        self._next_look_ns = now_ns + int(LOOK_S * 1e9)
        late = 0 < self._by_ns < now_ns
        for connection, leaving in list(self._leaving.items()):
            given_up = not self._by_ns and now_ns - leaving.since_ns > self._read_ns
            if given_up or ((late or leaving.may_end(now_ns)) and not connection.bytes.unacknowledged()):
                self._close(connection)

    def forget(self, connection: ServedConnection[Request]) -> None:
        """It is closed."""
        self._leaving.pop(connection, None)
