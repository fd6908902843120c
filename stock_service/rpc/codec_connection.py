"""A blocking client for any protocol with a ``Codec``: one connection, one call at a time, few system calls per call.

A call needs one send and, mostly, one receive. After a reply the protocol itself may have bytes to send: the client
sends these bytes together with the next request. For example, a server in grpc-go sends a PING before every reply, and
the client must answer this PING. Without TLS, the client uses the kernel's timeouts (SO_RCVTIMEO, SO_SNDTIMEO), and
sets a timeout only when its value changes. Python's own timeouts would add a system call, poll(2), to every send and
receive.

Left out: reading between calls. If the server pings an idle connection, as a stopping grpcio server does, the client
answers only at the next call. If the server closes an idle connection, the next call raises Unavailable. The load
generator's connections (``clients/load/send/lanes.py``) also read between calls.
"""

import socket
import ssl
import time
from collections.abc import Callable

from stock_service.rpc.dialing import READ_BYTES, TlsSocket, dial
from stock_service.rpc.errors import DeadlineExceeded, Fault, Unavailable
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.wire.codec import Codec, Prepared
from stock_service.rpc.wire.timeval import timeval

Prepare = Callable[[str, bytes, float], Prepared]
"""Function with the interface of ``Codec.prepare``."""


class CodecConnection:
    """A connection that speaks a codec's protocol. Implements ``transports.Connection``. Not thread-safe."""

    def __init__(
        self,
        address: tuple[str, int],
        new_codec: Callable[[], Codec],
        context: ssl.SSLContext | None = None,
        prepare: Prepare | None = None,
        greeting: tuple[str, bytes] | None = None,
    ) -> None:
        """Does not connect: ``open`` or the first call opens the connection.

        ``context`` is None for a connection without TLS. ``prepare`` replaces the codec's ``prepare``, for example to
        tell the server another time limit. ``greeting`` is the path and the payload of the first call on each new
        connection. If this first call fails, ``open`` fails too.
        """
        self._address, self._context = address, context
        self._peer = shown_address(address)
        self._new_codec, self._prepare, self._greeting = new_codec, prepare, greeting
        self._codec: Codec
        self._socket: socket.socket | None = None
        self._timeout_s = 0.0  # the kernel's timeout; 0.0 if it is not set
        self._unsent = b""  # the protocol's own bytes to send with the next request

    def open(self, timeout_s: float) -> "CodecConnection":
        """Connects, and returns this object. Blocks for ``timeout_s`` at most.

        Raises Unavailable, DeadlineExceeded, and the Fault of a refused greeting. Without a greeting, only the first
        call shows whether the server speaks the codec's protocol.
        """
        self.close()
        deadline_s = time.monotonic() + timeout_s
        self._socket = dial(self._address, timeout_s, self._context)
        self._timeout_s, self._unsent = 0.0, b""
        self._codec = self._new_codec()
        try:
            self._socket.sendall(self._codec.hello)
            if self._greeting is not None:
                self.call(*self._greeting, deadline_s - time.monotonic())
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from error
        except Fault:
            self.close()
            raise
        return self

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        """Makes one call, as ``transports.Connection.call`` describes."""
        deadline_s, left_s = time.monotonic() + timeout_s, timeout_s
        if self._socket is None:
            self.open(timeout_s)
            left_s = deadline_s - time.monotonic()
        connected, codec = self._socket, self._codec
        assert connected is not None
        number, outgoing = codec.start((self._prepare or codec.prepare)(path, payload, timeout_s))
        if self._unsent:
            outgoing = self._unsent + outgoing
            self._unsent = b""
        whole = True  # False during a send: a timeout may end the send after a part of the bytes
        try:
            if left_s != self._timeout_s:
                self._bound(left_s)
            while True:
                if outgoing:
                    whole = False
                    self._send(outgoing)
                    whole = True
                data = connected.recv(READ_BYTES)
                if not data:
                    raise self._lost("the server closed the connection")
                try:
                    replies = codec.feed(data)
                except Unavailable:
                    self._farewell()
                    raise
                outgoing = codec.take_outgoing()
                for answered, reply in replies:
                    if answered != number:  # the reply of an earlier call, which was abandoned
                        continue
                    if isinstance(reply, bytes) and codec.room():
                        self._unsent = outgoing
                        return reply
                    return self._last(reply, outgoing)
                self._bound(deadline_s - time.monotonic())
        except BlockingIOError as error:  # EAGAIN, by which the kernel reports a timeout
            self._give_up(number, whole)
            raise DeadlineExceeded(f"no reply from {self._peer} within {timeout_s:g} s") from error
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from error

    def close(self) -> None:
        """Closes the connection. May be called again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _last(self, reply: bytes | Fault, outgoing: bytes) -> bytes:
        """Sends ``outgoing``, the protocol's own bytes, and closes the connection if no further call is possible. Then
        returns ``reply``, or raises ``reply`` if it is a Fault.
        """
        self._send(outgoing)
        if isinstance(reply, Unavailable) or not self._codec.room():
            self.close()
        if isinstance(reply, bytes):
            return reply
        raise reply

    def _send(self, data: bytes) -> None:
        """Sends all bytes. If the server has closed the connection, raises no error, since the next receive may show
        the reason.
        """
        assert self._socket is not None
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _farewell(self) -> None:
        """Sends the codec's last bytes, which tell the server the reason of the close. Never blocks. Closes the
        connection.
        """
        assert self._socket is not None
        try:
            self._socket.send(self._codec.take_outgoing(), socket.MSG_DONTWAIT)
        except OSError:
            pass  # the server has closed the connection, or does not read
        self.close()

    def _give_up(self, number: int, whole: bool) -> None:
        """Abandons a call whose time limit is over. ``whole`` is True if the whole request was sent.

        Closes the connection if only a part of the request may have been sent. Also closes the connection if the
        message that cancels the call cannot be sent at once, or if the codec has no room for a further call.
        """
        self._timeout_s = 0.0
        cancel = self._codec.abandon(number)
        try:
            sent = self._socket.send(cancel, socket.MSG_DONTWAIT) if self._socket and whole and cancel else 0
        except OSError:
            sent = -1  # the connection cannot be used any more
        if not whole or sent != len(cancel) or not self._codec.room():
            self.close()

    def _lost(self, why: str) -> Unavailable:
        self.close()
        return Unavailable(f"connection to {self._peer} lost: {why}")

    def _bound(self, left_s: float) -> None:
        """Sets the timeout of the next sends and receives to ``left_s``, in seconds. Raises BlockingIOError if no time
        is left.
        """
        assert self._socket is not None
        if left_s <= 0:
            raise BlockingIOError
        self._timeout_s = left_s
        if isinstance(self._socket, TlsSocket):  # with the kernel's timeouts, a TlsSocket would read for ever
            self._socket.settimeout(left_s)
            return
        bound = timeval(left_s)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bound)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bound)
