"""A gRPC server on a real socket that sends the bytes of a test's script, right or wrong."""

import socket
import threading
from collections.abc import Callable
from functools import partial

from stock_service.rpc.codec_connection import CodecConnection
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.grpc_codec import GrpcCodec
from tests.unit.stock_service.rpc.wire.grpc_server_bytes import AUTHORITY, GREETING, GrpcServerBytes
from tests.unit.stock_service.rpc.wire.streams import frames_of

WAIT_S = 10.0
"""Longest time for anything that must happen; far more than it takes."""


class Peer:
    """One accepted connection, for a test's script."""

    def __init__(self, accepted: socket.socket, requests: list[bytes]) -> None:
        self.socket = accepted
        self.socket.settimeout(WAIT_S)
        self.server = GrpcServerBytes()
        self.others: list[tuple[int, int, int, bytes]] = []
        self._requests = requests
        self._data = b""
        while len(self._data) < len(http2.PREFACE):
            self._data += self._received()
        self._data = self._data.removeprefix(http2.PREFACE)
        self.socket.sendall(GREETING)

    def request(self) -> int:
        """Waits for a request, and gives its call. Frames before it, except headers, go into ``others``."""
        while True:
            kind, flags, stream, payload = self.frame()
            if kind == http2.DATA:
                self._requests.append(payload[5:])
                return stream
            if kind != http2.HEADERS:
                self.others.append((kind, flags, stream, payload))

    def frame(self) -> tuple[int, int, int, bytes]:
        """The next frame. Raises EOFError where the client has closed."""
        while len(self._data) < 9 or len(self._data) < 9 + int.from_bytes(self._data[:3], "big"):
            self._data += self._received()
        size = 9 + int.from_bytes(self._data[:3], "big")
        data, self._data = self._data[:size], self._data[size:]
        return frames_of(data)[0]

    def reply(self, message: bytes, before: bytes = b"") -> None:
        """Waits for a request and answers it."""
        call = self.request()
        self.socket.sendall(before + self.server.reply(call, message))

    def _received(self) -> bytes:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError
        return data


class Scripted:
    """A server on a free port. Each connection in turn is handled by the next of the scripts, on one thread."""

    def __init__(self, *scripts: Callable[[Peer], None]) -> None:
        self.requests: list[bytes] = []
        self.peers: list[Peer] = []
        self._faults: list[BaseException] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(WAIT_S)
        self.address: tuple[str, int] = self._listener.getsockname()
        self._thread = threading.Thread(target=self._run, args=(scripts,), name="scripted")
        self._thread.start()

    def connect(self) -> CodecConnection:
        """A connection to it."""
        return CodecConnection(self.address, partial(GrpcCodec, AUTHORITY)).open(WAIT_S)

    def finish(self) -> None:
        """Blocks until the scripts are over; raises what went wrong in one."""
        self._thread.join()
        self._listener.close()
        if self._faults:
            raise self._faults[0]

    def _run(self, scripts: tuple[Callable[[Peer], None], ...]) -> None:
        try:
            for script in scripts:
                with self._listener.accept()[0] as accepted:
                    self.peers.append(Peer(accepted, self.requests))
                    script(self.peers[-1])
        except BaseException as error:
            self._faults.append(error)
