"""Many connections in one thread, in an open loop: due requests are sent, for any behaviour of the server."""

import time
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest

from clients.load.plan.outcomes import FAULT_FIRST, NEVER_SENT, TYPE_STEP
from clients.load.record.records import Deadline
from clients.load.send.lanes import SWEEP_NS, Lanes
from stock_service.rpc.errors import FaultCode
from stock_service.rpc.process.command_line import address
from stock_service.rpc.wire.framing import encode_reply
from stock_service.trading.model import Status
from tests.unit.clients.load.send.lanes_bench import (
    HOUR_NS,
    PLAN,
    LineCodec,
    Peer,
    PeerConnection,
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

MS = 1_000_000


def dues(some: Lanes) -> list[int]:
    """Due times in the records of all lanes, without first calls, in order."""
    return sorted(
        due
        for lane in some.lanes
        for place, due in enumerate(lane.records.due)
        if place not in set(lane.records.firsts)
    )


def answered_first(peer: Peer, some: Lanes) -> list[PeerConnection]:
    """Opens the lanes, and answers the first call of every lane. First calls are not part of the schedule."""
    some.open()
    accepted = [peer.accept() for _ in some.lanes]
    for lane, connection in zip(some.lanes, accepted, strict=True):
        drive(some, lambda: bool(connection.requests()))  # noqa: B023  # called at once
        connection.answer(connection.frames[0])
        drive(some, lambda: len(lane.records.firsts) == 1)  # noqa: B023
    return accepted


def test_every_request_is_sent_once_and_answered() -> None:
    """Each request of the schedule is sent once, with its due moment, and no request is sent a nanosecond before. The
    lanes are used in rotation."""
    due_ns = [number * MS // 10 for number in range(200)]
    with saying(ok) as where, closing(lanes(where, 4, due_ns=due_ns)) as some:
        some.open()
        drive(some, lambda: recorded(some) == 204)
        some.finish()
        assert_all_accounted(some)
        seen = dues(some)
        assert [due - seen[0] for due in seen] == due_ns
        for lane in some.lanes:
            assert set(lane.records.outcomes) == {OK}
            assert len(lane.records.outcomes) == 51
            assert all(sent >= due for sent, due in zip(lane.records.sent, lane.records.due, strict=True))
            assert len(lane.records.firsts) == 1


def test_a_server_that_stalls_delays_nothing_that_is_due() -> None:
    """A server that answers nothing delays no request: due requests are sent on connections with unanswered
    requests."""
    with Peer() as peer, closing(lanes(peer.address, 2, due_ns=[n * MS // 5 for n in range(20)])) as some:
        accepted = answered_first(peer, some)
        drive(some, lambda: sum(len(connection.requests()) for connection in accepted) == 22)
        assert recorded(some) == 2
        for connection in accepted:
            assert len(connection.frames) == 11
            connection.answer(*reversed(connection.frames[1:]))
        drive(some, lambda: recorded(some) == 22)
        some.finish()
        assert_all_accounted(some)
        assert {outcome for lane in some.lanes for outcome in lane.records.outcomes} == {OK}


def test_where_there_is_no_room_requests_are_sent_late_and_in_order() -> None:
    """If a connection takes one request at a time, the second request waits for the first reply. It keeps its due
    moment."""
    codec = partial(LineCodec, streams_max=1)
    with opened(codec=codec, due_ns=[0, 0, MS]) as (some, accepted, _):
        for call in range(1, 5):
            some.drive(time.perf_counter_ns() + 2 * MS)
            assert accepted.read().endswith(b"call %d\n" % call)
            accepted.socket.sendall(b"ok %d\n" % call)
        drive(some, lambda: recorded(some) == 4)
        records = some.lanes[0].records
        assert [due - records.due[1] for due in records.due[1:]] == [0, 0, MS]
        assert all(sent - done >= 0 for done, sent in zip(records.done, records.sent[1:], strict=False))
        assert records.sent[3] - records.due[3] >= 2 * MS
        some.finish()
        assert_all_accounted(some)


def test_a_lane_without_room_is_passed_over() -> None:
    """A lane without room is passed over, and the next lane has its turn."""
    codec = partial(LineCodec, streams_max=2)
    with Peer() as peer, closing(lanes(peer.address, 2, codec=codec, due_ns=[0, 0])) as some:
        some.open()
        accepted = [peer.accept(), peer.accept()]
        accepted[1].socket.sendall(b"ok 1\n")
        drive(some, lambda: all(connection.read().count(b"call") == 2 for connection in accepted))


def test_what_could_not_be_sent_is_recorded_at_the_end() -> None:
    """Requests that could not be sent are recorded at the end as never sent, with their due moments. Requests that wait
    for a reply then are given up."""
    deadline = Deadline(2**62)
    codec = partial(LineCodec, streams_max=2)
    due_ns = [0, MS, 2 * MS, 3 * MS, 3600 * 10**9]
    with opened(codec=codec, due_ns=due_ns, deadline=deadline, timeout_s=0.1) as (some, accepted, _):
        accepted.socket.sendall(b"ok 1\n")
        drive(some, lambda: some.lanes[0].records.started - 1 + some.unsent == 4)  # all that is due has been seen
        assert some.unsent in (2, 3)  # the first reply may have made room, or not yet
        deadline.ns = time.perf_counter_ns()
        some.finish()
        assert some.unsent == 0
        outcomes = list(some.lanes[0].records.outcomes)
        assert outcomes[0] == OK
        assert outcomes.count(LATE) + outcomes.count(NEVER_SENT) == 4
        assert outcomes.count(NEVER_SENT) >= 1
        assert [due - dues(some)[0] for due in dues(some)] == due_ns[:-1]
        assert_all_accounted(some)


def test_what_was_due_before_the_deadline_is_still_sent_after_it() -> None:
    """Requests that were due before the deadline are still sent and answered after the deadline. Later requests are not
    sent."""
    deadline = Deadline(2**62)
    began_ns = time.perf_counter_ns()
    with saying(ok) as where, closing(lanes(where, 1, due_ns=[-HOUR_NS, -HOUR_NS, 0], deadline=deadline)) as some:
        some.open()
        deadline.ns = began_ns
        some.finish()
        assert list(some.lanes[0].records.outcomes) == [OK] * 3
        assert_all_accounted(some)


def test_what_the_server_said_before_it_closed_is_heard() -> None:
    """The last bytes of a server that closed are read, even if a send fails first. The calls end with the server's
    fault."""
    with opened(due_ns=[0] * 5) as (some, accepted, _):
        accepted.socket.sendall(encode_reply(0, FaultCode.RESOURCE_EXHAUSTED, b"too many connections"))
        accepted.socket.close()  # with a request unread: what is sent now is refused
        drive(some, lambda: recorded(some) >= 2)
        assert set(some.lanes[0].records.outcomes[:2]) == {FAULT_FIRST + FaultCode.RESOURCE_EXHAUSTED}


def test_nothing_is_waited_for_where_no_connection_is_left() -> None:
    """Without a connection due requests are recorded at once as never sent, without a wait for the timeout."""
    deadline = Deadline(2**62)
    due_ns = [3 * SWEEP_NS] * 5
    with Peer() as peer, closing(lanes(peer.address, 1, due_ns=due_ns, deadline=deadline, timeout_s=60.0)) as some:
        some.open()
        opened_ns = time.perf_counter_ns()
        peer.accept()
        peer.__exit__()
        drive(some, lambda: time.perf_counter_ns() > opened_ns + due_ns[0])
        deadline.ns = time.perf_counter_ns()
        some.finish()
        outcomes = list(some.lanes[0].records.outcomes)
        assert outcomes[-5:] == [NEVER_SENT] * 5
        assert set(outcomes[:-5]) == {UNAVAILABLE}
        assert_all_accounted(some)


def test_the_first_call_of_a_connection_made_anew_is_marked_too() -> None:
    """The first call after a reconnect is marked. The call is not part of the schedule, and in no latency."""
    with Peer() as peer, closing(lanes(peer.address, 1, due_ns=[0, 100 * MS])) as some:
        accepted = answered_first(peer, some)
        drive(some, lambda: len(accepted[0].requests()) == 2)
        accepted[0].socket.close()
        drive(some, lambda: len(some.lanes[0].records.connect_ns) == 2)
        again = peer.accept()
        drive(some, lambda: len(again.requests()) == 2)
        again.answer(*again.frames)
        drive(some, lambda: recorded(some) == 4)
        records = some.lanes[0].records
        assert list(records.outcomes) == [OK, UNAVAILABLE, OK, OK]
        assert list(records.firsts) == [0, 2]
        assert records.due[2] == records.sent[2]


def test_a_first_call_that_is_lost_with_its_connection_is_marked_too() -> None:
    """A first call that is lost with its connection is marked. Lost requests of the schedule are not marked."""
    with opened(due_ns=[0, 0]) as (some, accepted, _):
        drive(some, lambda: len(accepted.requests()) == 3)
        accepted.socket.close()
        drive(some, lambda: recorded(some) == 3)
        records = some.lanes[0].records
        assert list(records.outcomes) == [UNAVAILABLE] * 3
        assert list(records.firsts) == [0]


def test_an_idle_connection_answers_the_servers_pings() -> None:
    """An idle connection answers the server's pings, so that the server does not close the connection."""
    with Peer() as peer, closing(lanes(peer.address, 2, codec=LineCodec, due_ns=[HOUR_NS])) as some:
        some.open()
        for accepted in (peer.accept(), peer.accept()):
            accepted.socket.sendall(b"ok 1\n")
        drive(some, lambda: recorded(some) == 2)
        for accepted in peer.connections:
            accepted.socket.sendall(b"ping\nping\n")
        drive(some, lambda: all(each.read() == b"hello\ncall 1\npong\npong\n" for each in peer.connections))
        assert all(lane.connected and not lane.waiting for lane in some.lanes)


def test_what_is_due_after_a_first_call_that_failed_is_the_schedules() -> None:
    """A failed first call is marked. The next call is not marked, and times out like any other call."""
    with opened(codec=LineCodec, due_ns=[SWEEP_NS, SWEEP_NS], timeout_s=0.02) as (some, accepted, _):
        accepted.socket.sendall(b"bad 1\n")
        drive(some, lambda: b"call 3\n" in accepted.read())
        accepted.socket.sendall(b"ok 2\n")
        drive(some, lambda: recorded(some) == 3)
        records = some.lanes[0].records
        assert list(records.outcomes) == [FAULT_FIRST + FaultCode.INTERNAL, OK, LATE]
        assert list(records.firsts) == [0]
        assert_all_accounted(some)


def test_late_replies_are_faults_and_belong_to_no_call_when_they_come() -> None:
    """A call without a reply in time is a fault, unless it is a first call. Its late reply is dropped, and the
    connection is kept."""
    with Peer() as peer, closing(lanes(peer.address, 1, due_ns=[0, 0, 4 * SWEEP_NS], timeout_s=0.02)) as some:
        (accepted,) = answered_first(peer, some)
        drive(some, lambda: recorded(some) == 3)
        accepted.answer(*accepted.requests()[1:])
        drive(some, lambda: len(accepted.requests()) == 4)
        accepted.answer(accepted.frames[3])
        drive(some, lambda: recorded(some) == 4)
        records = some.lanes[0].records
        assert list(records.outcomes) == [OK, LATE, LATE, OK]
        assert all(records.done[place] - records.sent[place] >= 20 * MS for place in (1, 2))
        assert len(records.connect_ns) == 1
        assert_all_accounted(some)


def test_folding_in_mid_run_loses_nothing(server: str) -> None:
    """An open loop goes on during the folding. Requests that came due are sent late, and no due moment is lost."""
    due_ns = [number * MS // 4 for number in range(600)]
    folded: list[int] = []
    with closing(lanes(address(server), 3, due_ns=due_ns, records_max=50)) as some:
        some.open()
        while len(folded) + recorded(some) < 603:
            if some.drive(time.perf_counter_ns() + SWEEP_NS):
                some.settle()
                for lane in some.lanes:
                    folded += lane.records.due
                    lane.records.clear()
                some.resume()
        some.finish()
        assert sum(lane.records.started for lane in some.lanes) == 603
        assert folded


def test_faults_are_recorded_by_request_type() -> None:
    """Faults are recorded by request type, with their due moments."""
    plan = replace(PLAN, mix={"lookup": 1.0, "trade": 1.0})
    with saying(full) as where, closing(lanes(where, 2, plan, due_ns=[0] * 60)) as some:
        some.open()
        drive(some, lambda: recorded(some) == 62)
        assert {outcome for lane in some.lanes for outcome in lane.records.outcomes} == {
            FAULT_FIRST + 8,
            TYPE_STEP + FAULT_FIRST + 8,
        }
        assert_all_accounted(some)
