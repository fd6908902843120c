"""Which connection yields to a new one where there may be no more: the one on which nothing has happened for longest.

So clients that connect and say nothing keep nobody else out. One that is served, or has just been, yields to nobody.
"""

from collections.abc import Collection
from typing import Generic

from stock_service.rpc.server_core.protocol import Request
from stock_service.rpc.server_core.served_connection import ServedConnection

YIELD_AFTER_S = 1.0
"""A connection yields once nothing has happened on it for so long: a client that is at work says something sooner."""

_AT_ONCE = 64
"""Connections found in one look through all of them."""

_LOOK_S = 0.1
"""After a look that found none, the next one is so much later."""


class Yielding(Generic[Request]):
    """Finds them; the reading thread's. Times are in nanoseconds, on any one clock."""

    def __init__(self) -> None:
        self._found: list[ServedConnection[Request]] = []  # the longest idle last
        self._next_look_ns = 0

    def longest_idle(
        self, connections: Collection[ServedConnection[Request]], now_ns: int
    ) -> ServedConnection[Request] | None:
        """The connection to close for a new one; None: none has been idle for long enough."""
        before_ns = now_ns - int(YIELD_AFTER_S * 1e9)
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
