"""Channels over three socket APIs in Python, for the study ``sockets``: Berkeley sockets, ZeroMQ and NNG.

The code of each API follows the guide of its library. ``experiments/peers/c/sockets/`` has the same channels in C. A
server receives a message, and sends a message back before it receives the next message. A client sends a message, and
receives the reply. ``receive`` waits for ``wait_s`` seconds at most. A channel is for one thread. Over ``berkeley`` a
message's length precedes the message, in four bytes, big-endian. A ``berkeley`` server has one connection at a time.
"""

import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

MESSAGE_BYTES_MAX = 1_000_000
"""Largest message, in bytes: below the 1 MiB that NNG allows by default."""

READ_BYTES, LENGTH_BYTES, BACKLOG = 1 << 16, 4, 128

LINGER_MS = 1000
"""Longest time in milliseconds for which ZeroMQ still delivers sent messages after the close."""


class Gone(Exception):
    """Error of a channel: a message could not be sent, or the connection to the server is lost. The error's message
    states the reason.
    """


class Channel(Protocol):
    """One side of a connection over a socket API: server or client. Not thread-safe."""

    def listen(self, host: str, port: int) -> None:
        """Makes the channel a server at this address."""

    def connect(self, host: str, port: int) -> None:
        """Connects to the server at this address. Raises Gone if the API knows at once that no server listens."""

    def send(self, message: bytes) -> None:
        """Sends a message. Raises Gone if the message cannot be sent."""

    def receive(self) -> bytes | None:
        """Returns the next message. Returns None if no message comes in time. A client that has lost the server raises
        Gone.
        """

    def close(self) -> None:
        """Closes the channel. Blocks for up to ``LINGER_MS`` over ZeroMQ, and for ``REAPED_S`` over NNG."""


class Berkeley:
    """Channel over TCP by the kernel's socket interface."""

    def __init__(self, _is_server: bool, wait_s: float) -> None:
        self._wait = struct.pack("@ll", int(wait_s), int(wait_s % 1 * 1e6))
        self._listener: socket.socket | None = None
        self._connection: socket.socket | None = None
        self._held = b""

    def listen(self, host: str, port: int) -> None:
        """Listens at this address. The first ``receive`` accepts a connection."""
        self._listener = socket.create_server((host, port), backlog=BACKLOG)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, self._wait)

    def connect(self, host: str, port: int) -> None:
        """Connects to the server at this address. Raises Gone if the connection fails."""
        try:
            self._take(socket.create_connection((host, port)))
        except OSError as error:
            raise Gone(str(error)) from error

    def _take(self, connection: socket.socket) -> None:
        """Sets the options of a new connection, and makes it the channel's connection."""
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, self._wait)
        self._connection, self._held = connection, b""

    def send(self, message: bytes) -> None:
        """Sends the message's length and the message. Raises Gone if the connection is lost."""
        assert self._connection is not None
        try:
            self._connection.sendall(len(message).to_bytes(LENGTH_BYTES) + message)
        except OSError as error:
            raise Gone(str(error)) from error

    def receive(self) -> bytes | None:
        """Returns the next message, or None if no message comes in time. A server also returns None if the client has
        left.

        A server without a connection first accepts a connection. A client that has lost the server raises Gone.
        """
        try:
            if self._connection is None:
                assert self._listener is not None
                self._take(self._listener.accept()[0])
            return self._message()
        except BlockingIOError:  # nothing came in time
            return None
        except OSError as error:
            self._left(str(error))
            return None

    def _message(self) -> bytes | None:
        """Returns the next message. If the connection has ended, a server returns None, and a client raises Gone.

        Raises BlockingIOError if the message does not come in time, and OSError for other errors of the socket.
        """
        assert self._connection is not None
        while True:
            end = LENGTH_BYTES + int.from_bytes(self._held[:LENGTH_BYTES])
            if end > LENGTH_BYTES + MESSAGE_BYTES_MAX:
                self._left(f"a message of over {MESSAGE_BYTES_MAX} bytes")
                return None
            if len(self._held) >= end > LENGTH_BYTES:
                message, self._held = self._held[LENGTH_BYTES:end], self._held[end:]
                return message
            came = self._connection.recv(READ_BYTES)
            if not came:
                self._left("the connection was closed")
                return None
            self._held += came

    def _left(self, why: str) -> None:
        """Handles the end of the connection. A server closes the connection, and can accept the next connection. A
        client raises Gone with the reason ``why``."""
        if self._listener is None:
            raise Gone(why)
        assert self._connection is not None
        self._connection.close()
        self._connection = None

    def close(self) -> None:
        """Closes the connection and the listening socket."""
        for each in (self._connection, self._listener):
            if each is not None:
                each.close()


class ZeroMq:
    """Channel over ZeroMQ: a REP socket at the server, a REQ socket at the client."""

    def __init__(self, is_server: bool, wait_s: float) -> None:
        import zmq

        self._again, self._error = zmq.Again, zmq.ZMQError
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.REP if is_server else zmq.REQ)
        wait_ms = round(wait_s * 1000)
        for option, value in ((zmq.RCVTIMEO, wait_ms), (zmq.SNDTIMEO, wait_ms), (zmq.LINGER, LINGER_MS)):
            self._socket.setsockopt(option, value)

    def listen(self, host: str, port: int) -> None:
        """Binds the socket to this address. Raises zmq.ZMQError."""
        self._socket.bind(f"tcp://{host}:{port}")

    def connect(self, host: str, port: int) -> None:
        """Begins to connect to the server at this address. ZeroMQ makes the connection in the background."""
        self._socket.connect(f"tcp://{host}:{port}")

    def send(self, message: bytes) -> None:
        """Sends a message. Raises Gone if ZeroMQ does not take the message in time."""
        try:
            self._socket.send(message)
        except self._error as error:
            raise Gone(str(error)) from error

    def receive(self) -> bytes | None:
        """Returns the next message, or None if no message comes in time."""
        try:
            return self._socket.recv()
        except self._again:
            return None

    def close(self) -> None:
        """Closes the socket. Blocks until ZeroMQ has delivered the sent messages, for ``LINGER_MS`` at most."""
        self._socket.close()
        self._context.term()


REAPED_S = 0.2
"""Time in seconds that libnng's own thread needs to end the connections of a closed socket."""


class Nng:
    """Channel over NNG: a REP socket at the server, a REQ socket at the client."""

    def __init__(self, is_server: bool, wait_s: float) -> None:
        import pynng

        self._timeout, self._error = pynng.Timeout, pynng.NNGException
        wait_ms = round(wait_s * 1000)
        made = pynng.Rep0 if is_server else pynng.Req0
        self._socket: Any = made(recv_timeout=wait_ms, send_timeout=wait_ms)  # pynng has no types

    def listen(self, host: str, port: int) -> None:
        """Listens at this address. Raises pynng.NNGException."""
        self._socket.listen(f"tcp://{host}:{port}")

    def connect(self, host: str, port: int) -> None:
        """Connects to the server at this address. Raises Gone if the connection fails."""
        try:
            self._socket.dial(f"tcp://{host}:{port}", block=True)
        except self._error as error:
            raise Gone(str(error)) from error

    def send(self, message: bytes) -> None:
        """Sends a message. Raises Gone if NNG does not take the message in time."""
        try:
            self._socket.send(message)
        except self._error as error:
            raise Gone(str(error)) from error

    def receive(self) -> bytes | None:
        """Returns the next message, or None if no message comes in time."""
        try:
            message: bytes = self._socket.recv()
        except self._timeout:
            return None
        return message

    def close(self) -> None:
        """Closes the socket, and then blocks for ``REAPED_S``. libnng panics if the process ends while libnng's own
        thread still ends a connection."""
        self._socket.close()
        time.sleep(REAPED_S)


CHANNELS: dict[str, Callable[[bool, float], Channel]] = {"berkeley": Berkeley, "zeromq": ZeroMq, "nng": Nng}
"""Classes of channels, by the API's name. The first argument is True for a server. The second argument is the longest
wait for a message, in seconds."""


def channel(api: str, is_server: bool, wait_s: float) -> Channel:
    """Makes a channel of this API. If the API's library is missing, prints a line and exits the process with code 2.

    ``wait_s`` is the longest wait for a message, in seconds.
    """
    try:
        return CHANNELS[api](is_server, wait_s)
    except ModuleNotFoundError as error:
        print(f"--api {api}: {error}; the group `bindings` has it: run make install", file=sys.stderr)
        sys.exit(2)
