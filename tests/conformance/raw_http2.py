"""A gRPC client that sends what no library would: frames of HTTP/2, one by one, with headers of any bytes."""

import socket
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from hpack import Decoder

from stock_service.rpc.transports import Address
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.http2 import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_DEFAULT,
    settings,
)
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import Frame

WAIT_S = 30.0
"""How long the server may take to say anything, on a machine that is very busy."""

Header = tuple[bytes, bytes]

REQUEST: tuple[Header, ...] = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":authority", b"tests"),
    (b"te", b"trailers"),
    (b"content-type", b"application/grpc"),
)
"""Headers of every call, without its path."""

RESET = -1
"""Value in the place of a status, for a call that the server has reset."""


class RawHttp2:
    """One connection on which both sides have exchanged their prefaces."""

    def __init__(self, address: Address, window_bytes: int = WINDOW_DEFAULT) -> None:
        """``window_bytes`` is the window of each stream, for the server's replies."""
        self.socket = socket.create_connection(address, WAIT_S)
        self._decoder = Decoder()
        self._read = b""
        self.statuses: dict[int, int] = {}
        """The status of each call that has ended, by its stream."""
        self.frames: list[Frame] = []
        """All frames that have come."""
        self.socket.sendall(PREFACE + settings((INITIAL_WINDOW_SIZE, window_bytes)))
        while self._frame() != SETTINGS:
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.socket.close()

    def send(self, *frames: bytes) -> None:
        """Sends all of it."""
        self.socket.sendall(b"".join(frames))

    def status(self, stream: int) -> int:
        """The status with which a call ended. Blocks until the call has ended."""
        while stream not in self.statuses:
            assert self._frame() is not None, "the server has closed"
        return self.statuses[stream]

    def first(self, count: int) -> set[int]:
        """The statuses of the first calls to end, as many as asked for. Blocks until they have ended."""
        while len(self.statuses) < count:
            assert self._frame() is not None, "the server has closed"
        return set(self.statuses.values())

    def said(self, kind: int) -> None:
        """Blocks until the server has sent a frame of this kind, the next one."""
        while (read := self._frame()) != kind:
            assert read is not None, "the server has closed"

    def until(self, kind: int, stream: int = 0) -> Frame:
        """The first frame of a kind on a stream, among all that came. Blocks until it has come."""
        while True:
            for frame in self.frames:
                if (frame.kind, frame.stream) == (kind, stream):
                    return frame
            assert self._frame() is not None, f"closed before a frame {kind}; there were {self.frames}"

    def rest(self) -> dict[int, int]:
        """The status of each call, once the server has closed."""
        while self._frame() is not None:
            pass
        return self.statuses

    def _frame(self) -> int | None:
        """Reads a frame, and gives its kind; None at the end."""
        header = self._bytes(9)
        if len(header) < 9:
            return None
        kind, flags, stream = header[3], header[4], int.from_bytes(header[5:])
        content = self._bytes(int.from_bytes(header[:3]))
        self.frames.append(Frame(kind, flags, stream, content))
        if kind == HEADERS:
            status = dict(self._decoder.decode(content, raw=True)).get(b"grpc-status")
            if status is not None:
                self.statuses.setdefault(stream, int(status))
        elif kind == RST_STREAM:
            self.statuses.setdefault(stream, RESET)
        elif kind == PING and not flags & ACK:
            try:
                self.send(http2.frame(PING, ACK, 0, content))
            except OSError:
                pass  # the server has closed; what it has sent before is still read
        return kind

    def _bytes(self, count: int) -> bytes:
        while len(self._read) < count:
            try:
                received = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return b""
            if not received:
                return b""
            self._read += received
        taken, self._read = self._read[:count], self._read[count:]
        return taken


def headers(stream: int, path: str, more: Sequence[Header] = (), flags: int = 0) -> bytes:
    """The frame that begins a call."""
    block = sorted([*REQUEST, (b":path", path.encode()), *more])
    return http2.frame(HEADERS, END_HEADERS | flags, stream, b"".join(literal(*header) for header in block))


def message(stream: int, payload: bytes) -> bytes:
    """A call's message, which ends what the client has to say."""
    return http2.frame(DATA, END_STREAM, stream, b"\0" + len(payload).to_bytes(4) + payload)


def literal(name: bytes, value: bytes) -> bytes:
    """A header as it is, in no table."""
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value
