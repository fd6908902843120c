"""One client's connection as the request-dispatching server holds it: its bytes, and what its client does not take yet.

What state it is in, and who may change what, is in ``wire/served_stream.py``; here is the I/O. The reading thread owns
everything but what the lock guards.
"""

import select
from collections.abc import Callable
from threading import Lock
from typing import Generic

from stock_service.rpc.server_core.byte_stream import ByteStream
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.server_core.protocol import Request
from stock_service.rpc.wire.served_stream import ServedStream, Session


class ServedConnection(Generic[Request]):
    """A stream of bytes, its state, and what is still to be sent."""

    __slots__ = (
        "_lock",
        "_outbox",
        "_session",
        "bytes",
        "counted",
        "events",
        "fd",
        "few",
        "first_ns",
        "gone",
        "holds",
        "lengthy",
        "muted",
        "parted",
        "peer",
        "refused_ns",
        "stream",
        "take",
    )

    def __init__(
        self,
        carrier: ByteStream,
        stream: ServedStream[Request],
        session: Session[Request] | None = None,
    ) -> None:
        """``session`` is the stream's decoder, if it speaks by itself."""
        self._session = session
        self.take: Callable[[bytes, int, int], Request | None] = stream.take if session is None else self._take
        """``stream.take``, and then what the session has to say."""
        self.bytes = carrier
        self.peer: Address = carrier.peer
        self.fd = carrier.fileno()
        self.stream = stream
        self.events = -1  # what epoll watches for; -1: nothing, it was not put in or was taken out
        self.first_ns = 0  # since when there is something to read, of one that is not read; 0: nothing is known of
        self.refused_ns = 0  # when requests of it were last refused by the reading thread; 0: never
        self.few = session is not None  # whether it is to be read in small pieces, so that others' turns come soon
        self.lengthy = False  # whether it waits to be read after all others
        self.gone = False  # whether the client has: who answers is told by the kernel, or the reading thread by epoll
        self.muted = False  # whether it is not to be read, since refusing its requests takes too much
        self.parted = False  # whether the server has said that it ends the connection
        self.holds = False  # whether it was found to hold bytes when it was last looked at
        self.counted = 0  # its requests that wait for its turn
        # guards _outbox, the order of bytes on the socket, who answers (``stream.replied``), and all of _session
        self._lock = Lock()
        self._outbox = bytearray()

    def reply(self, reply: bytes) -> bool:
        """Sends a reply, or keeps what the client does not take yet; never blocks. Any thread.

        Says whether the reading thread must look at this connection now.
        """
        with self._lock:
            if not self._outbox:
                sent = self._send(reply)
                if sent == len(reply):
                    return self.stream.replied(False)
                reply = reply[sent:]
            self._outbox += reply
            return self.stream.replied(True)

    def answer(self, request: Request, reply: bytes) -> bool:
        """``reply`` for a session, which may hold it."""
        session = self._session
        if session is None:
            return self.reply(reply)
        with self._lock:
            reply = session.admit(request, reply)
            if self._outbox:
                self._outbox += reply
            elif reply and (sent := self._send(reply)) < len(reply):
                self._outbox += reply[sent:]
            if session.outgoing:
                self._say(session)
            return self.stream.replied(bool(self._outbox)) or bool(session.ready or session.held)

    def ready(self, now_ns: int) -> list[tuple[Request, int]]:
        """The requests that waited for another's answer."""
        if self._session is None or not self._session.ready:
            return []
        with self._lock:
            return self.stream.release_ready(now_ns)

    def end(self, by_client: bool) -> None:
        """Nothing more is read: the client has ended, or the server stops and all that had arrived is read.

        In the second case a session tells its client, and is fed on as long as replies are held.
        """
        if self._session is not None and by_client:
            with self._lock:
                self._session.lose()
        elif self._session is not None:
            self.bytes.read_on()
            with self._lock:
                self._session.drain()
                self._say(self._session)
        self.stream.end(by_client)

    def _take(self, data: bytes, now_ns: int, arrived_ns: int) -> Request | None:
        session = self._session
        assert session is not None
        with self._lock:
            request = self.stream.take(data, now_ns, arrived_ns)
            if session.outgoing:
                self._say(session)
        self.few = session.toils
        return request

    def _say(self, session: Session[Request]) -> None:
        """Sends what the session has to say."""
        held_bytes = session.held_bytes
        words = session.take_outgoing()
        if self._outbox:
            self._outbox += words
        elif words and (sent := self._send(words)) < len(words):
            self._outbox += words[sent:]
        self.stream.said(bool(self._outbox), session.held_bytes < held_bytes)

    def refuse(self, refused: list[tuple[Request, bytes]]) -> bool:
        """Sends several refusals, as ``answer``."""
        session = self._session
        with self._lock:
            data = b"".join([reply if session is None else session.admit(request, reply) for request, reply in refused])
            if not self._outbox and (sent := self._send(data)) < len(data):
                data = data[sent:]
            elif not self._outbox:
                data = b""
            self._outbox += data
            return self.stream.replied(bool(self._outbox), len(refused))

    def held(self) -> int:
        """Bytes of requests that are not begun, of replies that are not taken, and the carrier's own.

        The reading thread's.
        """
        return self.stream.held_bytes() + len(self._outbox) + self.bytes.held()

    def say(self, words: bytes) -> None:
        """Sends what is no reply, or keeps what the client does not take yet; never blocks."""
        with self._lock:
            self._outbox += words[0 if self._outbox else self._send(words) :]
            self.stream.said(bool(self._outbox), False)

    def give_up(self, words: bytes) -> None:
        """Says a last word, as far as that takes no waiting, and drops what is unsent."""
        with self._lock:
            if not self._outbox:
                self._send(words)
            self._outbox.clear()

    def watched(self, reads: bool) -> int:
        """EPOLLIN or 0: whether epoll is to say that something came. ``reads``: it is read then.

        Of one that is not read it is to say so once, so that what waits has an age.
        """
        if (self.muted or self.lengthy) and self.first_ns:
            return 0
        return select.EPOLLIN if reads else self.events & select.EPOLLIN

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
        except ConnectionError:  # which the reading thread learns from epoll
            self.gone = True
            return len(data)
        except OSError:
            return len(data)

    def cut(self) -> None:
        """The client is gone: nothing more of it is begun. The reading thread's."""
        self.gone = True
        self.stream.cut()

    def close(self) -> None:
        """Frees the socket; the reading thread alone, once no worker holds the connection or all is given up."""
        with self._lock:
            self.stream.close()
            self.take = self.stream.take  # or it would be part of a circle, which only a collection ends
            self._outbox.clear()
            self.bytes.close()
