"""One blocking connection over any ``Codec``, one call at a time: the shortest way of a request through Python.

A call is one send and, mostly, one receive. What the protocol has to say after a reply goes with the next request:
grpc-go sends a PING before every reply. Timeouts are the kernel's (SO_RCVTIMEO, SO_SNDTIMEO), set anew only when they
differ. Python's own would add a poll to every send and receive.

Left out: reading between calls. A server that pings an idle connection, as grpcio does when it stops, is not answered
before the next call. That call finds a connection which the server closed meanwhile, and is Unavailable. So it suits a
connection for each request, and those that are idle for less than the seconds that keepalives allow. The load client's
other kept connections are lanes (``lanes.py``), which are always read.
"""

import socket
import ssl
import time
from collections.abc import Callable
from typing import NoReturn

from stock_service.rpc import dialing
from stock_service.rpc.dialing import Dialled
from stock_service.rpc.errors import DeadlineExceeded, Fault, Unavailable
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.transports import Address
from stock_service.rpc.wire.codec import Codec, Prepared
from stock_service.rpc.wire.timeval import timeval

READ_BYTES = 65_536
"""Read at a time: a whole reply, nearly always."""

PREPARED_MAX = 1024
"""Requests kept encoded, at most; what a load repeats is a few dozen."""

PREPARED_BYTES_MAX = 4096
"""Bytes of a request that is kept encoded, at most."""

_LEEWAY = 0.05
"""Of a timeout: by how much a reply in pieces may overrun it, so that its next piece costs no system call."""


class LeanConnection:
    """See ``transports.Connection``. Made by ``connect``."""

    def __init__(
        self, address: Address, codec_factory: Callable[[], Codec], context: ssl.SSLContext | None = None
    ) -> None:
        self._peer = shown_address(address)
        self._address, self._context = address, context
        self._codec_factory = codec_factory
        self._codec = codec_factory()
        self._socket: Dialled | None = None
        self._timeout_s = 0.0
        self._unsent = b""  # what the protocol has to say, which waits for the next request
        self._prepared: dict[tuple[str, bytes], Prepared] = {}

    def open(self, timeout_s: float) -> None:
        """Connects. Raises Unavailable, DeadlineExceeded."""
        self.close()
        self._socket = dial(self._address, timeout_s, self._context)
        self._set_timeout(timeout_s)
        self._codec = self._codec_factory()
        self._unsent = b""
        try:
            self._socket.sendall(self._codec.hello)
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from error

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        """See ``transports.Connection.call``. A reply in pieces may take a twentieth longer than ``timeout_s``."""
        prepared = self._prepared.get((path, payload)) or self._prepare(path, payload)
        if self._socket is None or not self._codec.room():
            self.open(timeout_s)
        elif timeout_s != self._timeout_s:
            self._set_timeout(timeout_s)
        connected, codec = self._socket, self._codec
        assert connected is not None
        number, request = codec.start(prepared)
        if self._unsent:
            request = self._unsent + request
            self._unsent = b""
        began_s = time.monotonic()
        whole = False
        try:
            self._send(request)
            whole = True
            while True:
                data = connected.recv(READ_BYTES)
                if not data:
                    raise self._lost("the server closed the connection")
                try:
                    replies = codec.feed(data)
                except Unavailable:
                    self._farewell()
                    raise
                outgoing = codec.take_outgoing()
                for call, reply in replies:
                    if call != number:  # it was given up
                        continue
                    if isinstance(reply, bytes):
                        if outgoing:
                            self._send_later(outgoing)
                        return reply
                    self._end_in(reply, outgoing)
                if outgoing:
                    self._send(outgoing)
                self._shorten_timeout(began_s, timeout_s)
        except BlockingIOError as error:  # the kernel's word for a timeout
            self._give_up(number, whole)
            raise DeadlineExceeded(f"no reply from {self._peer} within {timeout_s:g} s") from error
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from error

    def close(self) -> None:
        """See ``transports.Connection.close``."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _prepare(self, path: str, payload: bytes) -> Prepared:
        """Encodes a request, and keeps it if it is small."""
        prepared = self._codec.prepare(path, payload)
        if len(payload) <= PREPARED_BYTES_MAX:
            if len(self._prepared) >= PREPARED_MAX:
                self._prepared.clear()
            self._prepared[path, payload] = prepared
        return prepared

    def _send(self, data: bytes) -> None:
        """Sends all of it. Where the server has closed, leaves that to the receiving: it may have said why."""
        assert self._socket is not None
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _send_later(self, outgoing: bytes) -> None:
        """Keeps what the protocol has to say for the next request, if there will be one on this connection."""
        if self._codec.room():
            self._unsent = outgoing
        else:
            self._send(outgoing)

    def _end_in(self, fault: Fault, outgoing: bytes) -> NoReturn:
        """Raises a call's fault; the connection stays, unless the server is stopping."""
        if outgoing:
            self._send(outgoing)
        if isinstance(fault, Unavailable):
            self.close()
        raise fault

    def _farewell(self) -> None:
        """Tells the server why the connection is closed, if it takes that at once, and closes it."""
        assert self._socket is not None
        try:
            self._socket.send(self._codec.take_outgoing(), socket.MSG_DONTWAIT)
        except OSError:
            pass  # it has closed, or reads no more
        self.close()

    def _give_up(self, number: int, whole: bool) -> None:
        """Ends a call whose time is up, and the connection too where half of something may be on its way."""
        self._timeout_s = 0.0
        cancel = self._codec.abandon(number)
        try:
            sent = self._socket.send(cancel, socket.MSG_DONTWAIT) if self._socket and whole and cancel else 0
        except OSError:
            sent = -1  # and the connection is of no use any more
        if not whole or sent != len(cancel):
            self.close()

    def _lost(self, why: str) -> Unavailable:
        self.close()
        return Unavailable(f"connection to {self._peer} lost: {why}")

    def _shorten_timeout(self, began_s: float, timeout_s: float) -> None:
        """Bounds the next receive by what is left of a call's time. Raises BlockingIOError if that is nothing."""
        elapsed_s = time.monotonic() - began_s
        if elapsed_s >= timeout_s:
            raise BlockingIOError
        if elapsed_s > _LEEWAY * timeout_s:
            self._set_timeout(timeout_s - elapsed_s)

    def _set_timeout(self, timeout_s: float) -> None:
        """Bounds every send and receive from now on."""
        assert self._socket is not None
        self._timeout_s = timeout_s
        bound = timeval(timeout_s)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bound)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bound)


def dial(address: Address, timeout_s: float, context: ssl.SSLContext | None = None) -> Dialled:
    """A connection that sends at once (NODELAY), over TLS where there is a ``context``, and blocks.

    Blocks for about ``timeout_s`` at most; raises Unavailable, DeadlineExceeded.
    """
    where = shown_address(address)
    try:
        return dialing.dial(address, timeout_s, context)
    except TimeoutError as error:
        raise DeadlineExceeded(f"no connection to {where} within {timeout_s:g} s") from error
    except OSError as error:
        raise Unavailable(f"no connection to {where}: {error.strerror or error}") from error


def connect(
    address: Address, timeout_s: float, codec_factory: Callable[[], Codec], context: ssl.SSLContext | None = None
) -> LeanConnection:
    """A connection that is made when this returns; ``codec_factory`` gives a codec for each that it makes.

    ``context``: of TLS; None: it is plain. Blocks for ``timeout_s`` at most. Raises Unavailable, or DeadlineExceeded
    where the server's host does not answer. Whether a server speaks the codec's protocol shows at the first call.
    """
    connection = LeanConnection(address, codec_factory, context)
    connection.open(timeout_s)
    return connection
