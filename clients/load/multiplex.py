"""The closed loop on many socket connections in one thread, for a load that a connection per process cannot make.

As lean as Python allows: frames are encoded before the run (a connection has one request under way, so its call number
is always 1), and a whole reply, header and all, is looked up among those known to be valid. A reply's time is when
epoll said that it had come: one look at the clock for all that came together, so that no reply is charged for those
read before it. What comes while others are being read is stamped late, as in any client of one thread: that is why the
client's processor share stands beside its latency.

Each connection is a generator, a *lane*: it sends, yields until bytes have come, checks, records, and sends the next.

Left out: connecting without blocking. While a connection lost to a fault is made anew the others wait, so the latency
of a run with errors is not to be trusted; the summary says that it had errors.
"""

import os
import select
import socket
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import cycle
from typing import NamedTuple

from clients.load.driver import Surroundings
from clients.load.records import Deadline, Records, fault_outcome
from clients.load.workload import Request, Workload, remember
from stock_service.errors import FAULTS, DeadlineExceeded, Fault, InternalFault, Unavailable
from stock_service.transports import Address
from stock_service.wire.framing import (
    FrameDecoder,
    FramingError,
    ReplyFrame,
    encode_reply,
    encode_request,
    reply_decoder,
)

READ_BYTES = 1024
"""Read at a time: a reply has some thirty bytes."""

SWEEP_NS = 50_000_000
"""Between two looks for requests whose time is up and connections to be made anew."""

_CALL = 1
"""Every request's call number: a connection never has two under way, and is given up with the one it has."""

_HEADER_BYTES = len(encode_reply(_CALL, 0, b""))

_FOREVER_NS = 2**62


class Framed(NamedTuple):
    """A request as its frame, and the whole reply frames known to be valid with their outcomes."""

    frame: bytes
    known: dict[bytes, int]
    request: Request


class Lane:
    """One connection and where it stands. ``step`` resumes its loop with the time at which bytes came."""

    __slots__ = ("connecting", "loop", "records", "sent_ns", "socket", "step", "timeout_ns")

    def __init__(self) -> None:
        self.records = Records()
        self.socket: socket.socket | None = None
        self.sent_ns = 0  # of the request under way; 0: none is
        self.timeout_ns = _FOREVER_NS  # a first call may take as long as the run does
        self.connecting = False  # waits for the sweep, to try again
        self.loop: Generator[None, int, None]
        self.step: Callable[[int], None]


class Lanes:
    """Closed loops on many connections. One thread's; whoever made it closes it."""

    def __init__(self, address: Address, workload: Workload, drawn: Iterable[list[int]], around: Surroundings) -> None:
        """One lane for each list of ``drawn``, which is what it repeats of the workload."""
        self._address = address
        self._around = around
        self._timeout_ns = int(around.timeout_s * 1e9)
        self._epoll = select.epoll()
        self._steps: dict[int, Callable[[int], None]] = {}  # by descriptor
        self._gate = Deadline(0)  # lanes send no more from then on
        self._folded = 0
        self.lanes: list[Lane] = []
        framed = self._framed(workload.population)
        for places in drawn:
            lane = Lane()
            lane.loop = self._loop(lane, cycle([framed[place] for place in places]))
            lane.step = lane.loop.send
            self.lanes.append(lane)

    def open(self) -> None:
        """Connects every lane, and sends its first request. Raises the Fault of connecting."""
        self._gate.ns = self._around.deadline.ns
        for lane in self.lanes:
            self._connect(lane)
        for lane in self.lanes:
            next(lane.loop)

    def drive(self, until_ns: int) -> bool:
        """Runs the lanes until then, or until the records must be folded; says whether it stopped for that."""
        poll, clock_ns, steps = self._epoll.poll, self._around.clock_ns, self._steps
        now_ns = sweep_ns = clock_ns()
        while now_ns < until_ns:
            if now_ns >= sweep_ns:
                sweep_ns = now_ns + SWEEP_NS
                if self._sweep(now_ns):
                    return True
            events = poll(min(until_ns, sweep_ns) / 1e9 - now_ns / 1e9)
            now_ns = clock_ns()
            for descriptor, _ in events:
                steps[descriptor](now_ns)
        return False

    def drain(self) -> None:
        """Sends no more, and waits for the replies under way, but for those of starved connections."""
        self._gate.ns = 0
        while any(lane.sent_ns and lane.timeout_ns < _FOREVER_NS for lane in self.lanes):
            now_ns = self._around.clock_ns()
            self._give_up(now_ns)
            for descriptor, _ in self._epoll.poll(SWEEP_NS / 1e9):
                self._steps[descriptor](self._around.clock_ns())

    def resume(self) -> None:
        """Sends again after ``drain``, the records folded."""
        self._gate.ns = self._around.deadline.ns
        now_ns = self._around.clock_ns()
        for lane in self.lanes:
            if not lane.sent_ns and not lane.connecting:
                lane.step(now_ns)

    def close(self) -> None:
        """Closes every connection. May be repeated."""
        for lane in self.lanes:
            lane.loop.close()
            self._disconnect(lane)
        self._epoll.close()

    def _framed(self, population: Iterable[Request]) -> list[Framed]:
        """Requests with their frames, and what is known of each request type's replies."""
        timeout_ms = max(1, round(self._around.timeout_s * 1000))
        known: dict[int, dict[bytes, int]] = {}
        return [
            Framed(
                encode_request(_CALL, timeout_ms, request.path.encode(), request.payload),
                known.setdefault(request.first, {}),
                request,
            )
            for request in population
        ]

    # ---- one lane

    def _loop(self, lane: Lane, requests: Iterator[Framed]) -> Generator[None, int, None]:
        """The closed loop of one lane. The hot loop."""
        clock_ns, gate, records, read, write = self._around.clock_ns, self._gate, lane.records, os.read, os.write
        append_sent, append_done, append_outcome = records.sent.append, records.done.append, records.outcomes.append
        assert lane.socket is not None
        descriptor = lane.socket.fileno()
        for framed in requests:
            frame, known, request = framed
            sent_ns = clock_ns()
            while sent_ns >= gate.ns:
                lane.sent_ns = 0
                yield
                sent_ns = clock_ns()
            lane.sent_ns = sent_ns
            try:
                write(descriptor, frame)
                done_ns = yield
                reply = read(descriptor, READ_BYTES)
                outcome = known.get(reply)
                if outcome is None:
                    payload = reply[_HEADER_BYTES:]
                    if reply == encode_reply(_CALL, 0, payload):
                        outcome = request.check(payload)
                        remember(known, reply, outcome)
                    else:
                        outcome, done_ns = yield from self._checked(descriptor, request, reply, done_ns)
            except (Fault, OSError) as error:
                descriptor = yield from self._recover(lane, request, error)
                continue
            append_sent(sent_ns)
            append_done(done_ns)
            append_outcome(outcome)
            lane.timeout_ns = self._timeout_ns

    def _checked(
        self, descriptor: int, request: Request, data: bytes, done_ns: int
    ) -> Generator[None, int, tuple[int, int]]:
        """The outcome of a reply that came in pieces, and when all of it had come; of any other, a Fault or OSError."""
        decoder = reply_decoder()
        while not (frames := _cut(decoder, data)):
            done_ns = yield
            data = os.read(descriptor, READ_BYTES)
        frame = frames[0]
        if frame.code:
            raise FAULTS.get(frame.code, InternalFault)(frame.payload.decode(errors="replace"))
        if frame.call != _CALL or len(frames) > 1 or decoder.pending_bytes:
            raise InternalFault("the server sent a reply to no request")
        return request.check(frame.payload), done_ns

    def _recover(self, lane: Lane, request: Request, error: Fault | OSError) -> Generator[None, int, int]:
        """Records a fault and connects anew, at the next sweep and every one after until it works; the descriptor."""
        fault = error if isinstance(error, Fault) else Unavailable(error.strerror or str(error))
        clock_ns = self._around.clock_ns
        began_ns = lane.sent_ns
        self._disconnect(lane)
        lane.sent_ns = 0
        lane.connecting = True
        while True:
            lane.records.note(began_ns, clock_ns(), request.first + fault_outcome(fault))
            yield
            began_ns = clock_ns()
            try:
                descriptor = self._connect(lane)
            except Fault as failed:
                fault = failed
            else:
                lane.connecting = False
                return descriptor

    def _connect(self, lane: Lane) -> int:
        """Connects, and steps the lane when bytes come. Blocks; raises a Fault."""
        host, port = self._address
        began_ns = self._around.clock_ns()
        try:
            lane.socket = socket.create_connection(self._address, self._around.timeout_s)
        except OSError as error:
            raise Unavailable(f"no connection to {host}:{port}: {error.strerror or error}") from error
        lane.records.note_connect(began_ns, self._around.clock_ns())
        lane.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lane.socket.setblocking(False)
        descriptor = lane.socket.fileno()
        self._steps[descriptor] = lane.step
        self._epoll.register(descriptor, select.EPOLLIN)
        return descriptor

    def _disconnect(self, lane: Lane) -> None:
        if lane.socket is not None:
            del self._steps[lane.socket.fileno()]
            lane.socket.close()  # which takes it out of the epoll set too
            lane.socket = None

    # ---- now and then

    def _sweep(self, now_ns: int) -> bool:
        """Ends what takes too long, tries to connect again, says how far it is; whether records must be folded."""
        self._give_up(now_ns)
        for lane in self.lanes:
            if lane.connecting:
                lane.step(now_ns)
        held = sum(len(lane.records.outcomes) for lane in self.lanes)
        full = held >= self._around.records_max * len(self.lanes)
        self._around.progress[self._around.place] = self._folded + held
        self._folded += held if full else 0
        return full

    def _give_up(self, now_ns: int) -> None:
        for lane in self.lanes:
            if lane.sent_ns and now_ns - lane.sent_ns > lane.timeout_ns:
                lane.loop.throw(DeadlineExceeded(f"no reply within {self._around.timeout_s:g} s"))


def _cut(decoder: FrameDecoder[ReplyFrame], data: bytes) -> list[ReplyFrame]:
    """The frames that some bytes complete; raises Unavailable for the end of the stream, and for what is no frame."""
    if not data:
        raise Unavailable("the server closed the connection")
    try:
        return decoder.feed(data)
    except FramingError as error:
        raise Unavailable(f"the server sent what is no reply: {error}") from error
