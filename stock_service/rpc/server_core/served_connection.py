"""One client's connection as the request-dispatching server holds it: its bytes, and what its client does not take yet.

What state it is in, and who may change what, is in ``wire/served_stream.py``; here is the I/O. The reading thread owns
everything but what the lock guards.
"""

from threading import Lock
from typing import Generic

from stock_service.rpc.server_core.byte_stream import ByteStream
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.server_core.protocol import Request
from stock_service.rpc.wire.served_stream import ServedStream


class ServedConnection(Generic[Request]):
    """A stream of bytes, its state, and what is still to be sent."""

    __slots__ = (
        "_lock",
        "_outbox",
        "bytes",
        "counted",
        "events",
        "fd",
        "first_ns",
        "holds",
        "muted",
        "peer",
        "refused_ns",
        "stream",
    )

    def __init__(self, carrier: ByteStream, peer: Address, stream: ServedStream[Request]) -> None:
        self.bytes = carrier
        self.peer = peer
        self.fd = carrier.fileno()
        self.stream = stream
        self.events = 0  # what epoll watches for; -1: nothing, it was taken out
        self.first_ns = 0  # since when there is something to read, of one that is not read; 0: nothing is known of
        self.refused_ns = 0  # when requests of it were last refused by the reading thread; 0: never
        self.muted = False  # whether it is not to be read, since refusing its requests takes too much
        self.holds = False  # whether it was found to hold bytes when it was last looked at
        self.counted = 0  # its requests that wait for its turn
        self._lock = Lock()  # guards _outbox, the order of bytes on the socket, and who answers (``stream.replied``)
        self._outbox = bytearray()

    def reply(self, reply: bytes) -> bool:
        """Sends a reply, or keeps what the client does not take yet; never blocks. Any thread.

        Says whether the reading thread must look at this connection now.
        """
        with self._lock:
            if self._outbox:
                self._outbox += reply
                return self.stream.replied(True)
            sent = self._send(reply)
            if sent == len(reply):
                return self.stream.replied(False)
            self._outbox += reply[sent:]
            return self.stream.replied(True)

    def refuse(self, replies: list[bytes]) -> bool:
        """Sends several refusals, as ``reply``."""
        with self._lock:
            data = b"".join(replies)
            if not self._outbox and (sent := self._send(data)) < len(data):
                data = data[sent:]
            elif not self._outbox:
                data = b""
            self._outbox += data
            return self.stream.replied(bool(self._outbox), len(replies))

    def held(self) -> int:
        """Bytes of requests that are not begun, and of replies that are not taken. The reading thread's."""
        return self.stream.held_bytes() + len(self._outbox)

    def give_up(self, words: bytes) -> None:
        """Says a last word, as far as that takes no waiting, and drops what is unsent."""
        with self._lock:
            if not self._outbox:
                self._send(words)
            self._outbox.clear()

    def flush(self) -> None:
        """Sends what was kept, as far as the client takes it; never blocks."""
        with self._lock:
            sent = self._send(self._outbox)
            if sent:
                del self._outbox[:sent]
                self.stream.flushed(bool(self._outbox))

    def _send(self, data: bytes | bytearray) -> int:
        try:
            return self.bytes.send(data)
        except BlockingIOError:
            return 0
        except OSError:  # the client has gone, which the reading thread learns from epoll
            return len(data)

    def close(self) -> None:
        """Frees the socket; the reading thread alone, once no worker holds the connection or all is given up."""
        with self._lock:
            self.stream.close()
            self._outbox.clear()
            self.bytes.close()
