"""One budget for what a server holds of requests that are not whole or not begun, and of replies that nobody takes.

Each connection alone is bounded by the largest frame. A thousand of them together would be too much. Once the budget is
exceeded, whoever holds most pays: that connection is closed, and then the next. So one that holds little is left alone,
however many hold much. Of those that hold as much it is who was silent longest. What TLS keeps of a handshake or of
half a record counts too. Left out: what the kernel holds, which SO_RCVBUF bounds for each connection.
"""

from collections.abc import Callable
from typing import Generic

from stock_service.rpc.server_core.protocol import Request
from stock_service.rpc.server_core.served_connection import ServedConnection
from stock_service.rpc.wire.served_stream import CLOSED

CARRIER_BYTES = 65_536
"""At most for what was read of one connection and not cut into frames, and for TLS."""

Read = Callable[[ServedConnection[Request], int], bool]
"""Reads a connection once; says whether anything came."""


def budget_bytes(held_bytes_max: int, frame_bytes_max: int) -> int:
    """The budget: as asked, but never so little that one whole request would exceed it by itself.

    While it comes, a request takes an eighth more than its bytes (``ServedStream.held_bytes``).
    """
    return max(held_bytes_max, frame_bytes_max + frame_bytes_max // 8 + CARRIER_BYTES)


class HeldBytes(Generic[Request]):
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


def noting(read: Read[Request], held: HeldBytes[Request]) -> Read[Request]:
    """The same, which then counts what the connection's carrier keeps by itself: of one that may keep something."""

    def read_noting(connection: ServedConnection[Request], now_ns: int) -> bool:
        came = read(connection, now_ns)
        if (connection.holds or not came or connection.bytes.barren) and connection.stream.state is not CLOSED:
            held.note(connection)
        return came

    return read_noting
