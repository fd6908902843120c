"""One client's connection as the request-dispatching server holds it.

The reading thread owns everything but what the lock guards. ``received`` is written by the reading thread alone and
``answered`` under the lock alone, so that the reading thread can subtract the two without it: it sees at most too many
requests in flight, never too few, and whoever answers the last one makes it look again.
"""

import socket
from collections import deque
from threading import Lock

from stock_service.rpc.wire.framing import RequestFrame, request_decoder


class ServedConnection:
    """A socket, what has been read of it, and what is still to be sent."""

    __slots__ = (
        "_lock",
        "_outbox",
        "active_ns",
        "answered",
        "blocked_ns",
        "broken",
        "closed",
        "decoder",
        "ending",
        "events",
        "fd",
        "last_words",
        "left",
        "partial_ns",
        "paused",
        "received",
        "socket",
        "waiting",
    )

    def __init__(self, accepted: socket.socket, frame_bytes_max: int, now_ns: int) -> None:
        self.socket = accepted
        self.fd = accepted.fileno()
        self.decoder = request_decoder(frame_bytes_max)
        self.waiting: deque[tuple[RequestFrame, int]] = deque()  # read when, held back by the pipeline's limit
        self.received = 0
        self.answered = 0
        self.active_ns = now_ns  # when something last happened, to within a sweep
        self.partial_ns = 0  # since when a request is half there; 0: none is
        self.blocked_ns = 0  # since when the client takes no bytes; 0: it does
        self.events = 0  # what epoll watches for; -1: nothing, it was taken out
        self.paused = False  # not read until something changes
        self.left = -1  # when stopping: bytes that had arrived by then and are still to be read; -1: not stopping
        self.ending = False  # never read again; closed when all is answered
        self.last_words = b""  # the frame of the fault to end with, once all before it is answered
        self.broken = False  # the client is gone, replies are dropped
        self.closed = False
        self._lock = Lock()  # guards answered, _outbox and the order of bytes on the socket
        self._outbox = bytearray()

    @property
    def in_flight(self) -> int:
        """Requests given to the executor and not answered yet."""
        return self.received - self.answered

    @property
    def unsent(self) -> bool:
        """Whether bytes of a reply wait for the client to take them."""
        return bool(self._outbox)

    @property
    def done(self) -> bool:
        """Whether nothing is left to do but to close."""
        settled = self.ending and not self.waiting and self.in_flight == 0 and not self.last_words
        return settled and (self.broken or not self._outbox)

    @property
    def silent(self) -> bool:
        """Whether nothing is read of it, now or ever again: then what is half there is not the client's fault."""
        return self.paused or self.ending

    def reply(self, frame: bytes) -> bool:
        """Sends a reply, or keeps what the client does not take yet; never blocks. Any thread.

        Says whether the reading thread must look at this connection now.
        """
        with self._lock:
            if self._outbox:
                self._outbox += frame
            else:
                sent = self._send(frame)
                if sent < len(frame):
                    self._outbox += frame[sent:]
            self.answered += 1
            return self.paused or self.ending or bool(self._outbox)

    def flush(self) -> None:
        """Sends what was kept, as far as the client takes it; never blocks."""
        with self._lock:
            sent = self._send(self._outbox)
            if sent:
                self.blocked_ns = 0
            del self._outbox[:sent]

    def _send(self, data: bytes | bytearray) -> int:
        try:
            return self.socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:  # the client has gone, which the reading thread learns from epoll
            return len(data)

    def end_with(self, frame: bytes) -> None:
        """Has nothing read any more, and this fault said when all before it is answered."""
        self.last_words = frame
        self.ending = True

    def note_partial(self, whole: bool, now_ns: int) -> None:
        """Keeps since when a request is half there; ``whole``: at least one has just become whole."""
        if not self.decoder.pending_bytes:
            self.partial_ns = 0
        elif whole or not self.partial_ns:
            self.partial_ns = now_ns

    def note_blocked(self, now_ns: int) -> None:
        """Keeps since when the client takes no bytes."""
        if not self.blocked_ns:
            self.blocked_ns = now_ns

    def close(self) -> None:
        """Frees the socket; the reading thread alone, once no worker holds the connection or all is given up."""
        with self._lock:
            self.closed = True
            self._outbox.clear()
            self.socket.close()
