"""One client's connection: its bytes, and the replies that its client does not take yet.

``ByteStream`` moves the bytes: over TCP here (``PlainStream``), over TLS in ``tls.py``. Nothing here blocks.
``receive`` and ``send`` are the socket's own functions, so that a plain stream adds no work to a request. ``receive``
gives new bytes, and does not fill a buffer (``recv_into``). Requests are cut from these bytes and live beyond the next
read: from a buffer they would have to be copied.

``ServedConnection`` is the server's object for a connection. This module has the I/O of a connection;
``wire/served_stream.py`` has the state of a connection, with the threads that may change the state. Only the reading
thread writes the fields that the lock does not guard, except ``gone``: any thread may set and read it.
"""

import fcntl
import select
import socket
import struct
import sys
import termios
import time
from collections.abc import Callable
from threading import Lock
from typing import Generic, Protocol

from stock_service.rpc.server_core.listening import FEW_BYTES, FEWEST_BYTES, UNFOLDED_NS
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.server_core.protocol import Answering, Request
from stock_service.rpc.waiting import here
from stock_service.rpc.wire.served_stream import ServedStream, Session

DROP_BYTES = 65536
"""Largest number of bytes dropped at one go."""

_TCP_INFO_LAST_DATA_RECV = 52
"""Offset, in TCP_INFO, of the milliseconds since the last bytes came (tcp(7), ``tcpi_last_data_recv``)."""

_TICK_MS = 10
"""Longest tick of the kernel, in milliseconds: the precision of that time."""


class ByteStream(Protocol):
    """The bytes of one connection. Any thread may call ``send``, one thread at a time. Only the reading thread calls
    the other methods.
    """

    barren: int
    """Number of bytes that came since ``receive`` last returned bytes, while the stream keeps a part of a record."""
    opening: bool
    """True during the handshake, before which no byte of a request can come."""
    receive: Callable[[int], bytes]
    """Receives about the given number of bytes at most, and returns all bytes taken from the kernel. Returns empty
    bytes if the peer has ended.

    Raises BlockingIOError if no byte has come, and OSError if the peer is gone.
    """
    send: Callable[[bytes | bytearray], int]
    """Sends as many of the bytes as the kernel takes; returns their number. Raises as ``receive``."""

    @property
    def unsent(self) -> bool:
        """True if the stream has its own bytes to send. ``send`` sends these bytes first, also when it is called with
        no bytes.
        """

    @property
    def peer(self) -> Address:
        """Address of the other end."""

    def fileno(self) -> int:
        """The descriptor that epoll is to watch."""

    def keep_to_arrived(self) -> int:
        """Limits ``receive`` to the bytes that have arrived by now. After these bytes, ``receive`` acts as if the peer
        had ended.

        Returns the number of these bytes."""

    def read_on(self) -> None:
        """Ends the limit of ``keep_to_arrived``."""

    def drop(self) -> int:
        """Reads and drops some bytes that the peer still sends; raises as ``receive``.

        Returns their number, 0 where the peer has ended."""

    def half_close(self) -> None:
        """Tells the peer that no more bytes will come. Raises OSError if the peer is gone."""

    def unacknowledged(self) -> int:
        """Number of bytes that were sent and that the peer's kernel has not acknowledged yet."""

    def held(self) -> int:
        """Bytes of memory for data that ``receive`` has not returned yet, or that the peer has not taken."""

    def close(self) -> None:
        """Frees the connection."""


class PlainStream:
    """A TCP connection without TLS; see ``ByteStream``."""

    barren, opening, unsent = 0, False, False

    def __init__(self, accepted: socket.socket, peer: Address) -> None:
        """``accepted`` must be a non-blocking socket. ``close`` closes it."""
        self._socket = accepted
        self.peer = peer
        self._left = 0  # rest of the bytes to which ``receive`` is limited
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
        """See ``ByteStream``; the end of the stream counts as one byte."""
        return unacknowledged_bytes(self._socket)

    def held(self) -> int:
        """See ``ByteStream``; 0, since the kernel has all bytes."""
        return 0

    def close(self) -> None:
        """See ``ByteStream``."""
        self._socket.close()


def arrived_bytes(connection: socket.socket) -> int:
    """Number of bytes that the client has sent and the kernel holds."""
    return _asked(connection, termios.FIONREAD)


def unacknowledged_bytes(connection: socket.socket) -> int:
    """Number of bytes that were sent and not acknowledged by the client's kernel (SIOCOUTQ)."""
    return _asked(connection, termios.TIOCOUTQ)


def last_arrival_ns(connection: socket.socket) -> int:
    """Time, on ``time.monotonic_ns``, by which the client's last bytes had certainly come: at most 20 ms after their
    arrival.
    """
    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_LAST_DATA_RECV + 4)
    ago_ms = int(struct.unpack_from("=I", told, _TCP_INFO_LAST_DATA_RECV)[0])
    return time.monotonic_ns() - max(0, ago_ms - _TICK_MS) * 1_000_000


def _asked(connection: socket.socket, what: int) -> int:
    return int.from_bytes(fcntl.ioctl(connection, what, bytes(4)), sys.byteorder)


class ServedConnection(Generic[Request]):
    """A stream of bytes, its state, and the bytes still to be sent."""

    def __init__(
        self,
        carrier: ByteStream,
        stream: ServedStream[Request],
        session: Session[Request] | None = None,
    ) -> None:
        """``session`` is the stream's decoder, if the decoder also sends its own bytes."""
        self._session = session
        self.take: Callable[[bytes, int, int], Request | None] = stream.take if session is None else self._take
        """Gives received bytes to ``stream.take``. With a session, it then also sends the session's own bytes."""
        self.bytes = carrier
        self.peer: Address = carrier.peer
        self.fd = carrier.fileno()
        self.stream = stream
        self.events = -1  # what epoll watches for; -1: nothing, it was not put in or was taken out
        self.first_ns = 0  # time since which there are bytes to read, while it is not read; 0: no such bytes are known
        self.refused_ns = 0  # time when the reading thread last refused a request of it; 0: never
        self.few = 0 if session is None else FEW_BYTES  # bytes of one read, while its reads take long; 0: as usual
        self.later_ns = 0  # time that the answers to the last bytes take beyond the usual time for their size
        self.cost_ns = 0  # time that its low-priority reads took, in all
        self.low_priority = False  # True: it waits to be read after all other connections
        self.gone = False  # True: the client is gone, as a send of an answering thread or epoll has shown
        self.parted = False  # True: the server has told the client that it ends the connection
        self.retires_ns = 0  # time when it is old; once it has ``retired``, time when it is cut; 0: never
        self.retired = False
        self.holds = False  # True: it held bytes at the last look
        self.counted = 0  # its requests that wait for its turn
        # guards _outbox, the order of bytes on the socket, the calls of ``stream.replied``, and all of _session
        self._lock = Lock()
        self._outbox = bytearray()

    @property
    def speaks(self) -> bool:
        """True if the protocol sends its own bytes."""
        return self._session is not None

    def reply(self, reply: bytes) -> bool:
        """Sends a reply, and keeps the bytes that the client does not take yet; never blocks. Any thread.

        Returns True if the reading thread must look at this connection now.
        """
        with self._lock:
            self._put(reply)
            return self.stream.replied(bool(self._outbox))

    def answer(self, request: Request, reply: bytes) -> bool:
        """Sends the reply to a request, like ``reply``; a session may hold the reply back."""
        session = self._session
        with self._lock:
            if session is not None:
                reply = session.admit(request, reply)
            if self._outbox:
                self._outbox += reply
            elif reply and (sent := self._send(reply)) < len(reply):
                self._outbox += reply[sent:]
            if session is None:
                return self.stream.replied(bool(self._outbox))
            if session.outgoing:
                self._say(session)
            return self.stream.replied(bool(self._outbox)) or bool(session.ready or session.held)

    def ready(self, now_ns: int) -> list[tuple[Request, int]]:
        """The requests that waited for the answer to another request, and may begin."""
        if self._session is None or not self._session.ready:
            return []
        with self._lock:
            return self.stream.release_ready(now_ns)

    def renew(self) -> None:
        """Makes calls that watch for changes ``ready`` again, because the answer to them may have changed."""
        if self._session is not None:
            with self._lock:
                self._session.renew()

    def retire(self) -> None:
        """Begins the end of an old connection. For the reading thread."""
        self.retired = True
        with self._lock:
            self.stream.retire()
            if self._session is not None:
                self._say(self._session)

    def end(self, by_client: bool) -> None:
        """Ends the reading: the client has ended, or the server is stopping and has read all arrived bytes.

        If the server is stopping, a session tells its client, and continues to get bytes while it holds replies.
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
        self.later_ns = session.later_ns
        if not session.toils:
            self.few = 0
        else:
            self.few = FEWEST_BYTES if self.later_ns > UNFOLDED_NS else self.few or FEW_BYTES
        return request

    def _say(self, session: Session[Request]) -> None:
        """Sends the session's own bytes."""
        held_bytes = session.held_bytes
        self._put(session.take_outgoing())
        self.stream.said(bool(self._outbox), session.held_bytes < held_bytes)

    def refuse(self, refused: list[tuple[Request, bytes]]) -> bool:
        """Sends several refusals, each like ``answer``."""
        session = self._session
        with self._lock:
            self._put(b"".join([reply if session is None else session.admit(asked, reply) for asked, reply in refused]))
            return self.stream.replied(bool(self._outbox), len(refused))

    def held(self) -> int:
        """Number of bytes of requests not begun, of replies not taken, and of the carrier. For the reading thread."""
        return self.stream.held_bytes() + len(self._outbox) + self.bytes.held()

    def say(self, words: bytes) -> None:
        """Sends bytes that are not a reply, and keeps the bytes that the client does not take yet; never blocks."""
        with self._lock:
            self._put(words)
            self.stream.said(bool(self._outbox), False)

    def give_up(self, words: bytes) -> None:
        """Sends last bytes as far as possible without waiting, and drops all unsent bytes."""
        with self._lock:
            if not self._outbox:
                self._send(words)
            self._outbox.clear()

    def watched(self, reads: bool) -> int:
        """Events to watch for: EPOLLIN if epoll is to report bytes, otherwise 0. ``reads`` is True for a connection
        that is read now.

        For a connection that is not read now, epoll reports bytes once. So the age of an unread request is known.
        """
        return 0 if self.first_ns and (self.low_priority or not reads) else select.EPOLLIN

    def flush(self) -> None:
        """Sends the kept bytes, as far as the client takes them; never blocks."""
        with self._lock:
            sent = self._send(self._outbox)
            if sent:
                del self._outbox[:sent]
                self.stream.flushed(bool(self._outbox))

    def _put(self, data: bytes) -> None:
        """Sends the unsent bytes and then these bytes, and keeps all bytes that the client does not take."""
        self._outbox += data if self._outbox else data[self._send(data) :]

    def _send(self, data: bytes | bytearray) -> int:
        try:
            return self.bytes.send(data)
        except BlockingIOError:
            return 0
        except ConnectionError:  # epoll tells the reading thread
            self.gone = True
            return len(data)
        except OSError:
            return len(data)

    def cut(self) -> None:
        """Notes that the client is gone: no further request of the client is begun. For the reading thread."""
        self.gone = True
        self.stream.cut()

    def close(self) -> None:
        """Frees the socket. For the reading thread, once no worker holds the connection, or the server has abandoned
        the workers.
        """
        with self._lock:
            self.stream.close()
            self.take = self.stream.take  # breaks a circle of references, so that the garbage collector need not
            self._outbox.clear()
            self.bytes.close()


Serve = Callable[[ServedConnection[Request], Request, int], None]
"""Function that answers a request and sends its reply; its last argument is the arrival, on ``time.monotonic_ns``."""


def task(
    answer: Answering[Request],
    ask: Callable[[ServedConnection[Request]], None],
    ended: Callable[[], object] | None = None,
) -> Serve[Request]:
    """A task of the executor, which answers one request and sends the reply. Any thread may run it.

    Where the reading thread must look at the connection, the task calls ``ask``. It calls ``ended`` once the reply was
    sent. A request is dropped if its client has gone before it is begun: the client cannot tell the difference. A begun
    request goes on.
    """

    def serve(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        if not connection.gone or (here.wait is not None and here.wait.on is not None):  # else it has begun, and waited
            looks = connection.answer(request, answer(request, arrived_ns, connection.peer))
            if ended is not None:
                ended()
        else:
            looks = connection.reply(b"")  # without its session, which gets no more bytes
        if looks:
            ask(connection)

    return serve
