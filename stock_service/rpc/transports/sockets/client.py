"""The client of the sockets transport: one blocking connection, one call at a time.

Timeouts are the kernel's (SO_RCVTIMEO, SO_SNDTIMEO): Python's own would add a poll to every send and receive.
"""

import socket
import time

from stock_service.rpc.dialing import TlsSocket, dial
from stock_service.rpc.errors import DeadlineExceeded, Fault, FaultCode, InvalidRequest, NotBegun, Unavailable, coded
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.server_core.listening import READ_BYTES
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials
from stock_service.rpc.transports import Address
from stock_service.rpc.transports.sockets.frames import HELLO
from stock_service.rpc.wire.framing import (
    CALL_MAX,
    METHOD_BYTES_MAX,
    FramingError,
    ReplyFrame,
    encode_request,
    reply_decoder,
)
from stock_service.rpc.wire.timeval import timeval


class SocketConnection:
    """See ``transports.Connection``. Made by ``connect``."""

    def __init__(self, address: Address, credentials: ClientCredentials = NO_CREDENTIALS) -> None:
        """Raises UsageError for credentials that cannot be used."""
        self._address = address
        self._context = credentials.context()
        self._token = credentials.token.encode()
        self._socket: socket.socket | TlsSocket | None = None
        self._decoder = reply_decoder()
        self._timeout_s = 0.0
        self._call = 0

    def open(self, timeout_s: float) -> None:
        """Connects, and says who it is. Raises Unavailable, DeadlineExceeded, Unauthenticated."""
        self.close()
        try:
            self._socket = dial(self._address, timeout_s, self._context)
        except TimeoutError as error:
            raise DeadlineExceeded(f"no connection to {shown_address(self._address)} within {timeout_s:g} s") from error
        except OSError as error:
            raise Unavailable(f"no connection to {shown_address(self._address)}: {error.strerror or error}") from error
        self._decoder = reply_decoder()
        self._set_timeout(timeout_s)
        if self._token:
            try:
                self._answered(HELLO, self._token, timeout_s)
            except Fault:
                self.close()
                raise

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        method = path.encode()
        if len(method) > METHOD_BYTES_MAX:
            raise InvalidRequest(f"a method's name of {len(method)} bytes, allowed: {METHOD_BYTES_MAX}")
        if self._socket is None:
            self.open(timeout_s)
        elif timeout_s != self._timeout_s:
            self._set_timeout(timeout_s)
        return self._answered(method, payload, timeout_s)

    def _answered(self, method: bytes, payload: bytes, timeout_s: float) -> bytes:
        """What a request is answered on a connection that is open."""
        self._call = number = self._call % CALL_MAX + 1
        reply = self._exchange(encode_request(number, max(1, round(timeout_s * 1000)), method, payload), timeout_s)
        if reply.code == 0:
            return reply.payload
        detail = reply.payload.decode(errors="replace")
        if reply.call:
            raise coded(reply.code, detail)
        self.close()  # it is about the connection, which the server now closes
        detail = f"connection to {shown_address(self._address)}: {detail}"
        raise NotBegun(detail) if reply.code == FaultCode.UNAVAILABLE else coded(reply.code, detail)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, request: bytes, timeout_s: float) -> ReplyFrame:
        """Sends a request and waits for its reply, or for a fault of the connection."""
        assert self._socket is not None
        deadline_s = time.monotonic() + timeout_s
        sent = False
        try:
            self._send(request)
            sent = True
            while True:
                data = self._socket.recv(READ_BYTES)
                if not data:
                    raise self._lost("the server closed the connection")
                frames = {reply.call: reply for reply in self._decoder.feed(data)}
                if self._call in frames:  # any other is the late reply to a call that was given up
                    if 0 in frames:  # and the next call needs another connection
                        self.close()
                    return frames[self._call]
                if 0 in frames:
                    return frames[0]
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    raise BlockingIOError
                self._set_timeout(left_s)
        except BlockingIOError as error:  # the kernel's word for a timeout
            self._timeout_s = 0.0
            if not sent:  # half a request may be on its way, and no other can follow it
                self.close()
            raise DeadlineExceeded(f"no reply from {shown_address(self._address)} within {timeout_s:g} s") from error
        except FramingError as error:
            raise self._lost(f"the server sent what is no reply: {error}") from error
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from error

    def _send(self, request: bytes) -> None:
        """Sends a request. Where the server has closed, leaves that to the receiving: it may have said why."""
        assert self._socket is not None
        try:
            self._socket.sendall(request)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _lost(self, why: str) -> Fault:
        self.close()
        return Unavailable(f"connection to {shown_address(self._address)} lost: {why}")

    def _set_timeout(self, timeout_s: float) -> None:
        """Bounds every send and receive from now on."""
        assert self._socket is not None
        self._timeout_s = timeout_s
        bound = timeval(timeout_s)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bound)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bound)


def connect(address: Address, timeout_s: float, credentials: ClientCredentials = NO_CREDENTIALS) -> SocketConnection:
    """A connection that is made when this returns. Blocks for ``timeout_s`` at most, and once more to say who it is.

    Raises Unavailable, DeadlineExceeded where the server's host does not answer, Unauthenticated.
    """
    connection = SocketConnection(address, credentials)
    connection.open(timeout_s)
    return connection
