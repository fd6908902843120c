"""A server that does nothing: every request gets the same valid reply to Lookup, as cheaply as Python can send it.

    python -m clients.load.run.null_server --transport sockets --port 0

What a client reads of it is the client's own share of every time it reads: the floor (``floor.py``). One thread sleeps
in epoll; a request's method and message are not looked at, and a reply is a constant but for its call or stream number.
gRPC is spoken over bare HTTP/2 without TLS: headers are skipped unread, which is allowed as no state of theirs is ever
needed, and the reply's are literals that enter no table. It keeps the process contract: ``ready HOST:PORT``, and at
SIGTERM or SIGINT what has arrived is answered before exit 0.

Left out: every check of what a client sends; flow control of one stream (a reply has 20 bytes, the least window 65,535;
the connection's is kept); patience with a client that does not read, which is cut off.

Source: RFC 9113 (frames, settings, windows), RFC 7541 appendix A (0x88 is ``:status 200``, name 31 ``content-type``).
"""

import argparse
import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from struct import Struct

from stock_service.rpc.process.command_line import Parser, integer
from stock_service.rpc.wire.framing import encode_reply
from stock_service.trading.model import Status
from stock_service.v1 import stock_pb2

PROGRAM = "python -m clients.load.run.null_server"

REPLY = stock_pb2.LookupResponse(
    status=stock_pb2.Status.ValueType(Status.OK), price_cents=101_20, volume=7, sequence=3
).SerializeToString()
"""What every request gets."""

READ_BYTES = 65536

BACKLOG = 1024
"""Connections that may wait to be accepted: more than a load here opens at a time."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

_FRAME = Struct("!HBBB4s")  # length (16 and 8 bits), type, flags, stream
_DATA, _HEADERS, _SETTINGS, _PING, _WINDOW_UPDATE = 0, 1, 4, 6, 8
_END_STREAM, _ACK, _END_HEADERS = 0x1, 0x1, 0x4
_WINDOW_MAX = 2**31 - 1
_WINDOW_FIRST = 65_535
_WINDOW_STEP = 1 << 20  # received before the client is given as much window again

Answer = Callable[[], bool]
"""Called when a descriptor can be read; says whether it stays open. May raise OSError, which closes it."""


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """An HTTP/2 frame."""
    length = len(payload)
    return _FRAME.pack(length >> 8, length & 0xFF, kind, flags, stream.to_bytes(4, "big")) + payload


HELLO = frame(
    _SETTINGS,
    0,
    0,
    # No header table (stateless blocks), streams without limit but the protocol's, and windows as wide as they go.
    b"".join(name.to_bytes(2, "big") + value.to_bytes(4, "big") for name, value in ((1, 0), (4, _WINDOW_MAX))),
) + frame(_WINDOW_UPDATE, 0, 0, (_WINDOW_MAX - _WINDOW_FIRST).to_bytes(4, "big"))
"""What a gRPC connection is sent first."""

_MESSAGE = b"\0" + len(REPLY).to_bytes(4, "big") + REPLY
_CONTENT_TYPE = b"application/grpc"
_STATUS_NAME = b"grpc-status"
_ANSWER = (
    frame(_HEADERS, _END_HEADERS, 0, b"\x88\x0f\x10" + bytes([len(_CONTENT_TYPE)]) + _CONTENT_TYPE)
    + frame(_DATA, 0, 0, _MESSAGE)
    + frame(_HEADERS, _END_HEADERS | _END_STREAM, 0, b"\0" + bytes([len(_STATUS_NAME)]) + _STATUS_NAME + b"\x010")
)


def _cut_at_streams(frames: bytes) -> tuple[bytes, ...]:
    """The pieces of some frames between which their stream's number goes."""
    pieces, begun, at = [], 0, 0
    while at < len(frames):
        high, low, *_ = _FRAME.unpack_from(frames, at)
        pieces.append(frames[begun : at + 5])
        begun = at + 9
        at = begun + (high << 8 | low)
    return (*pieces, frames[begun:])


class SocketsConnection:
    """One connection of the sockets protocol."""

    __slots__ = ("_descriptor", "_rest")

    _HEAD = encode_reply(0, 0, REPLY)[:4]
    _TAIL = encode_reply(0, 0, REPLY)[8:]

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def answer(self) -> bool:
        """Reads once and answers every request that is whole."""
        data = os.read(self._descriptor, READ_BYTES)
        if not data:
            return False
        if self._rest:
            data = self._rest + data
        end = len(data)
        if end == int.from_bytes(data[:4], "big") + 4:  # one request: nearly always
            self._rest = b""
            reply = self._HEAD + data[4:8] + self._TAIL
            return os.write(self._descriptor, reply) == len(reply)
        replies = []
        at = 0
        while end - at >= 4 and (after := at + 4 + int.from_bytes(data[at : at + 4], "big")) <= end:
            replies.append(self._HEAD + data[at + 4 : at + 8] + self._TAIL)
            at = after
        self._rest = data[at:]
        out = b"".join(replies)
        return not out or os.write(self._descriptor, out) == len(out)


class GrpcConnection:
    """One connection of gRPC."""

    __slots__ = ("_descriptor", "_greeted", "_held", "_received_bytes", "_rest", "_window_bytes")

    _PIECES = _cut_at_streams(_ANSWER)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self._greeted = False
        self._window_bytes = _WINDOW_FIRST  # what the client will still take
        self._held: list[bytes] = []  # streams whose answer waits for that
        self._received_bytes = 0  # since the client was last given window
        os.write(descriptor, HELLO)

    def answer(self) -> bool:
        """Reads once and answers every frame that is whole."""
        data = os.read(self._descriptor, READ_BYTES)
        if not data:
            return False
        data = self._rest + data
        at = 0
        if not self._greeted:
            if not PREFACE.startswith(data[: len(PREFACE)]):
                return False
            if len(data) < len(PREFACE):
                self._rest = data
                return True
            self._greeted = True
            at = len(PREFACE)
        out: list[bytes] = []
        end = len(data)
        while end - at >= 9:
            high, low, kind, flags, stream = _FRAME.unpack_from(data, at)
            begin = at + 9
            after = begin + (high << 8 | low)
            if after > end:
                break
            if kind == _DATA:
                self._received_bytes += after - begin
            if kind <= _HEADERS:
                if flags & _END_STREAM:
                    self._reply(stream, out)
            elif kind >= _SETTINGS:
                self._control(kind, flags, stream, data[begin:after], out)
            at = after
        self._rest = data[at:]
        if self._received_bytes >= _WINDOW_STEP:
            out.append(frame(_WINDOW_UPDATE, 0, 0, self._received_bytes.to_bytes(4, "big")))
            self._received_bytes = 0
        sending = b"".join(out)
        return not sending or os.write(self._descriptor, sending) == len(sending)

    def _reply(self, stream: bytes, out: list[bytes]) -> None:
        if self._window_bytes < len(_MESSAGE):
            self._held.append(stream)
            return
        self._window_bytes -= len(_MESSAGE)
        out.append(stream.join(self._PIECES))

    def _control(self, kind: int, flags: int, stream: bytes, payload: bytes, out: list[bytes]) -> None:
        """What keeps a connection going: SETTINGS, PING and WINDOW_UPDATE."""
        if kind == _SETTINGS and not flags & _ACK:
            out.append(frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            out.append(frame(_PING, _ACK, 0, payload))
        elif kind == _WINDOW_UPDATE and not any(stream):
            self._window_bytes += int.from_bytes(payload, "big")
            held, self._held = self._held, []
            for waiting in held:
                self._reply(waiting, out)


CONNECTIONS: dict[str, Callable[[int], SocketsConnection | GrpcConnection]] = {
    "grpc": GrpcConnection,
    "sockets": SocketsConnection,
}
"""What speaks each protocol on a connection's descriptor."""


class NullServer:
    """Listens from when it is made. One thread's; to be served once."""

    def __init__(self, transport: str, port: int) -> None:
        """Raises OSError where it cannot listen."""
        self._connection = CONNECTIONS[transport]
        self._listener = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
        self._listener.setblocking(False)
        self._stopping, self._stop = socket.socketpair()
        self._stop.setblocking(False)
        self._epoll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._answers: dict[int, Answer] = {}

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    @property
    def stop_descriptor(self) -> int:
        """Writing a byte here ends ``serve``; safe from a signal handler and from any thread."""
        return self._stop.fileno()

    def serve(self) -> None:
        """Answers until it is stopped, and then what has arrived; closes everything. Blocks."""
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
            except OSError:  # reset by the client, or it does not read
                pass
            self._sockets.pop(descriptor).close()
            del answers[descriptor]

    def _accept(self) -> bool:
        """Takes every connection that waits."""
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:  # none waits, one has gone again, or no descriptor is left: the listener stays
                return True
            try:
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                accepted.setblocking(False)
                answer = self._connection(accepted.fileno()).answer  # which may say something first
            except OSError:  # reset by the client
                accepted.close()
                continue
            self._watch(accepted, answer)

    def _watch(self, watched: socket.socket, answer: Answer) -> None:
        self._sockets[watched.fileno()] = watched
        self._answers[watched.fileno()] = answer
        self._epoll.register(watched.fileno(), select.EPOLLIN)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until a signal comes; gives the exit code."""
    options = _parser().parse_args(arguments)
    server = NullServer(options.transport, options.port)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # what ends it is the byte that the interpreter writes
    signal.set_wakeup_fd(server.stop_descriptor)
    gc.disable()  # a collection would be taken for the client's time; nothing here makes cycles
    print(f"ready 127.0.0.1:{server.port}", flush=True)
    server.serve()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(PROGRAM, "Answers every request with the same Lookup reply.")
    parser.add_argument("--transport", choices=sorted(CONNECTIONS), required=True, help="which protocol")
    parser.add_argument("--port", type=integer(0, 65535), default=0, help="port to listen on, 0 for a free one")
    return parser


if __name__ == "__main__":
    sys.exit(main())
