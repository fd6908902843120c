"""Parts for the tests of lanes: lanes, servers with given replies, and a small protocol."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.workload import Workload
from clients.load.record.records import Deadline
from clients.load.send.driver import Surroundings
from clients.load.send.lanes import Lanes
from stock_service.rpc.errors import FaultCode, InternalFault, Unavailable
from stock_service.rpc.transports import Address
from stock_service.rpc.transports.sockets.frame_codec import SocketCodec
from stock_service.rpc.wire.codec import Codec, Prepared, Reply
from stock_service.rpc.wire.framing import RequestFrame, encode_reply, request_decoder
from stock_service.v1 import stock_pb2

PLAN = LoadPlan("sockets", ("127.0.0.1", 1), 1, {"lookup": 1.0}, ("GameStart", "FishCo"), 0.0, 1.0)

REPLY = stock_pb2.LookupResponse(status=stock_pb2.STATUS_OK, price_cents=1599).SerializeToString()

FOREVER_NS = 2**62
HOUR_NS = 3600 * 10**9

Say = Callable[[RequestFrame], bytes | None]
"""Bytes that a server sends for a request; None: it closes the connection."""


def lanes(
    where: Address,
    count: int,
    plan: LoadPlan = PLAN,
    codec: Callable[[], Codec] | None = None,
    records_max: int = 10_000,
    timeout_s: float = 5.0,
    due_ns: Sequence[int] | None = None,
    deadline: Deadline | None = None,
) -> Lanes:
    """This number of connections, with an hour to run; with ``due_ns``, an open loop of these moments after its
    start."""
    workload = Workload(plan)
    around = Surroundings(deadline or Deadline(time.perf_counter_ns() + HOUR_NS), timeout_s, records_max, [0], 0)

    def schedule(start_ns: int) -> Iterator[int]:
        yield from (start_ns + due for due in due_ns or ())
        yield FOREVER_NS

    drawn = [workload.drawn(0, number) for number in range(count)]
    made = codec or partial(SocketCodec, where)
    return Lanes(where, made, workload, drawn, around, None if due_ns is None else schedule)


def drive(some: Lanes, until: Callable[[], bool]) -> None:
    """Runs lanes until the condition holds. Fails after 10 s."""
    give_up_ns = time.perf_counter_ns() + 10 * 10**9
    while not until():
        assert time.perf_counter_ns() < give_up_ns
        some.drive(time.perf_counter_ns() + 2_000_000)


def recorded(some: Lanes) -> int:
    """Number of recorded requests."""
    return sum(len(lane.records.outcomes) for lane in some.lanes)


def assert_all_accounted(some: Lanes) -> None:
    """Every begun request is recorded, in every column."""
    for lane in some.lanes:
        records = lane.records
        assert records.started == len(records.outcomes) == len(records.sent) == len(records.done)
        assert len(records.due) in (0, len(records.outcomes))


@contextmanager
def saying(say: Say) -> Iterator[Address]:
    """A server that sends given bytes for every request, on any number of connections."""
    threads: list[threading.Thread] = []

    def answer(accepted: socket.socket) -> None:
        decoder = request_decoder()
        with accepted, suppress(OSError):  # the client may be gone
            while data := accepted.recv(4096):
                for frame in decoder.feed(data):
                    said = say(frame)
                    if said is None:
                        return
                    accepted.sendall(said)

    def accept() -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:  # closed by the test
                return
            threads.append(threading.Thread(target=answer, args=(accepted,)))
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield listener.getsockname()[:2]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join()


def ok(frame: RequestFrame) -> bytes:
    """A valid reply."""
    return encode_reply(frame.call, 0, REPLY)


def full(frame: RequestFrame) -> bytes:
    """A fault of a server without room for the request."""
    return encode_reply(frame.call, FaultCode.RESOURCE_EXHAUSTED, b"full")


class Peer:
    """The server's side of lanes, driven by the test in its own thread: it reads, and sends given bytes."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)  # or the kernel takes tens of MB
        self._listener.settimeout(10)
        self.address: Address = self._listener.getsockname()[:2]
        self.connections: list[PeerConnection] = []

    def accept(self) -> "PeerConnection":
        """The next connection. Blocks."""
        accepted, _ = self._listener.accept()
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.setblocking(False)
        self.connections.append(PeerConnection(accepted))
        return self.connections[-1]

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.connections:
            connection.socket.close()
        self._listener.close()


class PeerConnection:
    """One connection of a ``Peer``."""

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.got = b""
        self.frames: list[RequestFrame] = []
        self._decoder = request_decoder(1 << 24)

    def read(self) -> bytes:
        """All bytes so far, and their frames."""
        with suppress(BlockingIOError):
            while data := self.socket.recv(1 << 20):
                self.got += data
        return self.got

    def requests(self) -> list[RequestFrame]:
        """All requests that have come so far."""
        before = len(self.got)
        self.read()
        self.frames += self._decoder.feed(self.got[before:])
        return self.frames

    def answer(self, *frames: RequestFrame) -> None:
        """Replies to these, in one send."""
        self.socket.sendall(b"".join(map(ok, frames)))


@contextmanager
def opened(**options: object) -> Iterator[tuple[Lanes, PeerConnection, Peer]]:
    """A single lane, which has connected, with the server's side of its connection."""
    with Peer() as peer, closing(lanes(peer.address, 1, **options)) as some:  # type: ignore[arg-type]
        some.open()
        yield some, peer.accept(), peer


class LineCodec:
    """A protocol of text lines, for features that the sockets transport lacks. The client sends ``hello``, ``call N``
    and ``cancel N``. The server sends ``ok N``, ``bad N``, ``ping`` (the client answers ``pong``) and ``end``."""

    def __init__(self, streams_max: int = 100, calls_max: int = 10**6) -> None:
        self.hello = b"hello\n"
        self.preceded = False
        self._streams_max = streams_max
        self._left = calls_max
        self._call = 0
        self._open: set[int] = set()
        self._pending = b""
        self._outgoing = b""

    def prepare(self, path: str, payload: bytes, timeout_s: float) -> Prepared:
        return (b"call ",)

    def start(self, prepared: Prepared) -> tuple[int, bytes]:
        assert self.room()
        self._call += 1
        self._left -= 1
        self._open.add(self._call)
        return self._call, b"%s%d\n" % (prepared[0], self._call)

    def feed(self, data: bytes) -> list[Reply]:
        self.preceded |= bool(self._pending) or not data.startswith(b"ok ") or data.find(b"\n") + 1 != len(data)
        *lines, self._pending = (self._pending + data).split(b"\n")
        done: list[Reply] = []
        for line in lines:
            word, _, number = line.partition(b" ")
            if word == b"ping":
                self._outgoing += b"pong\n"
            elif word == b"end":
                self._outgoing += b"bye\n"
                raise Unavailable("it said so")
            elif int(number) in self._open:
                self._open.remove(int(number))
                done.append((int(number), REPLY if word == b"ok" else InternalFault("it said so")))
        return done

    def take_outgoing(self) -> bytes:
        taken, self._outgoing = self._outgoing, b""
        return taken

    def room(self) -> bool:
        return self._left > 0 and len(self._open) < self._streams_max

    def abandon(self, call: int) -> bytes:
        self._open.discard(call)
        return b"cancel %d\n" % call
