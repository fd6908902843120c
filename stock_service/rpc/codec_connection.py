"""A blocking client over any ``Codec``: one connection, one call at a time.

For transports whose codec is all that is special about their client. Timeouts are the kernel's (SO_RCVTIMEO,
SO_SNDTIMEO): Python's own would add a poll to every send and receive.
"""

import socket
import ssl
import time
from collections.abc import Callable

from stock_service.rpc.dialing import TlsSocket, dial
from stock_service.rpc.errors import DeadlineExceeded, Fault, Unavailable
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.wire.codec import Codec
from stock_service.rpc.wire.timeval import timeval

_READ_BYTES = 65_536


class CodecConnection:
    """See ``transports.Connection``. Made by ``connect``. ``new_codec`` gives a codec for a timeout, in seconds."""

    def __init__(
        self, address: tuple[str, int], new_codec: Callable[[float], Codec], context: ssl.SSLContext | None = None
    ) -> None:
        self._address = address
        self._context = context
        self._name = shown_address(address)
        self._new_codec = new_codec
        self._codec = new_codec(1.0)
        self._prepares = self._codec  # has the timeout of the calls
        self._call_timeout_s = 0.0
        self._socket: socket.socket | TlsSocket | None = None

    def open(self, timeout_s: float) -> None:
        """Connects. Raises Unavailable, DeadlineExceeded."""
        self.close()
        try:
            connected = dial(self._address, timeout_s, self._context)
        except TimeoutError as error:
            raise DeadlineExceeded(f"no connection to {self._name} within {timeout_s:g} s") from error
        except OSError as error:
            raise Unavailable(f"no connection to {self._name}: {error.strerror or error}") from error
        self._socket = connected
        self._codec = self._new_codec(timeout_s)

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        """See ``transports.Connection.call``."""
        deadline_s = time.monotonic() + timeout_s
        if timeout_s != self._call_timeout_s:
            self._call_timeout_s, self._prepares = timeout_s, self._new_codec(timeout_s)
        prepared = self._prepares.prepare(path, payload)
        if self._socket is None or not self._codec.room():
            self.open(timeout_s)
        number, request = self._codec.start(prepared)
        reply = self._exchange(number, request, deadline_s, timeout_s)
        if isinstance(reply, Fault):
            if not self._codec.room():
                self.close()
            raise reply
        return reply

    def close(self) -> None:
        """See ``transports.Connection.close``."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, number: int, request: bytes, deadline_s: float, timeout_s: float) -> bytes | Fault:
        """Sends a request and waits for its reply. Raises DeadlineExceeded, Unavailable."""
        assert self._socket is not None
        sent = False
        try:
            self._bound(deadline_s)
            self._send(request)
            sent = True
            while True:
                data = self._socket.recv(_READ_BYTES)
                if not data:
                    raise self._lost("the server closed the connection")
                for call, reply in self._codec.feed(data):
                    if call == number:  # any other was given up
                        return reply
                self._bound(deadline_s)
        except BlockingIOError as error:  # the kernel's word for a timeout
            self._codec.abandon(number)
            if not sent:  # half a request may be on its way, and no other can follow it
                self.close()
            raise DeadlineExceeded(f"no reply from {self._name} within {timeout_s:g} s") from error
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from error
        except Unavailable as fault:
            raise self._lost(fault.detail) from fault

    def _send(self, request: bytes) -> None:
        """Sends a request. Where the server has closed, leaves that to the receiving: it may have said why."""
        assert self._socket is not None
        try:
            self._socket.sendall(request)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _bound(self, deadline_s: float) -> None:
        """Bounds the next send and receive by what is left of a call's time. Raises BlockingIOError if none is."""
        assert self._socket is not None
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise BlockingIOError
        bound = timeval(left_s)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bound)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bound)

    def _lost(self, why: str) -> Unavailable:
        self.close()
        return Unavailable(f"connection to {self._name} lost: {why.removeprefix(f'connection to {self._name} lost: ')}")


def connect(
    address: tuple[str, int],
    timeout_s: float,
    new_codec: Callable[[float], Codec],
    context: ssl.SSLContext | None = None,
) -> CodecConnection:
    """A connection that is made when this returns, over TLS with a ``context``. Blocks for ``timeout_s`` at most.

    Raises Unavailable, or DeadlineExceeded where the server's host does not answer.
    """
    connection = CodecConnection(address, new_codec, context)
    connection.open(timeout_s)
    return connection
