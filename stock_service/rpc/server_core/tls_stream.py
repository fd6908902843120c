"""A connection's bytes over TLS: a ``ByteStream`` whose kernel side is a socket and whose other side is the core's.

OpenSSL reads and writes memory alone (``ssl.MemoryBIO``). So nothing here blocks: not the handshake, which goes on
whenever bytes have come, and not a record that is half there. Whatever was decrypted is given at once, since epoll
knows of the kernel's bytes alone.

A record that the kernel does not take whole is kept here in its encrypted form. Its plain bytes count as not sent, so
that the core keeps them and asks again; then the rest of the record goes first. They are not encrypted a second time.

One lock guards OpenSSL's object, which the reading thread and whoever replies share. Whose the certificate is, is known
once the handshake is over, and then part of the peer.
"""

import logging
import socket
import ssl
import time
from collections.abc import Callable
from threading import Lock

from stock_service.rpc.errors import short
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.server_core.byte_stream import DROP_BYTES, arrived_bytes, unacknowledged_bytes
from stock_service.rpc.server_core.options import Address, Peer
from stock_service.rpc.tls import ServerTls, named_in

_log = logging.getLogger(__name__)

_RECORD_BYTES = 16_384
"""Plain bytes of a TLS record, at most (RFC 8446, 5.1)."""

_SEND_BYTES = 65_536
"""Plain bytes encrypted before they are given to the kernel, at most: so what it does not take stays small."""

_LOG_PAUSE_NS = 1_000_000_000
"""At most one line in so long about handshakes that failed: who fails them chooses how many there are."""


class FailedHandshakes:
    """Says in the log that clients failed to speak TLS; one server's, of its reading thread."""

    def __init__(self, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._now_ns = now_ns
        self._next_ns = 0
        self._unsaid = 0

    def note(self, peer: Address, why: str) -> None:
        """A line, or a count for the next one."""
        now_ns = self._now_ns()
        if now_ns < self._next_ns:
            self._unsaid += 1
            return
        more = f"; {self._unsaid} others since the line before" if self._unsaid else ""
        _log.warning("no TLS with %s: %s%s", shown_address(peer), short(why), more)
        self._next_ns, self._unsaid = now_ns + _LOG_PAUSE_NS, 0


class TlsStream:
    """See ``ByteStream``, and the module."""

    __slots__ = (
        "_failed",
        "_incoming",
        "_left",
        "_lock",
        "_outgoing",
        "_owed",
        "_socket",
        "_tls",
        "_unsent",
        "opening",
        "peer",
        "receive",
        "send",
    )

    def __init__(self, accepted: socket.socket, peer: Address, tls: ServerTls, failed: FailedHandshakes) -> None:
        """``accepted`` must not block; it is closed by ``close``."""
        self._socket = accepted
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._failed = failed
        self._lock = Lock()  # guards all of the object but ``_left`` and ``opening``, which are the reading thread's
        self._unsent = b""  # encrypted, and not taken by the kernel yet
        self._owed = 0  # plain bytes of which the record is in there, which the core takes for unsent
        self._left: int | None = None  # of what ``receive`` is kept to; None: it is not
        self.opening = True
        self.peer = Peer(peer)
        self.receive: Callable[[int], bytes] = self._receive
        self.send: Callable[[bytes | bytearray], int] = self._send

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    @property
    def unsent(self) -> bool:
        """See ``ByteStream``: part of a record. Replies' records count as the core's own as well."""
        return bool(self._unsent)

    def keep_to_arrived(self) -> int:
        """See ``ByteStream``; the bytes are encrypted ones."""
        self._left = arrived_bytes(self._socket)
        return self._left

    def read_on(self) -> None:
        """See ``ByteStream``."""
        self._left = None

    def drop(self) -> int:
        """See ``ByteStream``: nobody decrypts them."""
        return len(self._socket.recv(DROP_BYTES))

    def half_close(self) -> None:
        """See ``ByteStream``."""
        with self._lock:
            self._say_farewell()
            self._unsent = b""  # of the farewell: the socket's own end says as much
        self._socket.shutdown(socket.SHUT_WR)

    def unacknowledged(self) -> int:
        """See ``ByteStream``."""
        return unacknowledged_bytes(self._socket) + len(self._unsent)

    def close(self) -> None:
        """See ``ByteStream``."""
        with self._lock:
            self._say_farewell()
            self._socket.close()

    # ---- the reading thread

    def _receive(self, size: int) -> bytes:
        with self._lock:
            ended = self._take_encrypted(size)
            try:
                data = self._decrypted()
            except ssl.SSLError as error:
                self._flush_quietly()  # the alert that says why
                if self.opening:
                    self._failed.note(self.peer, error.reason or "the connection ended in the handshake")
                raise
            self._flush_quietly()
            if data or ended or self._left == 0:
                return data
            raise BlockingIOError  # half a record, or something of TLS's own

    def _take_encrypted(self, size: int) -> bool:
        """Feeds OpenSSL what has come; says whether it was the end. Raises BlockingIOError, OSError."""
        data = b"" if self._left == 0 else self._socket.recv(size if self._left is None else min(size, self._left))
        if self._left:
            self._left -= len(data)
        if data:
            self._incoming.write(data)
        return not data

    def _decrypted(self) -> bytes:
        """All plain bytes that are there. Raises ssl.SSLError for what is no TLS."""
        found: list[bytes] = []
        try:
            if self.opening:
                self._tls.do_handshake()
                self.peer.certificate = named_in(self._tls.getpeercert())
                self.opening = False
            while data := self._tls.read(_RECORD_BYTES):
                found.append(data)
                if not self._incoming.pending and not self._tls.pending():
                    break  # nearly always: to ask once more would cost an exception
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass  # all of it; in the second case the peer has said that it was the last
        return found[0] if len(found) == 1 else b"".join(found)

    # ---- whoever sends

    def _send(self, data: bytes | bytearray) -> int:
        with self._lock:
            if self._unsent and not self._flush():
                raise BlockingIOError
            sent, self._owed = self._owed, 0
            while sent < len(data):
                part = data[sent : sent + _SEND_BYTES]
                self._tls.write(part)
                if not self._flush():
                    self._owed = len(part)
                    break
                sent += len(part)
            return sent

    def _flush(self) -> bool:
        """Sends what is encrypted; says whether the kernel took it all. Raises OSError where the peer is gone."""
        data = self._unsent + self._outgoing.read() if self._unsent else self._outgoing.read()
        try:
            sent = self._socket.send(data) if data else 0
        except BlockingIOError:
            sent = 0
        self._unsent = data[sent:]
        return not self._unsent

    def _flush_quietly(self) -> None:
        """The same for what is OpenSSL's own to say; that the peer is gone, the next receive says."""
        if self._unsent or self._outgoing.pending:
            try:
                self._flush()
            except OSError:
                pass

    def _say_farewell(self) -> None:
        """Has TLS say that nothing more comes, as far as that takes no waiting. May be repeated."""
        if self.opening or self._unsent:
            return
        try:
            self._tls.unwrap()
        except (ssl.SSLError, ValueError):
            pass  # the peer has not said it, and need not; or all is said
        self._flush_quietly()


def tls_streams(tls: ServerTls) -> Callable[[socket.socket, Address], TlsStream]:
    """What makes one server's streams, with the certificate that it has then."""
    failed = FailedHandshakes()
    return lambda accepted, peer: TlsStream(accepted, peer, tls, failed)
