"""A connection's bytes over TLS: a ``ByteStream`` between a socket and the core.

OpenSSL reads and writes only memory (``ssl.MemoryBIO``). So neither a handshake nor a partial record blocks: both
continue when more bytes come. The stream returns all decrypted bytes at once, since epoll sees only bytes in the
kernel.

If the kernel takes only a part of a record, the stream keeps the rest in encrypted form. The record's plain bytes count
as not sent, so that the core keeps them and sends them again. Then the stream first sends the rest of the record, and
does not encrypt the plain bytes a second time.

One lock guards OpenSSL's object, which the reading thread and the replying threads share. After the handshake, the name
in the peer's certificate is a part of the peer's address.

OpenSSL limits neither the memory that it keeps for a peer, nor the answers that it sends to a peer. So three acts of a
dishonest peer end the connection: a first message that claims a huge length, for which OpenSSL would take the memory at
once; many records without a plain byte, such as changes of keys; and refusing to take TLS's own answers. After the
peer's end the stream reads no byte, since OpenSSL would keep such bytes for ever.
"""

import logging
import socket
import ssl
import time
from collections.abc import Callable
from threading import Lock

from stock_service.rpc.errors import short
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.server_core.connection import DROP_BYTES, arrived_bytes, unacknowledged_bytes
from stock_service.rpc.server_core.options import Address, Peer
from stock_service.rpc.tls import ServerTls, named_in

_log = logging.getLogger(__name__)

_RECORD_BYTES = 16_384
"""Largest number of plain bytes of a TLS record (RFC 8446, 5.1)."""

_SEND_BYTES = 65_536
"""Largest number of plain bytes encrypted at a time: so the stream keeps few encrypted bytes that the kernel does not
take.
"""

_TAKEN_BYTES = 16_640
"""Number of encrypted bytes taken at a time: a record of the largest size (RFC 8446, 5.2). Decrypting such a record
takes at most 16 ms, if it holds messages that change keys. Meanwhile no other connection is read.
"""

_BARREN_BYTES_MAX = 20_480
"""Largest number of encrypted bytes without a plain byte, after the handshake: more than the largest record."""

_OWN_BYTES_MAX = 16_384
"""Largest number of TLS's own bytes that the peer has not taken: TLS itself sends only changes of keys, and alerts."""

_HELLO_BYTES_MAX = 16_384
"""Largest size of a peer's first message. A real first message has some 2 KiB; OpenSSL takes up to 128 KiB."""

_HELLO_KNOWN = 9
"""Number of bytes that show the length of the first message: the head of a record (5) and the head of a message (4)."""

_OPENING_BYTES = 48_000
"""Memory of OpenSSL 3 during a handshake, in bytes, in addition to twice the size of the peer's first message.
Measured: 48,500 bytes for a message of 517 bytes.
"""

_HALF_RECORD_BYTES = 37_000
"""Memory of OpenSSL 3 for a record that has come in part, of any size: a connection takes 53,900 bytes instead of
16,900.
"""

_HANDSHAKE_RECORD, _HELLO_MESSAGE = 22, 1

_LOG_PAUSE_NS = 1_000_000_000
"""Shortest time between two log lines about failed handshakes: otherwise clients could fill the log."""


_NO_TLS, _NO_TRUST = "the client spoke no TLS", "the client does not trust this server's certificate"

_MEANINGS = {
    "HTTP_REQUEST": _NO_TLS,
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "UNSUPPORTED_PROTOCOL": "the client's TLS is too old",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client showed no certificate",
    "CERTIFICATE_VERIFY_FAILED": "the client's certificate is not trusted here",
    "TLSV1_ALERT_UNKNOWN_CA": _NO_TRUST,
    "SSLV3_ALERT_BAD_CERTIFICATE": _NO_TRUST,
}
"""Texts for the usual reasons of a failed handshake, by OpenSSL's names. Any other reason is logged by its name."""


class FailedHandshakes:
    """Log of clients that failed to speak TLS with one server; for its reading thread."""

    def __init__(self, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._now_ns = now_ns
        self._next_ns = 0
        self._unsaid = 0

    def note(self, peer: Address, why: str) -> None:
        """Logs a line, or counts the failure for the next line. ``why`` is OpenSSL's name of the reason, or a text."""
        now_ns = self._now_ns()
        if now_ns < self._next_ns:
            self._unsaid += 1
            return
        more = f"; {self._unsaid} others since the line before" if self._unsaid else ""
        meant = f"{_MEANINGS[why]} ({why})" if why in _MEANINGS else short(why)
        _log.warning("no TLS with %s: %s%s", shown_address(peer), meant, more)
        self._next_ns, self._unsaid = now_ns + _LOG_PAUSE_NS, 0


class TlsStream:
    """A ``ByteStream`` over TLS; see the module."""

    def __init__(self, accepted: socket.socket, peer: Address, tls: ServerTls, failed: FailedHandshakes) -> None:
        """``accepted`` must be a non-blocking socket. ``close`` closes it."""
        self._socket = accepted
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._read, self._write = self._tls.read, self._tls.write
        self._failed = failed
        self._lock = Lock()  # guards all but the fields up to ``opening``, which are the reading thread's
        self._hello: bytes | None = b""  # bytes of the peer's first message so far; None: its length is known, and good
        self._claimed = 0  # length of the peer's first message, by its head
        self.barren = 0  # encrypted bytes since the last plain one
        self._ended = False  # True: the peer has sent its end
        self._left: int | None = None  # rest of the bytes to which ``receive`` is limited; None: no limit
        self.opening = True
        self._unsent = b""  # encrypted, and not taken by the kernel yet
        self._owed = 0  # plain bytes of the records in _unsent, which count as unsent for the core
        self.peer = Peer(peer)
        self.receive: Callable[[int], bytes] = self._receive
        self.send: Callable[[bytes | bytearray], int] = self._send

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    @property
    def unsent(self) -> bool:
        """See ``ByteStream``; True for the rest of a record. For a reply's record, the core also keeps the plain
        bytes.
        """
        return bool(self._unsent)

    def keep_to_arrived(self) -> int:
        """See ``ByteStream``; the bytes are encrypted ones."""
        self._left = arrived_bytes(self._socket)
        return self._left

    def read_on(self) -> None:
        """See ``ByteStream``."""
        self._left = None

    def drop(self) -> int:
        """See ``ByteStream``; the bytes are not decrypted."""
        return len(self._socket.recv(DROP_BYTES))

    def half_close(self) -> None:
        """See ``ByteStream``."""
        with self._lock:
            self._say_farewell()
            self._unsent = b""  # the rest of the farewell: the socket's own end tells the same
        self._socket.shutdown(socket.SHUT_WR)

    def unacknowledged(self) -> int:
        """See ``ByteStream``."""
        return unacknowledged_bytes(self._socket) + len(self._unsent)

    def held(self) -> int:
        """See ``ByteStream``. A client that has sent nothing yet holds nothing."""
        own = len(self._unsent) + self._outgoing.pending + self._incoming.pending
        if not self.opening:
            return own + (_HALF_RECORD_BYTES if self.barren else 0)
        return own + (_OPENING_BYTES + 2 * self._claimed if self._hello is None else len(self._hello))

    def close(self) -> None:
        """See ``ByteStream``."""
        with self._lock:
            self._say_farewell()
            self._socket.close()
        self.receive, self.send = self._socket.recv, self._socket.send  # its own would be a circle with this object

    # ---- the reading thread

    def _receive(self, size: int) -> bytes:
        with self._lock:
            if self._ended:
                return b""
            ended = self._take_encrypted(min(size, _TAKEN_BYTES))
            try:
                data = self._decrypted()
            except ssl.SSLError as error:
                self._flush_quietly()  # the alert with the reason
                if self.opening:
                    self._failed.note(self.peer, error.reason or "the connection ended in the handshake")
                raise
            if self._unsent or self._outgoing.pending:
                self._flush_quietly()
            if self.barren > _BARREN_BYTES_MAX or len(self._unsent) > _SEND_BYTES + _OWN_BYTES_MAX:
                raise ConnectionAbortedError("nothing but words of TLS")
            if data or ended or self._ended or self._left == 0:
                return data
            raise BlockingIOError  # half a record, or TLS's own messages

    def _take_encrypted(self, size: int) -> bool:
        """Feeds OpenSSL the bytes that have come; returns True at the end. Raises BlockingIOError, OSError."""
        data = b"" if self._left == 0 else self._socket.recv(size if self._left is None else min(size, self._left))
        if self._left:
            self._left -= len(data)
        self.barren += len(data)
        if self._hello is None:
            self._incoming.write(data)
        elif data:
            self._take_hello(self._hello + data)
        return not data

    def _take_hello(self, begun: bytes) -> None:
        """Feeds OpenSSL a peer's first bytes, once they show the length of its first message. Raises OSError."""
        if begun[0] == _HANDSHAKE_RECORD and len(begun) < _HELLO_KNOWN:
            self._hello = begun
            return
        length = int.from_bytes(begun[6:_HELLO_KNOWN], "big")
        in_pieces = int.from_bytes(begun[3:5], "big") < 4  # a record so small that the length is in the next one
        if begun[0] == _HANDSHAKE_RECORD and (in_pieces or begun[5] != _HELLO_MESSAGE or length > _HELLO_BYTES_MAX):
            self._failed.note(self.peer, "its first message is none, or far too long")
            raise ConnectionAbortedError("no hello of TLS")
        self._claimed = length
        self._hello = None  # OpenSSL itself refuses bytes that are no handshake
        self._incoming.write(begun)

    def _decrypted(self) -> bytes:
        """Decrypts all bytes that are there. Raises ssl.SSLError for bytes that are no TLS."""
        found: list[bytes] = []
        begun = 0  # number of bytes behind the last plain one
        try:
            if self.opening:
                self._tls.do_handshake()
                self.peer.certificate = named_in(self._tls.getpeercert())
                self.opening = False
                self.barren = self._incoming.pending  # the handshake's last bytes are no half record
            while data := self._read(_RECORD_BYTES):
                found.append(data)
                begun = self._incoming.pending
                if not begun and len(data) < _RECORD_BYTES:  # no more bytes of that record, and no other record
                    break  # nearly always: one more read would cost an exception
            self._ended = not data
        except ssl.SSLWantReadError:
            pass  # no more bytes
        except ssl.SSLZeroReturnError:  # the peer's end, after ours was sent
            self._ended = True
        if found or self.opening:
            self.barren = 0 if self._ended else begun
        return found[0] if len(found) == 1 else b"".join(found)

    # ---- the sending thread

    def _send(self, data: bytes | bytearray) -> int:
        with self._lock:
            if self._unsent and not self._flush():
                raise BlockingIOError
            sent, self._owed = self._owed, 0
            while sent < len(data):
                part = data[sent : sent + _SEND_BYTES]
                self._write(part)
                if not self._flush():
                    self._owed = len(part)
                    break
                sent += len(part)
            return sent

    def _flush(self) -> bool:
        """Sends encrypted bytes; returns True if the kernel took all bytes. Raises OSError if the peer is gone."""
        data = self._unsent + self._outgoing.read() if self._unsent else self._outgoing.read()
        try:
            sent = self._socket.send(data) if data else 0
        except BlockingIOError:
            sent = 0
        self._unsent = data[sent:]
        return not self._unsent

    def _flush_quietly(self) -> None:
        """Sends OpenSSL's own bytes. Raises nothing: the next receive finds that the peer is gone."""
        try:
            self._flush()
        except OSError:
            pass

    def _say_farewell(self) -> None:
        """Sends TLS's closure alert, as far as possible without waiting. May be repeated."""
        if self.opening or self._unsent:
            return
        try:
            self._tls.unwrap()
        except (ssl.SSLError, ValueError):
            pass  # the peer has not sent its end, and need not; or both are sent
        self._flush_quietly()


def tls_streams(tls: ServerTls) -> Callable[[socket.socket, Address], TlsStream]:
    """Maker of the streams of one server. Each stream has the certificate that the server has when the stream is
    made.
    """
    failed = FailedHandshakes()
    return lambda accepted, peer: TlsStream(accepted, peer, tls, failed)
