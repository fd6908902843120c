"""TLS for the server core: a ``ByteStream`` between a socket and the core.

OpenSSL reads and writes only memory (``ssl.MemoryBIO``). So neither a handshake nor a partial record blocks: both
continue when more bytes come. ``receive`` returns all decrypted bytes at once, since epoll would not report bytes that
OpenSSL keeps.

If the kernel takes only a part of a record, the stream keeps the encrypted rest. Then ``send`` reports that the
record's plain bytes were not sent. So the core keeps these plain bytes, and passes them to ``send`` again. This second
``send`` sends the encrypted rest, and does not encrypt the plain bytes again.

One lock guards OpenSSL's object, which the reading thread and the replying threads share. After the handshake, the name
in the peer's certificate is a part of the peer's address (``options.Peer``).

OpenSSL does not limit its memory for a peer, and does not limit its answers to a peer. So the stream ends a connection
in three cases. The peer's first message states a huge length: OpenSSL would allocate so much memory at once. The peer
sends many records without a plain byte, such as key updates. The peer does not take TLS's own answers. After the peer
has ended its sending, the stream reads no further byte, since OpenSSL would keep the byte for ever.
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
"""Largest number of plain bytes in a TLS record (RFC 8446, 5.1)."""

_SEND_BYTES = 65_536
"""Largest number of plain bytes that the stream encrypts at a time. The number limits the encrypted bytes that the
stream must keep until the kernel takes them.
"""

_TAKEN_BYTES = 16_640
"""Largest number of encrypted bytes that the stream reads at a time: a record of the largest size (RFC 8446, 5.2).
Decrypting a record takes at most 16 ms: a record full of key updates takes longest. Meanwhile the server reads no other
connection.
"""

_BARREN_BYTES_MAX = 20_480
"""Largest number of encrypted bytes in sequence, after the handshake, that contain no plain byte. The number is larger
than the largest record. If a peer sends more such bytes, the stream ends the connection.
"""

_OWN_BYTES_MAX = 16_384
"""Largest number of bytes of TLS's own messages (key updates and alerts) that a peer may leave unread. If the number is
larger, the stream ends the connection.
"""

_HELLO_BYTES_MAX = 16_384
"""Largest size of a peer's first message (ClientHello), in bytes. A real ClientHello has some 2 KiB; OpenSSL would
accept up to 128 KiB.
"""

_HELLO_KNOWN = 9
"""Number of bytes that show the length of the first message: the header of a record (5) and of a message (4)."""

_OPENING_BYTES = 48_000
"""Memory of OpenSSL 3 during a handshake, in bytes. The handshake also takes twice the size of the peer's first
message. Measured: 48,500 bytes for a message of 517 bytes.
"""

_HALF_RECORD_BYTES = 37_000
"""Additional memory of OpenSSL 3, in bytes, while only a part of a record has come. The record's size does not matter.
Measured: a connection takes 53,900 bytes instead of 16,900.
"""

_HANDSHAKE_RECORD, _HELLO_MESSAGE = 22, 1

_LOG_PAUSE_NS = 1_000_000_000
"""Shortest time, in nanoseconds, between two log lines about failed handshakes: clients cannot fill the log."""


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
"""Texts of the log for the usual reasons of a failed handshake, by OpenSSL's name of the reason. For any other reason
the log shows OpenSSL's name.
"""


class FailedHandshakes:
    """Log of one server's failed handshakes. Only the reading thread uses the object."""

    def __init__(self, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._now_ns = now_ns
        self._next_ns = 0
        self._unsaid = 0

    def note(self, peer: Address, why: str) -> None:
        """Logs a failed handshake. If the last log line is less than ``_LOG_PAUSE_NS`` old, only counts the handshake:
        the next log line shows the number. ``why`` is OpenSSL's name of the reason, or a text.
        """
        now_ns = self._now_ns()
        if now_ns < self._next_ns:
            self._unsaid += 1
            return
        more = f"; {self._unsaid} others since the line before" if self._unsaid else ""
        meant = f"{_MEANINGS[why]} ({why})" if why in _MEANINGS else short(why)
        _log.warning("no TLS with %s: %s%s", shown_address(peer), meant, more)
        self._next_ns, self._unsaid = now_ns + _LOG_PAUSE_NS, 0


class TlsStream:
    """``ByteStream`` over TLS: encrypts and decrypts the bytes of one connection in memory. No method blocks."""

    def __init__(self, accepted: socket.socket, peer: Address, tls: ServerTls, failed: FailedHandshakes) -> None:
        """``accepted`` must be a non-blocking socket. ``close`` closes this socket."""
        self._socket = accepted
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._read, self._write = self._tls.read, self._tls.write
        self._failed = failed
        self._lock = Lock()  # guards OpenSSL's objects, _unsent, _owed; only the reading thread uses the next 6 fields
        self._hello: bytes | None = b""  # first bytes of the peer; None once the length that they state was checked
        self._claimed = 0  # length of the peer's first message, as its header states
        self.barren = 0  # number of encrypted bytes since the last plain byte
        self._ended = False  # True: the peer has ended its sending
        self._left: int | None = None  # number of bytes that ``receive`` may still read; None: no limit
        self.opening = True
        self._unsent = b""  # encrypted bytes that the kernel has not taken
        self._owed = 0  # number of plain bytes of the records in _unsent, which the core counts as unsent
        self.peer = Peer(peer)
        self.receive: Callable[[int], bytes] = self._receive
        self.send: Callable[[bytes | bytearray], int] = self._send

    def fileno(self) -> int:
        """Returns the socket's descriptor."""
        return self._socket.fileno()

    @property
    def unsent(self) -> bool:
        """True if the stream has unsent encrypted bytes. If the bytes belong to a reply, the core also keeps the plain
        bytes.
        """
        return bool(self._unsent)

    def keep_to_arrived(self) -> int:
        """Limits ``receive`` to the encrypted bytes that have arrived. Returns the number of these bytes."""
        self._left = arrived_bytes(self._socket)
        return self._left

    def read_on(self) -> None:
        """Removes the limit of ``keep_to_arrived``."""
        self._left = None

    def drop(self) -> int:
        """Reads and drops encrypted bytes, and returns the number of bytes; 0 if the peer has ended its sending."""
        return len(self._socket.recv(DROP_BYTES))

    def half_close(self) -> None:
        """Sends TLS's closure alert, if the kernel takes the alert now, and half-closes the socket. Raises OSError."""
        with self._lock:
            self._say_farewell()
            self._unsent = b""  # an unsent rest of the alert, which the end of the socket's stream replaces
        self._socket.shutdown(socket.SHUT_WR)

    def unacknowledged(self) -> int:
        """Returns the number of encrypted bytes that are unsent, or that the peer's kernel has not acknowledged."""
        return unacknowledged_bytes(self._socket) + len(self._unsent)

    def held(self) -> int:
        """Returns the memory, in bytes, of unread and unsent data, and of OpenSSL's handshake or partial record.

        The result is 0 for a client that has sent nothing yet.
        """
        own = len(self._unsent) + self._outgoing.pending + self._incoming.pending
        if not self.opening:
            return own + (_HALF_RECORD_BYTES if self.barren else 0)
        return own + (_OPENING_BYTES + 2 * self._claimed if self._hello is None else len(self._hello))

    def close(self) -> None:
        """Sends TLS's closure alert, if the kernel takes the alert now, and closes the socket."""
        with self._lock:
            self._say_farewell()
            self._socket.close()
        self.receive, self.send = self._socket.recv, self._socket.send  # breaks the reference cycle with bound methods

    # ---- the reading thread

    def _receive(self, size: int) -> bytes:
        with self._lock:
            if self._ended:
                return b""
            ended = self._take_encrypted(min(size, _TAKEN_BYTES))
            try:
                data = self._decrypted()
            except ssl.SSLError as error:
                self._flush_quietly()  # sends OpenSSL's alert with the reason
                if self.opening:
                    self._failed.note(self.peer, error.reason or "the connection ended in the handshake")
                raise
            if self._unsent or self._outgoing.pending:
                self._flush_quietly()
            if self.barren > _BARREN_BYTES_MAX or len(self._unsent) > _SEND_BYTES + _OWN_BYTES_MAX:
                raise ConnectionAbortedError("nothing but words of TLS")
            if data or ended or self._ended or self._left == 0:
                return data
            raise BlockingIOError  # only a part of a record, or only TLS's own messages, have come

    def _take_encrypted(self, size: int) -> bool:
        """Receives bytes, and passes them to OpenSSL. Returns True at the end of the stream. Raises BlockingIOError,
        OSError.
        """
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
        """Keeps a peer's first bytes until the bytes show the length of its first message. Then passes the bytes to
        OpenSSL.

        Raises OSError if the first message is not a ClientHello, or is too long.
        """
        if begun[0] == _HANDSHAKE_RECORD and len(begun) < _HELLO_KNOWN:
            self._hello = begun
            return
        length = int.from_bytes(begun[6:_HELLO_KNOWN], "big")
        in_pieces = int.from_bytes(begun[3:5], "big") < 4  # the record ends before the message's length
        if begun[0] == _HANDSHAKE_RECORD and (in_pieces or begun[5] != _HELLO_MESSAGE or length > _HELLO_BYTES_MAX):
            self._failed.note(self.peer, "its first message is none, or far too long")
            raise ConnectionAbortedError("no hello of TLS")
        self._claimed = length
        self._hello = None  # for bytes that are no handshake record, OpenSSL itself raises an error
        self._incoming.write(begun)

    def _decrypted(self) -> bytes:
        """Continues the handshake, and returns all bytes that can be decrypted. Raises ssl.SSLError for wrong bytes."""
        found: list[bytes] = []
        begun = 0  # number of encrypted bytes after the last plain byte
        try:
            if self.opening:
                self._tls.do_handshake()
                self.peer.certificate = named_in(self._tls.getpeercert())
                self.opening = False
                self.barren = self._incoming.pending  # without the bytes of the handshake
            while data := self._read(_RECORD_BYTES):
                found.append(data)
                begun = self._incoming.pending
                if not begun and len(data) < _RECORD_BYTES:  # nearly always: no further bytes to decrypt
                    break  # a further read would raise an exception, which takes time
            self._ended = not data
        except ssl.SSLWantReadError:
            pass  # the next record is not whole
        except ssl.SSLZeroReturnError:  # the peer has ended its sending, after our closure alert
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
        """Sends the encrypted bytes. Returns True if the kernel took all bytes. Raises OSError if the peer is gone."""
        data = self._unsent + self._outgoing.read() if self._unsent else self._outgoing.read()
        try:
            sent = self._socket.send(data) if data else 0
        except BlockingIOError:
            sent = 0
        self._unsent = data[sent:]
        return not self._unsent

    def _flush_quietly(self) -> None:
        """Sends the encrypted bytes, like ``_flush``. Does not raise an error if the peer is gone: the next ``receive``
        finds this error.
        """
        try:
            self._flush()
        except OSError:
            pass

    def _say_farewell(self) -> None:
        """Sends TLS's closure alert, as far as possible without waiting. May be called again."""
        if self.opening or self._unsent:
            return
        try:
            self._tls.unwrap()
        except (ssl.SSLError, ValueError):
            pass  # the peer has not sent its alert, and need not; or both alerts were sent before
        self._flush_quietly()


def tls_streams(tls: ServerTls) -> Callable[[socket.socket, Address], TlsStream]:
    """Returns the function that makes the TLS streams of one server. Each stream uses the server's certificate at the
    time when the stream is made.
    """
    failed = FailedHandshakes()
    return lambda accepted, peer: TlsStream(accepted, peer, tls, failed)
