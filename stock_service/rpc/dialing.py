"""Connections of blocking clients over TCP or TLS. A TLS connection has the socket methods that these clients use.

A TLS connection is a ``TlsSocket``. If a ``TlsSocket`` cannot receive or send in time, it raises BlockingIOError, like
a plain socket with the kernel's timeouts. Set the timeout of a TLS connection by ``settimeout``. With the kernel's
timeouts (SO_RCVTIMEO, SO_SNDTIMEO), a ``TlsSocket`` would repeat the read for ever.
"""

import socket
import ssl
import time

from stock_service.rpc.errors import DeadlineExceeded, Unavailable
from stock_service.rpc.option_types import shown_address

READ_BYTES = 65_536
"""Largest number of bytes of one read. Nearly every reply is smaller."""

_WAITS = (ssl.SSLWantReadError, ssl.SSLWantWriteError, TimeoutError)


class TlsSocket(ssl.SSLSocket):
    """TLS socket; see the module. Not thread-safe. All its errors are OSErrors, such as ``ssl.SSLError``."""

    def recv(self, size: int = READ_BYTES, flags: int = 0) -> bytes:
        """Receives bytes of one TLS record. Returns empty bytes when the server has ended the connection, with or
        without TLS's closure alert. The caller must compare a message with the length that the protocol states, to know
        that the message is whole.
        """
        try:
            return super().recv(size, flags)
        except _WAITS as error:
            raise BlockingIOError from error

    def send(self, data: bytes, flags: int = 0) -> int:  # type: ignore[override]  # clients here send bytes
        """Sends all bytes, and returns their number. After BlockingIOError the next ``send`` must begin with the same
        bytes, and may have more bytes.

        ``flags`` is MSG_DONTWAIT or 0.
        """
        timeout_s = self.gettimeout()
        try:
            if flags:
                self.settimeout(0)
            return super().send(data)
        except _WAITS as error:
            raise BlockingIOError from error
        finally:
            if flags:
                self.settimeout(timeout_s)


def dial(address: tuple[str, int], timeout_s: float, context: ssl.SSLContext | None) -> socket.socket:
    """Opens a TCP connection with TCP_NODELAY; with a ``context``, a TLS connection. The returned connection has no
    timeout.

    Blocks for about ``timeout_s`` at most. Raises Unavailable, DeadlineExceeded.
    """
    deadline_s = time.monotonic() + timeout_s
    try:
        connected = socket.create_connection(address, timeout_s)
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                context.sslsocket_class = TlsSocket
                connected.settimeout(max(0.001, deadline_s - time.monotonic()))  # for the handshake
                connected = context.wrap_socket(connected, server_hostname=address[0])
            connected.settimeout(None)
        except BaseException:
            connected.close()
            raise
    except TimeoutError as error:
        raise DeadlineExceeded(f"no connection to {shown_address(address)} within {timeout_s:g} s") from error
    except OSError as error:
        no_tls = isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER"
        why = "the server spoke no TLS" if no_tls else error.strerror or error
        raise Unavailable(f"no connection to {shown_address(address)}: {why}") from error
    return connected
