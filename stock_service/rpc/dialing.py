"""A blocking client's connection: TCP, or TLS over it, with the few methods of a socket that clients here use.

Python's own TLS socket cannot keep the kernel's timeouts (SO_RCVTIMEO, SO_SNDTIMEO): where one ends a read, it reads
again, for ever. So OpenSSL reads and writes memory here (``ssl.MemoryBIO``), and the socket is ours.
"""

import socket
import ssl
import time

from stock_service.rpc.errors import DeadlineExceeded, Unavailable
from stock_service.rpc.option_types import shown_address

READ_BYTES = 65_536
"""Read at a time: a whole reply, nearly always."""


class TlsSocket:
    """See the module. One thread at a time. Errors are those of a socket; ``ssl.SSLError`` is one of them."""

    def __init__(self, connected: socket.socket, context: ssl.SSLContext, host: str) -> None:
        """``host``: whose certificate the server must have. The socket is closed by ``close``."""
        self._socket = connected
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._unsent = b""  # encrypted, and not taken by the kernel yet
        self._owed = 0  # 1: of that, the last plain byte counts as not sent
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self.setsockopt = connected.setsockopt
        self.settimeout = connected.settimeout
        self.setblocking = connected.setblocking
        self.fileno = connected.fileno

    def handshake(self, deadline_s: float) -> None:
        """Agrees with the server on how to speak. Raises TimeoutError, by ``time.monotonic``, and OSError."""
        while True:
            try:
                self._tls.do_handshake()
                self._flush()
                return
            except ssl.SSLWantReadError:
                self._flush()
            except ssl.SSLError as error:
                self._flush()  # the alert that says why
                if error.reason == "WRONG_VERSION_NUMBER":
                    raise ConnectionAbortedError("the server spoke no TLS") from error
                raise
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            self._socket.settimeout(left_s)
            self._take()

    def recv(self, _size: int) -> bytes:
        """What comes next, decrypted, all that was taken from the kernel; nothing where the server has ended.

        Raises as a socket's.
        """
        found = b""
        while True:
            try:
                data = self._tls.read(READ_BYTES)
                found += data
                if not data or not (self._incoming.pending or self._tls.pending()):
                    return found
                continue
            except ssl.SSLWantReadError:
                self._send_some(0)  # what TLS itself has to answer
                if found:
                    return found
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return found  # without a word of TLS too: frames and messages say themselves whether they are whole
            self._take()

    def send(self, data: bytes, flags: int = 0) -> int:
        """Sends the first of some bytes, as a socket's that does not block; says how many.

        Where the kernel does not take all of it, the last byte counts as not sent, so that it is given again.
        """
        if self._unsent and not self._send_some(flags):
            raise BlockingIOError
        if len(data) > self._owed:
            self._tls.write(data[self._owed :])
        self._owed = int(not self._send_some(flags))
        return len(data) - self._owed

    def sendall(self, data: bytes) -> None:
        """Sends all of some bytes. Raises as a socket's."""
        self._tls.write(data)
        self._flush()

    def close(self) -> None:
        """Frees the connection. May be repeated."""
        self._socket.close()

    def _take(self) -> None:
        data = self._socket.recv(READ_BYTES)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    def _flush(self) -> None:
        data, self._unsent = self._unsent + self._outgoing.read(), b""
        if data:
            self._socket.sendall(data)

    def _send_some(self, flags: int) -> bool:
        """Sends what is encrypted; says whether the kernel took it all. Raises OSError where the server is gone."""
        data = self._unsent + self._outgoing.read()
        try:
            self._unsent = data[self._socket.send(data, flags) :] if data else b""
        except BlockingIOError:
            self._unsent = data
        return not self._unsent


Dialled = socket.socket | TlsSocket
"""What clients here send and receive through."""


def dial(address: tuple[str, int], timeout_s: float, context: ssl.SSLContext | None) -> Dialled:
    """A connection without delays (TCP_NODELAY), over TLS with a ``context``, which blocks for ever unless told not to.

    Blocks for about ``timeout_s`` at most. Raises Unavailable, DeadlineExceeded.
    """
    deadline_s = time.monotonic() + timeout_s
    try:
        connected = socket.create_connection(address, timeout_s)
        dialled: Dialled = connected
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                dialled = over_tls = TlsSocket(connected, context, address[0])
                over_tls.handshake(deadline_s)
            connected.settimeout(None)
        except BaseException:
            connected.close()
            raise
    except TimeoutError as error:
        raise DeadlineExceeded(f"no connection to {shown_address(address)} within {timeout_s:g} s") from error
    except OSError as error:
        raise Unavailable(f"no connection to {shown_address(address)}: {error.strerror or error}") from error
    return dialled
