"""Serves Lookups over the sockets protocol, in plain Python written for speed: one thread with epoll.

    python -m experiments.peers.python.epoll_server --port 0

This server is like the server in C (``experiments/peers/c/stock_server.c``), but in Python and with protobuf's
messages. The server has no thread pool, no lock, no queue, no deadlines, no limit except on a frame's size, and no code
of our server. The difference between our server's time and this server's time is the cost of the missing parts. The
server answers Lookups of the default four stocks. Any other method gets the fault UNIMPLEMENTED. While a client does
not read its replies, the server does not read from the client's connection (back-pressure).

With ``--fdatasync`` the server does only the disk writes of a durable server without group commit. Every request, of
any method, writes two pages to a file in the working folder. The request gets an empty reply when the pages are on the
disk.

The server prints ``ready HOST:PORT`` when it serves. After SIGTERM or SIGINT the server accepts no more connections,
answers the requests that have arrived, and exits with 0. The exit code is 1 if these answers take longer than
``--grace-s``, or if a second signal comes. For a bad option or a taken port, the server prints one line and exits with
2.
"""

import argparse
import os
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from struct import Struct
from typing import NoReturn

from google.protobuf.message import DecodeError

from stock_service.v1 import stock_pb2

METHOD = b"/stock_service.v1.StockService/Lookup"

STOCKS = {"GameStart": 1599, "FishCo": 4250, "BoarCo": 875, "MenhirCo": 10120}
"""Prices in cents, by the stock's name."""

FRAME_BYTES_MAX, READ_BYTES, EVENTS_MAX, BACKLOG = 1 << 20, 1 << 16, 256, 4096

GRACE_S_MAX = 3600.0

LINGER_S = 0.05
"""Longest time in seconds from the last reply to the server's end. In this time clients can close their connections
first, so that no connection is reset.
"""

PAGES, PAGE_BYTES = 512, 4096
"""Size of the file for ``--fdatasync``: number of pages, and number of bytes in a page."""

INVALID_ARGUMENT, UNIMPLEMENTED = 3, 12
"""Fault codes of a reply, with the values of ``stock_service/rpc/errors.py``. 0 is no fault."""

_REQUEST, _REPLY = Struct("!IIIB"), Struct("!IIB")
_REQUEST_BYTES, _REPLY_LENGTH_MIN = _REQUEST.size, _REPLY.size - 4
_request_at, _pack_reply = _REQUEST.unpack_from, _REPLY.pack


class Lost(Exception):
    """Error of a connection: the client has closed the connection, or has sent bytes that are not frames."""


def lookup(payload: bytes) -> bytes:
    """Encoded reply to an encoded Lookup. Raises DecodeError for bytes that are not a Lookup."""
    name = stock_pb2.LookupRequest.FromString(payload).name
    price_cents = STOCKS.get(name)
    if price_cents is None:
        return stock_pb2.LookupResponse(status=stock_pb2.STATUS_UNKNOWN_STOCK).SerializeToString()
    return stock_pb2.LookupResponse(status=stock_pb2.STATUS_OK, price_cents=price_cents).SerializeToString()


def answer(method: bytes, payload: bytes) -> tuple[int, bytes]:
    """Answers one request. Returns the fault code (0 for no fault), and the encoded reply or the fault's text."""
    if method != METHOD:
        return UNIMPLEMENTED, b"no such method here"
    try:
        return 0, lookup(payload)
    except DecodeError:
        return INVALID_ARGUMENT, b"no LookupRequest"


class Disk:
    """A temporary file of ``PAGES`` pages in the working folder, for the writes of ``--fdatasync``. The file disappears
    with the process."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(dir=".")  # noqa: SIM115  # open as long as the process
        self._file.write(bytes(PAGES * PAGE_BYTES))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._page = 0

    def answer(self, _method: bytes, _payload: bytes) -> tuple[int, bytes]:
        """Overwrites two pages, as a commit of one trade does. Blocks until the pages are on the disk."""
        os.pwrite(self._file.fileno(), os.urandom(2 * PAGE_BYTES), self._page * PAGE_BYTES)
        os.fdatasync(self._file.fileno())
        self._page = (self._page + 2) % PAGES
        return 0, b""


Answer = Callable[[bytes, bytes], tuple[int, bytes]]
"""Function that takes a request's method and payload, and gives the fault code and the reply."""


def cut(data: bytes, answer: Answer = answer) -> tuple[bytes, int]:
    """Answers all complete requests in ``data`` with the function ``answer``. Returns the encoded replies, and the
    number of bytes of the answered requests. Raises Lost for bytes that are not frames.
    """
    replies, start, end = b"", 0, len(data)
    while end - start >= _REQUEST_BYTES:
        length, call, _, method_bytes = _request_at(data, start)
        stop, body = start + 4 + length, start + _REQUEST_BYTES + method_bytes
        if length > FRAME_BYTES_MAX or body > stop or not call:
            raise Lost
        if stop > end:
            break
        code, reply = answer(data[start + _REQUEST_BYTES : body], data[body:stop])
        replies += _pack_reply(_REPLY_LENGTH_MIN + len(reply), call, code) + reply
        start = stop
    return replies, start


class Connection:
    """A client's connection. ``held`` has the bytes of an incomplete frame. ``unsent`` has the bytes of replies that
    the kernel has not taken yet."""

    __slots__ = ("accepted", "answer", "ended", "held", "unsent")

    def __init__(self, accepted: socket.socket, answer: Answer) -> None:
        self.accepted, self.answer = accepted, answer
        self.held = self.unsent = b""
        self.ended = False  # True once this side has ended the connection, while stopping

    def serve(self) -> None:
        """Reads the connection once, answers the complete requests, and sends their replies together. Raises Lost if
        the client has closed the connection, or sends bytes that are not frames.
        """
        try:
            data = self.accepted.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise Lost from error
        if not data:
            raise Lost
        if self.ended:
            return  # our side has ended: later requests get no reply
        if self.held:
            data = self.held + data
        replies, taken = cut(data, self.answer)
        self.held = data[taken:]
        if replies:
            self.unsent = replies
            self.flush()

    def flush(self) -> None:
        """Sends as many of the ``unsent`` bytes as the kernel takes. Raises Lost if the connection is closed."""
        try:
            sent = self.accepted.send(self.unsent)
        except BlockingIOError:
            return
        except OSError as error:
            raise Lost from error
        self.unsent = self.unsent[sent:]


class Server:
    """Event loop over the listening socket, the signals and all connections. Not thread-safe."""

    def __init__(self, listener: socket.socket, signals: socket.socket, answer: Answer) -> None:
        self._listener, self._signals, self._answer = listener, signals, answer
        self._connections: dict[int, Connection] = {}
        self._epoll = select.epoll()
        for each in (listener, signals):
            each.setblocking(False)
            self._epoll.register(each, select.EPOLLIN)

    def run(self, grace_s: float) -> bool:
        """Serves until a signal comes, and then until no request is incomplete and all replies are sent.

        Returns True if all replies are sent. Returns False after ``grace_s`` seconds, and at once after a second
        signal.
        """
        while self._turn(-1):
            pass
        self._take()  # accepts clients that connected before the signal
        self._epoll.unregister(self._listener)
        self._listener.close()
        until_s, ended_s = time.monotonic() + grace_s, 0.0
        while True:
            owing, now_s = self._end_those_that_may(), time.monotonic()
            ended_s = ended_s or (0.0 if owing else now_s)
            if not owing and (not self._connections or now_s - ended_s >= LINGER_S):
                return True
            if owing and now_s >= until_s:
                return False
            if not self._turn(0.001):  # a second signal ends the server at once
                return False

    def _turn(self, wait_s: float) -> bool:
        """Waits up to ``wait_s`` seconds for events, and handles the events. Returns True if no signal has come."""
        connections = self._connections
        goes_on = True
        for fd, _ in self._epoll.poll(wait_s, EVENTS_MAX):
            connection = connections.get(fd)
            if connection is not None:
                self._serve(fd, connection)
            elif fd == self._signals.fileno():
                self._signals.recv(READ_BYTES)
                goes_on = False
            else:
                self._take()
        return goes_on

    def _serve(self, fd: int, connection: Connection) -> None:
        """If the connection has unsent bytes, sends these bytes. If not, reads and answers requests. Closes a lost
        connection.
        """
        owed = bool(connection.unsent)
        try:
            if owed:
                connection.flush()
            else:
                connection.serve()
        except Lost:
            del self._connections[fd]
            connection.accepted.close()  # the close also removes the connection from epoll
            return
        if owed != bool(connection.unsent):  # the server reads from or writes to a connection, never both
            self._epoll.modify(fd, select.EPOLLIN if owed else select.EPOLLOUT)

    def _take(self) -> None:
        """Accepts every connection in the listen backlog."""
        while True:
            try:
                accepted, _ = self._listener.accept()
            except BlockingIOError:
                return
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections[accepted.fileno()] = Connection(accepted, self._answer)
            self._epoll.register(accepted, select.EPOLLIN)

    def _end_those_that_may(self) -> int:
        """Ends the server's side (half-close) of every connection that has no incomplete request and no unsent reply.
        Returns the number of all other connections.
        """
        owing = 0
        for fd, connection in list(self._connections.items()):
            if not connection.ended and not connection.unsent:
                self._serve(fd, connection)  # answers requests that have just come
            if connection.ended or fd not in self._connections:
                continue
            if connection.held or connection.unsent:
                owing += 1
            else:
                connection.ended = True
                connection.accepted.shutdown(socket.SHUT_WR)
        return owing


def refuse(said: str) -> int:
    """Prints the reason why the server cannot serve, and gives the exit code 2."""
    print(f"epoll_server: {said}", file=sys.stderr)
    return 2


class Parser(argparse.ArgumentParser):
    """Parser of the command line, which prints an error in one line."""

    def error(self, message: str) -> NoReturn:
        """Prints the message in one line, and exits with 2."""
        sys.exit(refuse(message))


def main() -> int:
    """Serves until a signal ends the server. Returns the exit code."""
    parser = Parser(description="Looks stocks up over the sockets protocol: one thread with epoll.")
    parser.add_argument("--host", default="127.0.0.1", help="an address of this machine (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=50052, help="where to listen; 0: a free port")
    parser.add_argument("--grace-s", type=float, default=5.0, help="how long what has come may take at the end")
    parser.add_argument(
        "--fdatasync", action="store_true", help="instead: any request, answered once two pages are on the disk"
    )
    options = parser.parse_args()
    if not options.host.startswith("127."):
        return refuse(f"--host: got {options.host}, allowed: a loopback address of IPv4, such as 127.0.0.1")
    if not 0 <= options.port <= 65535:
        return refuse(f"--port: got {options.port}, allowed: 0 to 65535")
    if not 0 <= options.grace_s <= GRACE_S_MAX:
        return refuse(f"--grace-s: got {options.grace_s}, allowed: 0 to {GRACE_S_MAX:g}")
    try:
        listener = socket.create_server((options.host, options.port), backlog=BACKLOG)
    except OSError as error:
        return refuse(
            f"--port {options.port}: {error.strerror}; allowed: a port that is not taken, or 0 for a free one"
        )
    woken, signals = socket.socketpair()
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the wake-up descriptor reports the signal
    server = Server(listener, signals, Disk().answer if options.fdatasync else answer)
    print("ready {}:{}".format(*listener.getsockname()), flush=True)
    if server.run(options.grace_s):
        return 0
    said = f"--grace-s {options.grace_s:g} was too short, or a second signal came: the rest was given up"
    print(f"epoll_server: {said}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
