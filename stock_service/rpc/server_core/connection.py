"""A client's connection: its I/O, and its buffer of reply bytes that the client has not taken yet. No function blocks.

``ByteStream`` is the interface of the I/O. ``PlainStream`` is its implementation without TLS, ``tls.TlsStream`` with
TLS. In a plain stream, ``receive`` and ``send`` are the socket's own functions, so the stream costs no additional call.
``receive`` returns a new object, and does not fill a buffer (``recv_into``). After the next read, requests still refer
to the received bytes, so a buffer would have to be copied.

``ServedConnection`` is the server's object for a connection. ``wire/served_stream.py`` has the state of a connection.
The connection's lock guards some fields of a ``ServedConnection``. Any thread may read and write ``gone``. Only the
reading thread writes the other fields.
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
"""Largest number of bytes that one call of ``drop`` reads."""

_TCP_INFO_LAST_DATA_RECV = 52
"""Offset, in TCP_INFO, of the field ``tcpi_last_data_recv``: milliseconds since the last bytes came (tcp(7))."""

_TICK_MS = 10
"""Longest tick of the kernel, in milliseconds: the precision of ``tcpi_last_data_recv``."""


class ByteStream(Protocol):
    """I/O of one connection. Any thread may call ``send``, one thread at a time. Only the reading thread calls the
    other methods.
    """

    barren: int
    """Number of encrypted bytes that came since ``receive`` last returned bytes; 0 without TLS."""
    opening: bool
    """True during the TLS handshake, before any byte of a request can come."""
    receive: Callable[[int], bytes]
    """Receives bytes, at most about as many as the argument says. Returns empty bytes at the end of the stream. Raises
    BlockingIOError if no byte has come, and OSError if the peer is gone.
    """
    send: Callable[[bytes | bytearray], int]
    """Sends as many bytes as the kernel takes; returns the number. Raises BlockingIOError, OSError."""

    @property
    def unsent(self) -> bool:
        """True if the stream has encrypted bytes that it must still send. ``send`` sends these bytes first;
        ``send(b"")`` sends only these bytes.
        """

    @property
    def peer(self) -> Address:
        """Address of the client."""

    def fileno(self) -> int:
        """Returns the descriptor that epoll must watch."""

    def keep_to_arrived(self) -> int:
        """Limits ``receive`` to the bytes that have arrived by now, and returns their number. After these bytes,
        ``receive`` acts as if the peer had ended its sending.
        """

    def read_on(self) -> None:
        """Removes the limit of ``keep_to_arrived``."""

    def drop(self) -> int:
        """Reads and drops bytes, and returns their number; 0 if the peer has ended its sending. Raises
        BlockingIOError if no byte has come, and OSError.
        """

    def half_close(self) -> None:
        """Tells the peer that no more bytes will come. Raises OSError if the peer is gone."""

    def unacknowledged(self) -> int:
        """Returns the number of sent bytes that the peer's kernel has not acknowledged yet."""

    def held(self) -> int:
        """Returns the memory, in bytes, of data that the stream keeps: received or unsent data. The kernel's data do
        not count.
        """

    def close(self) -> None:
        """Closes the connection."""


class PlainStream:
    """``ByteStream`` over TCP without TLS."""

    barren, opening, unsent = 0, False, False

    def __init__(self, accepted: socket.socket, peer: Address) -> None:
        """``accepted`` must be a non-blocking socket. ``close`` closes this socket."""
        self._socket = accepted
        self.peer = peer
        self._left = 0  # number of bytes that ``receive`` may still return, after ``keep_to_arrived``
        self.receive: Callable[[int], bytes] = accepted.recv
        self.send: Callable[[bytes | bytearray], int] = accepted.send

    def fileno(self) -> int:
        """Returns the socket's descriptor."""
        return self._socket.fileno()

    def keep_to_arrived(self) -> int:
        """Limits ``receive`` to the bytes that have arrived. Returns the number of these bytes."""
        self._left = arrived_bytes(self._socket)
        self.receive = self._receive_arrived
        return self._left

    def read_on(self) -> None:
        """Removes the limit of ``keep_to_arrived``."""
        self.receive = self._socket.recv

    def _receive_arrived(self, size: int) -> bytes:
        data = self._socket.recv(min(size, self._left)) if self._left else b""
        self._left -= len(data)
        return data

    def drop(self) -> int:
        """Reads and drops bytes. Returns the number of bytes; 0 at the end of the stream."""
        return len(self._socket.recv(DROP_BYTES))

    def half_close(self) -> None:
        """Half-closes the socket. Raises OSError if the peer is gone."""
        self._socket.shutdown(socket.SHUT_WR)

    def unacknowledged(self) -> int:
        """Returns the number of unacknowledged bytes. The end of the stream counts as one byte."""
        return unacknowledged_bytes(self._socket)

    def held(self) -> int:
        """Returns 0, since this stream has no buffer: all bytes are in the kernel or with the caller."""
        return 0

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()


def arrived_bytes(connection: socket.socket) -> int:
    """Returns the number of received bytes that the kernel holds unread (FIONREAD)."""
    return _asked(connection, termios.FIONREAD)


def unacknowledged_bytes(connection: socket.socket) -> int:
    """Returns the number of sent bytes that the client's kernel has not acknowledged (SIOCOUTQ)."""
    return _asked(connection, termios.TIOCOUTQ)


def last_arrival_ns(connection: socket.socket) -> int:
    """Returns the time, on ``time.monotonic_ns``, when the client's last bytes arrived. The result may be up to 20 ms
    too late, and is never too early.
    """
    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_LAST_DATA_RECV + 4)
    ago_ms = int(struct.unpack_from("=I", told, _TCP_INFO_LAST_DATA_RECV)[0])
    return time.monotonic_ns() - max(0, ago_ms - _TICK_MS) * 1_000_000


def _asked(connection: socket.socket, what: int) -> int:
    return int.from_bytes(fcntl.ioctl(connection, what, bytes(4)), sys.byteorder)


class ServedConnection(Generic[Request]):
    """A client's connection on the server: its byte stream, its state, and its unsent bytes."""

    def __init__(
        self,
        carrier: ByteStream,
        stream: ServedStream[Request],
        session: Session[Request] | None = None,
    ) -> None:
        """``session`` is the decoder of ``stream`` for a protocol that also sends bytes of its own; otherwise None."""
        self._session = session
        self.take: Callable[[bytes, int, int], Request | None] = stream.take if session is None else self._take
        """Decodes received bytes to a request (``stream.take``). A session then also sends its own bytes."""
        self.bytes = carrier
        self.peer: Address = carrier.peer
        self.fd = carrier.fileno()
        self.stream = stream
        self.events = -1  # events that epoll watches for; -1: the descriptor is not registered in epoll
        self.first_ns = 0  # time since which bytes may wait unread; 0: no unread bytes are known
        self.refused_ns = 0  # time when the reading thread last refused a request of the connection; 0: never
        self.few = 0 if session is None else FEW_BYTES  # size of one read of a costly connection; 0: the usual size
        self.later_ns = 0  # time for decompressing the messages of the last bytes (``Session.later_ns``)
        self.cost_ns = 0  # sum of the times of the connection's low-priority reads
        self.low_priority = False  # True: the connection waits for a low-priority read
        self.gone = False  # True: the client is gone, as epoll or an answering thread's send has shown
        self.parted = False  # True: the server has sent the goodbye
        self.retires_ns = 0  # time of the age limit; with ``retired``, time when the connection is cut; 0: never
        self.retired = False
        self.holds = False  # True: the connection held bytes when ``BufferedBytes`` last counted them
        self.counted = 0  # number of requests that wait for the connection's turn
        # guards _outbox, the order of bytes on the socket, the calls of ``stream.replied``, and all of _session
        self._lock = Lock()
        self._outbox = bytearray()

    @property
    def speaks(self) -> bool:
        """True if the connection has a session, which also sends bytes that are no reply, such as HTTP/2's SETTINGS."""
        return self._session is not None

    def reply(self, reply: bytes) -> bool:
        """Sends a reply, and keeps the bytes that the client does not take yet. Never blocks. Thread-safe.

        Returns True if the reading thread must look at this connection now.
        """
        with self._lock:
            self._put(reply)
            return self.stream.replied(bool(self._outbox))

    def answer(self, request: Request, reply: bytes) -> bool:
        """Sends the reply to a request, like ``reply``. A session may hold back a part of the reply, which the client's
        flow-control window does not allow yet. Thread-safe.
        """
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
        """Returns each request whose earlier messages of the same call are now answered, with its arrival time."""
        if self._session is None or not self._session.ready:
            return []
        with self._lock:
            return self.stream.release_ready(now_ns)

    def renew(self) -> None:
        """Makes each call that watches for changes (health's Watch) ``ready`` for one more answer."""
        if self._session is not None:
            with self._lock:
                self._session.renew()

    def retire(self) -> None:
        """Begins the end of a connection at its age limit. Only the reading thread may call this."""
        self.retired = True
        with self._lock:
            self.stream.retire()
            if self._session is not None:
                self._say(self._session)

    def end(self, by_client: bool) -> None:
        """Ends the reading. ``by_client``: True if the client has ended its sending, False if the server is stopping.

        At a stop, a session tells the client. The reading of the connection continues while the session has replies.
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
        """Sends the session's own bytes. The caller must hold the lock."""
        held_bytes = session.held_bytes
        self._put(session.take_outgoing())
        self.stream.said(bool(self._outbox), session.held_bytes < held_bytes)

    def refuse(self, refused: list[tuple[Request, bytes]]) -> bool:
        """Sends the replies that refuse several requests. Returns True if the reading thread must look at this
        connection now.
        """
        session = self._session
        with self._lock:
            self._put(b"".join([reply if session is None else session.admit(asked, reply) for asked, reply in refused]))
            return self.stream.replied(bool(self._outbox), len(refused))

    def held(self) -> int:
        """Returns the bytes that the connection holds: unfinished and waiting requests, unsent replies, and TLS's
        bytes. Only the reading thread may call this.
        """
        return self.stream.held_bytes() + len(self._outbox) + self.bytes.held()

    def say(self, words: bytes) -> None:
        """Sends bytes that are not a reply, and keeps the bytes that the client does not take yet. Never blocks."""
        with self._lock:
            self._put(words)
            self.stream.said(bool(self._outbox), False)

    def give_up(self, words: bytes) -> None:
        """Sends the bytes of ``words`` that the kernel takes now, and drops the rest. Sends none after unsent bytes."""
        with self._lock:
            if not self._outbox:
                self._send(words)
            self._outbox.clear()

    def watched(self, reads: bool) -> int:
        """Returns EPOLLIN if epoll must report received bytes, otherwise 0. ``reads`` is True if the server reads the
        connection now.

        If ``reads`` is False, epoll still reports the first bytes, and the server notes their arrival time.
        """
        return 0 if self.first_ns and (self.low_priority or not reads) else select.EPOLLIN

    def flush(self) -> None:
        """Sends as many of the unsent bytes as the kernel takes now. Never blocks."""
        with self._lock:
            sent = self._send(self._outbox)
            if sent:
                del self._outbox[:sent]
                self.stream.flushed(bool(self._outbox))

    def _put(self, data: bytes) -> None:
        """Sends ``data`` after the unsent bytes, and keeps the bytes that the client does not take. The caller must
        hold the lock.
        """
        self._outbox += data if self._outbox else data[self._send(data) :]

    def _send(self, data: bytes | bytearray) -> int:
        try:
            return self.bytes.send(data)
        except BlockingIOError:
            return 0
        except ConnectionError:  # epoll also reports the error to the reading thread
            self.gone = True
            return len(data)
        except OSError:
            return len(data)

    def cut(self) -> None:
        """Notes that the client is gone: the server begins no further request of this client. Only the reading thread
        may call this.
        """
        self.gone = True
        self.stream.cut()

    def close(self) -> None:
        """Closes the socket. Only the reading thread may call this method, and only after the workers have ended the
        connection's requests, or were abandoned.
        """
        with self._lock:
            self.stream.close()
            self.take = self.stream.take  # breaks a reference cycle
            self._outbox.clear()
            self.bytes.close()


Serve = Callable[[ServedConnection[Request], Request, int], None]
"""Function that answers a request and sends the reply. Last argument: the arrival time by ``time.monotonic_ns``."""


def task(
    answer: Answering[Request],
    ask: Callable[[ServedConnection[Request]], None],
    ended: Callable[[], object] | None = None,
) -> Serve[Request]:
    """Makes the function of a server's tasks, which answers one request and sends the reply. The function is
    thread-safe.

    The function calls ``ask`` if the reading thread must look at the connection, and ``ended`` after the reply. If the
    client has gone before the request is begun, the function drops the request. A begun request goes on.
    """

    def serve(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        if not connection.gone or (here.wait is not None and here.wait.on is not None):  # a begun request goes on
            looks = connection.answer(request, answer(request, arrived_ns, connection.peer))
            if ended is not None:
                ended()
        else:
            looks = connection.reply(b"")  # counts the request as answered, without the session
        if looks:
            ask(connection)

    return serve
