"""Many connections in one thread, in a closed loop: against a real server and servers with given replies."""

import socket
import struct
import time
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest

from clients.load.plan.load_plan import LoadPlan, RequestType
from clients.load.plan.outcomes import FAULT_FIRST, INVALID_REPLY
from clients.load.plan.workload import Workload
from clients.load.send.lanes import SWEEP_NS
from stock_service.rpc.errors import FaultCode
from stock_service.rpc.process.command_line import address
from stock_service.rpc.wire.framing import RequestFrame, encode_reply
from stock_service.trading.model import Status
from tests.unit.clients.load.send.lanes_bench import (
    PLAN,
    REPLY,
    LineCodec,
    Peer,
    Say,
    assert_all_accounted,
    drive,
    full,
    lanes,
    ok,
    opened,
    recorded,
    saying,
)

pytestmark = pytest.mark.usefixtures("no_leaks")

OK = int(Status.OK)
UNAVAILABLE, LATE = FAULT_FIRST + FaultCode.UNAVAILABLE, FAULT_FIRST + FaultCode.DEADLINE_EXCEEDED


def test_records_are_folded_in_between(server: str) -> None:
    """The loop stops at the bound of records. After ``settle`` no request is under way. After ``resume`` the loop goes
    on, and no record is lost."""
    folded = 0
    with closing(lanes(address(server), 3, records_max=30)) as some:
        some.open()
        for _ in range(3):
            while not some.drive(time.perf_counter_ns() + SWEEP_NS):
                pass
            some.settle()
            assert all(not lane.waiting for lane in some.lanes)
            assert recorded(some) >= 90
            folded += recorded(some)
            for lane in some.lanes:
                lane.records.clear()
            some.resume()
            assert all(lane.waiting for lane in some.lanes)
        drive(some, lambda: all(lane.records.outcomes for lane in some.lanes))
        some.finish()
        assert folded + recorded(some) == sum(lane.records.started for lane in some.lanes)


def in_two(frame: RequestFrame) -> bytes:
    """A reply, followed by a second reply to the request: too much."""
    return encode_reply(frame.call, 0, REPLY) * 2


@pytest.mark.parametrize(
    ("say", "outcome"),
    [
        (ok, OK),
        (lambda frame: encode_reply(frame.call, 0, b"\xff\xff"), INVALID_REPLY),
        (lambda frame: encode_reply(frame.call, 0, b""), INVALID_REPLY),
        (full, FAULT_FIRST + 8),
        (lambda _: encode_reply(0, FaultCode.RESOURCE_EXHAUSTED, b"too many connections"), FAULT_FIRST + 8),
        (lambda frame: encode_reply(frame.call + 1, 0, REPLY), FAULT_FIRST + FaultCode.INTERNAL),
        (in_two, FAULT_FIRST + FaultCode.INTERNAL),
        (lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n", UNAVAILABLE),
        (lambda _: None, UNAVAILABLE),
    ],
)
def test_whatever_a_server_says_has_its_outcome(say: Say, outcome: int) -> None:
    """A valid reply, a wrong one, a fault of the request or of the connection, a reply to nothing, and no reply."""
    with saying(say) as where, closing(lanes(where, 1)) as some:
        some.open()
        drive(some, lambda: len(some.lanes[0].records.outcomes) >= 1)
        assert some.lanes[0].records.outcomes[0] == outcome
        some.finish()
        assert_all_accounted(some)


def test_a_connection_is_made_anew_after_a_fault() -> None:
    """After a fault the lane reconnects at the next sweep. The failed request is not sent again, and the first call of
    each connection is marked."""
    requests: list[RequestFrame] = []

    def third_is_cut(frame: RequestFrame) -> bytes | None:
        requests.append(frame)
        return None if len(requests) == 3 else ok(frame)

    with saying(third_is_cut) as where, closing(lanes(where, 1)) as some:
        some.open()
        records = some.lanes[0].records
        drive(some, lambda: len(records.outcomes) >= 6)
        assert list(records.outcomes[:6]) == [OK, OK, UNAVAILABLE, OK, OK, OK]
        assert (len(records.connect_ns), list(records.firsts)) == (2, [0, 3])
    workload = Workload(PLAN)
    drawn = [workload.population[place].payload for place in workload.drawn(0, 0)[:6]]
    assert [frame.payload for frame in requests[:6]] == drawn


def test_a_server_that_refuses_is_left_alone_for_a_while() -> None:
    """A lane that got a fault rests until the next sweep, and the connection is kept."""
    with saying(full) as where, closing(lanes(where, 1)) as some:
        some.open()
        records = some.lanes[0].records
        drive(some, lambda: len(records.outcomes) == 3)
        assert all(sent - done > 0 for done, sent in zip(records.done, records.sent[1:], strict=False))
        assert records.sent[2] - records.sent[1] >= SWEEP_NS * 0.9
        assert len(records.connect_ns) == 1


def test_a_lane_goes_on_at_once_after_it_was_connected_again() -> None:
    """A fault makes a lane rest until the sweep. A reconnect ends the rest."""
    said: list[int] = []

    def fault_and_cut(frame: RequestFrame) -> bytes | None:
        said.append(frame.call)
        match len(said):
            case 2:
                return full(frame)
            case 3:
                return None
        return ok(frame)

    with saying(fault_and_cut) as where, closing(lanes(where, 1)) as some:
        some.open()
        records = some.lanes[0].records
        drive(some, lambda: len(records.outcomes) >= 20)
        assert max(records.sent[place + 1] - records.done[place] for place in range(3, 19)) < SWEEP_NS / 2


def test_a_reply_behind_something_else_is_done_when_it_is_read() -> None:
    """Epoll reported a ping. A reply that came later does not get the time of that report."""
    with Peer() as peer, closing(lanes(peer.address, 1, codec=LineCodec)) as some:
        some.open()
        lane, accepted = some.lanes[0], peer.accept()
        accepted.socket.sendall(b"ping\n")
        assert some._epoll.poll(10)
        pinged_ns = time.perf_counter_ns()
        accepted.socket.sendall(b"ok 1\n")
        answered_ns = time.perf_counter_ns()
        assert isinstance(lane._socket, socket.socket)
        while not lane._socket.recv(100, socket.MSG_PEEK).endswith(b"ok 1\n"):
            assert time.perf_counter_ns() < answered_ns + 10 * 10**9
        assert lane.receive(pinged_ns)
        assert lane.records.done[0] > answered_ns


def test_a_reply_alone_is_done_when_epoll_said_so() -> None:
    """A single reply has the time of epoll's report, and is not charged for replies read before it."""
    with opened(codec=LineCodec) as (some, accepted, _):
        accepted.socket.sendall(b"ok 1\n")
        ((descriptor, _),) = some._epoll.poll(10)
        assert some._watched[descriptor].receive(12345)
        assert list(some.lanes[0].records.done) == [12345]


def test_a_starved_connection_has_no_records_and_holds_nothing_up() -> None:
    """A server that never replies starves the connection: there is no record, and the end does not wait for it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with closing(lanes(listener.getsockname()[:2], 4, timeout_s=0.001)) as some:
            some.open()
            some.drive(time.perf_counter_ns() + 2 * SWEEP_NS)
            some.settle()
            some.resume()
            some.finish()
            assert [len(lane.records.outcomes) for lane in some.lanes] == [0] * 4
            assert_all_accounted(some)


LARGE = RequestType("large", "/a.B/Large", (b"x" * 12_000_000,), lambda _: OK)
"""A request that is larger than the kernel's buffers: some 4 MB for sends, and little at the peer."""


def large() -> LoadPlan:
    """A plan of large requests alone."""
    return replace(PLAN, mix={"large": 1.0}, request_types=(LARGE,))


def test_what_the_kernel_has_no_room_for_is_sent_when_it_has() -> None:
    """A server that reads late gets every byte, in order."""
    with opened(plan=large()) as (some, accepted, _):
        assert not some.lanes[0].room
        drive(some, lambda: bool(accepted.requests()))
        assert accepted.frames[0].payload == LARGE.payloads[0]
        accepted.answer(accepted.frames[0])
        drive(some, lambda: recorded(some) == 1)
        assert some.lanes[0].records.outcomes[0] == OK


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_a_connection_lost_with_bytes_unsent_is_a_fault(how: str) -> None:
    """A connection lost with unsent bytes is one fault, and the lane goes on with a new connection."""
    with opened(plan=large()) as (some, accepted, peer):
        if how == "reset":
            accepted.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.socket.close()
        drive(some, lambda: len(some.lanes[0].records.connect_ns) == 2)
        assert list(some.lanes[0].records.outcomes) == [UNAVAILABLE]
        again = peer.accept()
        drive(some, lambda: bool(again.requests()))


def test_a_server_that_goes_away_leaves_one_error_an_attempt() -> None:
    """After the server has gone, attempts to connect fail, a sweep apart. They are counted, and are not requests."""
    with Peer() as peer, closing(lanes(peer.address, 3)) as some:
        some.open()
        for _ in range(3):
            peer.accept()
        peer.__exit__()
        began_ns = time.perf_counter_ns()
        drive(some, lambda: all(lane.records.unconnected.total() >= 3 for lane in some.lanes))
        assert time.perf_counter_ns() - began_ns >= 2 * SWEEP_NS
        some.finish()
        for lane in some.lanes:
            assert list(lane.records.outcomes) == [UNAVAILABLE]
            assert set(lane.records.unconnected) == {UNAVAILABLE}
        assert_all_accounted(some)


# ---- what the sockets' protocol has not


def test_the_hello_goes_first_and_control_bytes_are_sent() -> None:
    """The protocol's hello goes out before any call, and its control bytes between calls."""
    with opened(codec=LineCodec) as (some, accepted, _):
        drive(some, lambda: accepted.read() == b"hello\ncall 1\n")
        accepted.socket.sendall(b"pi")
        accepted.socket.sendall(b"ng\n")
        drive(some, lambda: accepted.read().endswith(b"pong\n"))
        accepted.socket.sendall(b"ok 1\nping\n")
        drive(some, lambda: accepted.read().endswith((b"call 2\npong\n", b"pong\ncall 2\n")))
        assert list(some.lanes[0].records.outcomes) == [OK]


def test_a_connection_that_is_used_up_is_made_anew() -> None:
    """A lane reconnects when a connection has carried its two calls. No call fails, and the first call of each
    connection is marked."""
    with Peer() as peer, closing(lanes(peer.address, 1, codec=partial(LineCodec, calls_max=2))) as some:
        some.open()
        for number in range(3):
            accepted = peer.accept()
            for call in (b"call 1\n", b"call 2\n"):
                drive(some, lambda: accepted.read().endswith(call))  # noqa: B023  # called at once
                accepted.socket.sendall(call.replace(b"call", b"ok"))
            drive(some, lambda: len(some.lanes[0].records.connect_ns) == number + 2)  # noqa: B023
        records = some.lanes[0].records
        assert list(records.outcomes) == [OK] * 6
        assert list(records.firsts) == [0, 2, 4]


def test_a_call_that_is_given_up_is_cancelled() -> None:
    """A call that is given up is cancelled at the server, and the lane sends its next. The late reply is dropped."""
    with opened(codec=LineCodec, timeout_s=0.001) as (some, accepted, _):
        accepted.socket.sendall(b"ok 1\n")
        drive(some, lambda: b"cancel 2\n" in accepted.read())
        accepted.socket.sendall(b"ok 2\n")
        drive(some, lambda: b"call 3\n" in accepted.read())
        assert list(some.lanes[0].records.outcomes[:2]) == [OK, LATE]


def test_a_connection_that_the_protocol_gives_up_says_why() -> None:
    """The last bytes of the codec are sent before the connection is closed. All calls under way end with the fault."""
    with opened(codec=LineCodec) as (some, accepted, _):
        accepted.socket.sendall(b"end\n")
        drive(some, lambda: len(some.lanes[0].records.connect_ns) == 2)
        assert accepted.read() == b"hello\ncall 1\nbye\n"
        assert list(some.lanes[0].records.outcomes) == [UNAVAILABLE]
        assert list(some.lanes[0].records.firsts) == [0]
