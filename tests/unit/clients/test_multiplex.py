"""Many socket connections in one thread, against real servers and one that says what a test tells it to."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

import pytest

from clients.load.driver import Surroundings
from clients.load.multiplex import SWEEP_NS, Lanes
from clients.load.plan import LoadPlan
from clients.load.records import FAULT_FIRST, INVALID_REPLY, TYPE_STEP, Deadline
from clients.load.workload import Workload
from stock_service.command_line import address
from stock_service.errors import FaultCode, Unavailable
from stock_service.model import Status
from stock_service.transports import Address
from stock_service.v1 import stock_pb2
from stock_service.wire.framing import RequestFrame, encode_reply, request_decoder

pytestmark = pytest.mark.usefixtures("no_leaks")

PLAN = LoadPlan("sockets", ("127.0.0.1", 1), 1, {"lookup": 1.0, "trade": 1.0}, ("GameStart", "FishCo"), 0.0, 1.0)

OK = int(Status.OK)

REPLY = stock_pb2.LookupResponse(status=stock_pb2.STATUS_OK, price_cents=1599).SerializeToString()

Say = Callable[[RequestFrame], bytes | None]
"""What a server sends for a request; None: it closes the connection instead."""


def lanes(
    where: Address, count: int, plan: LoadPlan = PLAN, records_max: int = 10_000, timeout_s: float = 5.0
) -> Lanes:
    """So many connections, with an hour to run."""
    workload = Workload(plan)
    around = Surroundings(
        lambda _: pytest.fail("lanes connect by themselves"),
        Deadline(time.perf_counter_ns() + 3600 * 10**9),
        timeout_s,
        records_max,
        [0],
        0,
    )
    return Lanes(where, workload, [workload.drawn(0, number) for number in range(count)], around)


def drive(some: Lanes, until: Callable[[], bool]) -> None:
    """Runs lanes until something is so; fails if it takes 10 s."""
    give_up_ns = time.perf_counter_ns() + 10 * 10**9
    while not until():
        assert time.perf_counter_ns() < give_up_ns
        some.drive(time.perf_counter_ns() + 2_000_000)


@contextmanager
def saying(say: Say) -> Iterator[Address]:
    """A server that says to every request what it is told to, on any number of connections."""
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


def test_every_connection_has_its_closed_loop(server: str) -> None:
    """All of them send and are answered; what each recorded is in order, its next request sent after its last reply."""
    with closing(lanes(address(server), 8)) as some:
        some.open()
        drive(some, lambda: all(len(lane.records.outcomes) >= 20 for lane in some.lanes))
        some.drain()
        for lane in some.lanes:
            records = lane.records
            assert set(records.outcomes) == {OK, TYPE_STEP + OK}
            assert len(records.connect_ns) == 1
            assert all(sent < done for sent, done in zip(records.sent, records.done, strict=True))
            assert all(done < sent for done, sent in zip(records.done, records.sent[1:], strict=False))


def test_records_are_folded_in_between(server: str) -> None:
    """It stops at the bound; drained, no request is under way; and resumed, it goes on."""
    with closing(lanes(address(server), 3, records_max=30)) as some:
        some.open()
        while not some.drive(time.perf_counter_ns() + SWEEP_NS):
            pass
        some.drain()
        assert all(lane.sent_ns == 0 for lane in some.lanes)
        assert sum(len(lane.records.outcomes) for lane in some.lanes) >= 90
        for lane in some.lanes:
            lane.records.clear()
        some.resume()
        drive(some, lambda: all(lane.records.outcomes for lane in some.lanes))


def in_two(frame: RequestFrame) -> bytes:
    """A reply in which another one is hidden: too much."""
    return encode_reply(frame.call, 0, REPLY) * 2


@pytest.mark.parametrize(
    ("say", "outcome"),
    [
        (lambda frame: encode_reply(frame.call, 0, REPLY), OK),
        (lambda frame: encode_reply(frame.call, 0, b"\xff\xff"), INVALID_REPLY),
        (lambda frame: encode_reply(frame.call, 0, b""), INVALID_REPLY),
        (lambda frame: encode_reply(frame.call, FaultCode.RESOURCE_EXHAUSTED, b"full"), FAULT_FIRST + 8),
        (lambda _: encode_reply(0, FaultCode.RESOURCE_EXHAUSTED, b"too many connections"), FAULT_FIRST + 8),
        (lambda frame: encode_reply(frame.call + 1, 0, REPLY), FAULT_FIRST + FaultCode.INTERNAL),
        (in_two, FAULT_FIRST + FaultCode.INTERNAL),
        (lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n", FAULT_FIRST + FaultCode.UNAVAILABLE),
        (lambda _: None, FAULT_FIRST + FaultCode.UNAVAILABLE),
    ],
)
def test_whatever_a_server_says_has_its_outcome(say: Say, outcome: int) -> None:
    """A valid reply, a wrong one, a fault of the request or of the connection, a reply to nothing, and no reply."""
    with saying(say) as where, closing(lanes(where, 1, replace(PLAN, mix={"lookup": 1.0}))) as some:
        some.open()
        drive(some, lambda: len(some.lanes[0].records.outcomes) >= 1)
        assert some.lanes[0].records.outcomes[0] == outcome


def test_a_connection_is_made_anew_after_a_fault() -> None:
    """At the next sweep; the request that failed is not sent again."""
    requests: list[RequestFrame] = []

    def third_is_cut(frame: RequestFrame) -> bytes | None:
        requests.append(frame)
        return None if len(requests) == 3 else encode_reply(frame.call, 0, REPLY)

    plan = replace(PLAN, mix={"lookup": 1.0})
    with saying(third_is_cut) as where, closing(lanes(where, 1, plan)) as some:
        some.open()
        records = some.lanes[0].records
        drive(some, lambda: len(records.outcomes) >= 6)
        assert list(records.outcomes[:6]) == [OK, OK, FAULT_FIRST + FaultCode.UNAVAILABLE, OK, OK, OK]
        assert len(records.connect_ns) == 2
    workload = Workload(plan)
    drawn = [workload.population[place].payload for place in workload.drawn(0, 0)[:6]]
    assert [frame.payload for frame in requests[:6]] == drawn


def test_a_reply_in_pieces_is_done_when_it_is_whole() -> None:
    """However it was cut: its time is that of the last piece."""
    pieces = [bytes([byte]) for byte in encode_reply(1, 0, REPLY)]
    plan = replace(PLAN, mix={"lookup": 1.0})
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        closing(lanes(listener.getsockname()[:2], 1, plan)) as some,
    ):
        some.open()
        accepted, _ = listener.accept()
        with accepted:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in pieces:
                assert len(some.lanes[0].records.outcomes) == 0
                last_piece_ns = time.perf_counter_ns()
                accepted.sendall(piece)
                some.drive(time.perf_counter_ns() + 1_000_000)
            drive(some, lambda: len(some.lanes[0].records.outcomes) > 0)
        records = some.lanes[0].records
        assert records.outcomes[0] == OK
        assert records.done[0] > last_piece_ns


@pytest.mark.slow
def test_a_late_reply_is_a_fault_and_a_first_call_is_not() -> None:
    """The first may take as long as the run; after it each has its time, and a connection that was too late is left."""
    seen: list[int] = []
    gate = threading.Event()

    def fourth_is_late(frame: RequestFrame) -> bytes | None:
        seen.append(frame.call)
        if len(seen) == 4:
            gate.wait(10)
            return None
        return encode_reply(frame.call, 0, REPLY)

    plan = replace(PLAN, mix={"lookup": 1.0})
    with saying(fourth_is_late) as where, closing(lanes(where, 1, plan, timeout_s=0.05)) as some:
        some.open()
        records = some.lanes[0].records
        drive(some, lambda: len(records.outcomes) >= 5)
        gate.set()
        assert list(records.outcomes[:5]) == [OK, OK, OK, FAULT_FIRST + FaultCode.DEADLINE_EXCEEDED, OK]
        assert records.done[3] - records.sent[3] >= 0.05 * 1e9


def test_a_starved_connection_has_no_records_and_holds_nothing_up() -> None:
    """A server that never replies: nothing is recorded, and draining does not wait for it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with closing(lanes(listener.getsockname()[:2], 4, timeout_s=0.001)) as some:
            some.open()
            some.drive(time.perf_counter_ns() + 2 * SWEEP_NS)
            some.drain()
            assert [len(lane.records.outcomes) for lane in some.lanes] == [0] * 4


def test_nobody_there_is_the_callers_to_know() -> None:
    """Unavailable, from ``open``."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = listener.getsockname()[:2]
    with closing(lanes(where, 2)) as some, pytest.raises(Unavailable):
        some.open()


def test_the_frames_are_the_wires() -> None:
    """Call 1, the plan's timeout and the method's full name: what any server takes."""
    got: list[RequestFrame] = []

    def keep(frame: RequestFrame) -> bytes:
        got.append(frame)
        return encode_reply(frame.call, 0, REPLY)

    with saying(keep) as where, closing(lanes(where, 1, replace(PLAN, mix={"lookup": 1.0}), timeout_s=2.5)) as some:
        some.open()
        drive(some, lambda: bool(got))
    assert (got[0].call, got[0].timeout_ms, got[0].method) == (1, 2500, b"/stock_service.v1.StockService/Lookup")
