"""A connection's bytes as the server core moves them: over TCP here; whatever else carries bytes keeps ``ByteStream``.

Nothing here blocks. ``receive`` and ``send`` are the socket's own functions, so that going through a stream costs a
request nothing. ``receive`` gives new bytes, and does not fill a buffer (``recv_into``). What is cut of them is kept
beyond the next read, so that it would have to be copied out of a buffer.
"""

import fcntl
import socket
import struct
import sys
import termios
import time
from collections.abc import Callable
from typing import Protocol

from stock_service.rpc.server_core.options import Address

DROP_BYTES = 65536
"""Bytes that are dropped in one go."""

_TCP_INFO_LAST_DATA_RECV = 52
"""Where TCP_INFO says how many milliseconds ago the last bytes came (tcp(7), ``tcpi_last_data_recv``)."""

_TICK_MS = 10
"""It is counted in the kernel's ticks, which last so long at most."""


class ByteStream(Protocol):
    """One connection. Only ``send`` may be called from any thread, one at a time; the rest is the reading thread's."""

    barren: int
    """Bytes that came since the last one that it gave, of which it keeps something: of half a record."""
    opening: bool
    """Whether it is still being agreed on how to speak, before which no byte of a request can come."""
    receive: Callable[[int], bytes]
    """Up to about so many bytes; none where the peer has ended. Gives all it has of what it took from the kernel.

    Raises BlockingIOError where nothing has come, OSError where the peer is gone."""
    send: Callable[[bytes | bytearray], int]
    """Sends the first of some bytes; says how many. Raises as ``receive``."""

    @property
    def unsent(self) -> bool:
        """Whether it has something of its own to send, which ``send`` does first, of no bytes too."""

    @property
    def peer(self) -> Address:
        """Who is at the other end."""

    def fileno(self) -> int:
        """What epoll is to watch."""

    def keep_to_arrived(self) -> int:
        """From here on ``receive`` gives what had arrived by now, and then nothing more, as if the peer had ended.

        Says how many bytes that are."""

    def read_on(self) -> None:
        """From here on ``receive`` gives what comes, as before ``keep_to_arrived``."""

    def drop(self) -> int:
        """Reads and drops some of what the peer still sends; raises as ``receive``.

        Says how many bytes, 0 where the peer has ended."""

    def half_close(self) -> None:
        """Tells the peer that nothing more will come. Raises OSError where it is gone."""

    def unacknowledged(self) -> int:
        """Bytes that were sent and that the peer's kernel has not taken yet."""

    def held(self) -> int:
        """Bytes of memory that it keeps for what it has not given, or its peer not taken."""

    def close(self) -> None:
        """Frees the connection."""


class PlainStream:
    """TCP as it is; see ``ByteStream``."""

    __slots__ = ("_left", "_socket", "peer", "receive", "send")

    barren, opening, unsent = 0, False, False

    def __init__(self, accepted: socket.socket, peer: Address) -> None:
        """``accepted`` must not block; it is closed by ``close``."""
        self._socket = accepted
        self.peer = peer
        self._left = 0  # of what ``receive`` is kept to
        self.receive: Callable[[int], bytes] = accepted.recv
        self.send: Callable[[bytes | bytearray], int] = accepted.send

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    def keep_to_arrived(self) -> int:
        """See ``ByteStream``."""
        self._left = arrived_bytes(self._socket)
        self.receive = self._receive_arrived
        return self._left

    def read_on(self) -> None:
        """See ``ByteStream``."""
        self.receive = self._socket.recv

    def _receive_arrived(self, size: int) -> bytes:
        data = self._socket.recv(min(size, self._left)) if self._left else b""
        self._left -= len(data)
        return data

    def drop(self) -> int:
        """See ``ByteStream``."""
        return len(self._socket.recv(DROP_BYTES))

    def half_close(self) -> None:
        """See ``ByteStream``."""
        self._socket.shutdown(socket.SHUT_WR)

    def unacknowledged(self) -> int:
        """See ``ByteStream``; the word that nothing more will come counts as one byte."""
        return unacknowledged_bytes(self._socket)

    def held(self) -> int:
        """See ``ByteStream``: all is the kernel's."""
        return 0

    def close(self) -> None:
        """See ``ByteStream``."""
        self._socket.close()


def arrived_bytes(connection: socket.socket) -> int:
    """How many bytes the kernel holds of what the client has sent."""
    return _asked(connection, termios.FIONREAD)


def unacknowledged_bytes(connection: socket.socket) -> int:
    """How many bytes were sent and not acknowledged by the client's kernel (SIOCOUTQ)."""
    return _asked(connection, termios.TIOCOUTQ)


def last_arrival_ns(connection: socket.socket) -> int:
    """When the client's last bytes had come for certain, on ``time.monotonic_ns``: up to 20 ms after they came."""
    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_LAST_DATA_RECV + 4)
    ago_ms = int(struct.unpack_from("=I", told, _TCP_INFO_LAST_DATA_RECV)[0])
    return time.monotonic_ns() - max(0, ago_ms - _TICK_MS) * 1_000_000


def _asked(connection: socket.socket, what: int) -> int:
    return int.from_bytes(fcntl.ioctl(connection, what, bytes(4)), sys.byteorder)
