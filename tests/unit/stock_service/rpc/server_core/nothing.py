"""A stream of bytes that carries nothing, for connections that are only looked at."""

from collections.abc import Callable

from stock_service.rpc.server_core.options import Address


class Nothing:
    """A stream on which no bytes come, and that keeps the sent bytes."""

    barren, opening, unsent = 0, False, False

    def __init__(self) -> None:
        self.sent = bytearray()
        self.peer: Address = ("127.0.0.1", 1)
        self.receive: Callable[[int], bytes] = lambda _: b""
        self.send: Callable[[bytes | bytearray], int] = self._send

    def _send(self, data: bytes | bytearray) -> int:
        self.sent += data
        return len(data)

    def fileno(self) -> int:
        """No descriptor."""
        return -1

    def keep_to_arrived(self) -> int:
        """Nothing had."""
        return 0

    drop = unacknowledged = keep_to_arrived

    def held(self) -> int:
        """Nothing."""
        return 0

    def half_close(self) -> None:
        """Does nothing, since there is no peer."""

    close = read_on = half_close
