"""A client of the sockets transport that sends what honest clients do not: whole frames, cut frames, and other
bytes."""

import socket
import struct
import threading
from types import TracebackType
from typing import Self

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.transports import Address
from stock_service.rpc.wire.framing import ReplyFrame, encode_reply, encode_request, reply_decoder
from tests.conformance.running import ECHO, WAIT_S, Kind, Maker, maker

DISPATCHES: list[Maker] = [maker(Kind("sockets", "static-pool")), maker(Kind("sockets", "static-pool", "connection"))]
"""Both dispatch models, with the default executor of sockets."""

DISPATCH_IDS = ["request", "connection"]


def frame(call: int, path: str = ECHO, payload: bytes = b"", timeout_ms: int = 0) -> bytes:
    """A request's frame."""
    return encode_request(call, timeout_ms, path.encode(), payload)


class RawSocket:
    """One connection. No call here waits for longer than ``WAIT_S``."""

    def __init__(self, address: Address, receive_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(WAIT_S)
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.connect(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._decoder = reply_decoder()
        self._replies: list[ReplyFrame] = []
        self.goodbyes = 0
        """How often the server has said that it ends the connection."""

    def send(self, data: bytes) -> None:
        """Sends all of it."""
        self.socket.sendall(data)

    def reply(self) -> ReplyFrame | None:
        """The next reply. A goodbye is skipped, and must be the last frame. None once the server has closed."""
        while not self._replies:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:  # it closed without having read all that was sent
                return None
            if not data:
                assert not self._decoder.pending_bytes, "the server closed in the middle of a reply"
                return None
            self._replies = [each for each in self._decoder.feed(data) if not self._is_goodbye(each)]
        return self._replies.pop(0)

    def _is_goodbye(self, reply: ReplyFrame) -> bool:
        assert not self.goodbyes, f"{reply} came behind a goodbye"
        self.goodbyes += (reply.call, reply.code) == (0, FaultCode.UNAVAILABLE)
        return bool(self.goodbyes)

    def rest(self) -> list[ReplyFrame]:
        """Every reply from here to the server's closing."""
        replies = []
        while (reply := self.reply()) is not None:
            replies.append(reply)
        return replies

    def take_up_to(self, frame_bytes_max: int) -> None:
        """Allows replies longer than usual, from the next one on."""
        self._decoder = reply_decoder(frame_bytes_max)

    def echo(self, payload: bytes = b"echo") -> bool:
        """Tell whether a request on this connection is answered; no other may be under way."""
        self.send(frame(99, payload=payload))
        return self.reply() == ReplyFrame(99, 0, payload)

    def silent(self, for_s: float) -> bool:
        """Tell whether the server says nothing for some seconds, and keeps the connection."""
        self.socket.settimeout(for_s)
        try:
            return not self._replies and not self.socket.recv(1, socket.MSG_PEEK) and False
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(WAIT_S)

    def half_close(self) -> None:
        """Says that nothing more will be sent."""
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Closes with a RST instead of the usual farewell."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.socket.close()


class Flood:
    """A client that sends requests without pause, on one thread, and takes the replies on another, until ``with`` ends.

    ``replies`` is how many came, nearly.
    """

    def __init__(self, address: Address) -> None:
        self._client = RawSocket(address)
        self._over = threading.Event()
        self.replies = 0
        self._threads = [threading.Thread(target=work, name="flood") for work in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        data = b"".join(frame(call) for call in range(1, 10_001))
        try:
            while not self._over.is_set():
                self._client.send(data)
        except OSError:
            pass  # the server has closed

    def _receive(self) -> None:
        try:
            while data := self._client.socket.recv(65536):
                self.replies += len(data) // len(encode_reply(1, 0, b""))
        except OSError:
            pass  # the server has closed with requests unread

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        try:
            self._client.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the server has closed
        for thread in self._threads:
            thread.join()
        self._client.socket.close()
