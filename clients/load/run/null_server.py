"""Null server: a server that does nothing. The reply to every request is one constant, valid reply to Lookup. The
server sends this reply with as little work as Python allows.

    python -m clients.load.run.null_server --transport sockets --port 0

A client's times on this server are the floor (``floor.py``), the client's own share of every response time. One thread
waits in epoll. The server does not read the method or message of a request. Replies differ only in the number of the
call or stream. Each transport defines the bytes of the reply (``null_answers``). The server keeps the process contract:
it prints ``ready HOST:PORT``. After SIGTERM or SIGINT the server answers the requests that have arrived, and exits with
0.

The server closes the connection of a client that does not read.
"""

import argparse
import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Sequence

from stock_service.rpc.process.command_line import Parser, integer, refuse
from stock_service.rpc.transports import TRANSPORTS, load
from stock_service.rpc.wire.codec import NullAnswers
from stock_service.trading.model import Status
from stock_service.v1 import stock_pb2

PROGRAM = "python -m clients.load.run.null_server"

REPLY = stock_pb2.LookupResponse(
    status=stock_pb2.Status.ValueType(Status.OK), price_cents=101_20, volume=7, sequence=3
).SerializeToString()
"""Reply to every request."""

READ_BYTES = 65536

BACKLOG = 1024
"""Largest number of connections that wait to be accepted. The loads here open fewer connections at a time."""

Answer = Callable[[], bool]
"""Function that is called when a descriptor can be read. Returns True if the descriptor must stay open. If the function
raises OSError, the descriptor is closed."""


class _Connection:
    """Server's side of one connection: reads requests, gets the replies from the protocol, and sends the replies."""

    __slots__ = ("_descriptor", "_feed")

    def __init__(self, descriptor: int, answers: NullAnswers) -> None:
        self._descriptor = descriptor
        self._feed = answers.feed
        if answers.hello:
            os.write(descriptor, answers.hello)

    def answer(self) -> bool:
        """Reads once, and sends the replies. Returns False to close the connection: the client has closed it, the
        protocol refuses the bytes, or the socket takes only a part of the replies.
        """
        data = os.read(self._descriptor, READ_BYTES)
        if not data:
            return False
        out = self._feed(data)
        if out is None:
            return False
        return not out or os.write(self._descriptor, out) == len(out)


def answers_of(transport: str) -> Callable[[], NullAnswers] | None:
    """Returns a function that makes the server's side of the protocol for a new connection. Returns None for a
    transport that only a library speaks.
    """
    return load(transport).null_answers(REPLY)


class NullServer:
    """A server that gives every request one constant reply. The server listens as soon as the object exists. Not
    thread-safe. ``serve`` may be called once.
    """

    def __init__(self, answers: Callable[[], NullAnswers], port: int) -> None:
        """``answers`` makes the protocol object of each new connection. Raises OSError if the server cannot listen."""
        self._new_answers = answers
        self._listener = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
        self._listener.setblocking(False)
        self._stopping, self._stop = socket.socketpair()
        self._stop.setblocking(False)
        self._epoll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._answers: dict[int, Answer] = {}

    @property
    def port(self) -> int:
        """Port on which the server listens."""
        return int(self._listener.getsockname()[1])

    @property
    def stop_descriptor(self) -> int:
        """Descriptor that ends ``serve`` when one byte is written into the descriptor. Safe from a signal handler and
        from any thread.
        """
        return self._stop.fileno()

    def serve(self) -> None:
        """Answers requests until a byte comes on ``stop_descriptor``. Then answers the requests that have already
        arrived, and closes all connections. Blocks.
        """
        goes_on = True

        def end() -> bool:
            nonlocal goes_on
            goes_on = False
            return True

        self._watch(self._listener, self._accept)
        self._watch(self._stopping, end)
        poll = self._epoll.poll
        while goes_on:
            self._answer_all(poll())
        self._listener.close()
        self._stopping.close()
        self._answer_all(poll(0))
        for connected in self._sockets.values():
            connected.close()
        self._stop.close()
        self._epoll.close()

    def _answer_all(self, events: list[tuple[int, int]]) -> None:
        answers = self._answers
        for descriptor, _ in events:
            try:
                if answers[descriptor]():
                    continue
            except OSError:  # reset by the client, or the client does not read
                pass
            self._sockets.pop(descriptor).close()
            del answers[descriptor]

    def _accept(self) -> bool:
        """Accepts all pending connections. Returns True."""
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:  # no client waits, a client has left, or no descriptor is free
                return True
            try:
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                accepted.setblocking(False)
                answer = _Connection(accepted.fileno(), self._new_answers()).answer  # may send the first bytes
            except OSError:  # reset by the client
                accepted.close()
                continue
            self._watch(accepted, answer)

    def _watch(self, watched: socket.socket, answer: Answer) -> None:
        self._sockets[watched.fileno()] = watched
        self._answers[watched.fileno()] = answer
        self._epoll.register(watched.fileno(), select.EPOLLIN)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until a signal comes. Returns the exit code."""
    options = _parser().parse_args(arguments)
    answers = answers_of(options.transport)
    if answers is None:
        refuse(PROGRAM, f"--transport: got {options.transport!r}, allowed: one that is spoken without a library")
    server = NullServer(answers, options.port)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the interpreter writes a byte, which ends serve
    signal.set_wakeup_fd(server.stop_descriptor)
    gc.disable()  # a collection would lengthen the client's times; nothing here makes cycles
    print(f"ready 127.0.0.1:{server.port}", flush=True)
    server.serve()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(PROGRAM, "Answers every request with the same Lookup reply.")
    parser.add_argument("--transport", choices=sorted(TRANSPORTS), required=True, help="which protocol")
    parser.add_argument("--port", type=integer(0, 65535), default=0, help="port to listen on, 0 for a free one")
    return parser


if __name__ == "__main__":
    sys.exit(main())
