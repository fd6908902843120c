"""Sending by turns: a connection sends from the turn's begin until every counted request of the load is answered."""

import time
from array import array
from collections.abc import Callable
from itertools import islice

import pytest

from clients.load.plan.outcomes import FAULT_FIRST
from clients.load.plan.turns import Turn
from clients.load.plan.workload import Workload
from clients.load.send.turns import Blocking, Board, Multiplexed, wait_until
from stock_service.rpc.errors import FaultCode, Unavailable
from stock_service.trading.model import Status
from tests.unit.clients.fakes import Clock, FakeConnection, service
from tests.unit.clients.load.send.lanes_bench import PLAN, lanes, ok, saying

TURN = Turn(0, 2_000_000, 2_010_000, 2_110_000, 2_140_000)

CALL_NS = 1_000


class Bench:
    """A connection of two that send, a clock, and the common board."""

    def __init__(self, call_ns: int = CALL_NS, before: Callable[[int], None] = lambda _: None) -> None:
        self.clock = Clock()
        self.places = array("q", [0, 0])
        self.board = Board(self.places)
        self.connection = FakeConnection(service(), self._takes_time)
        self._call_ns, self._before = call_ns, before
        requests = {place: Workload(PLAN).requests(0, place) for place in (0, 1)}
        self.sender = Blocking(
            lambda _: self.connection, requests, 0.5, self.board, clock_ns=self.clock, pause=self.clock.pause
        )
        self.sender.open()

    def _takes_time(self, number: int) -> None:
        self.clock.now_ns += self._call_ns
        self._before(number)

    @property
    def sent_ns(self) -> list[int]:
        """Times of the sends."""
        return list(self.sender.recorded()[0].sent)


def test_a_connection_sends_until_all_counted_requests_of_its_load_are_answered() -> None:
    """A single connection sends from the turn's begin until its counted requests are answered. Of two connections, each
    sends until the counted requests of both are answered. All sends are recorded."""
    bench = Bench()
    bench.sender.send(TURN, 0, range(1))
    assert TURN.begin_ns <= bench.sent_ns[0] < TURN.begin_ns + CALL_NS
    assert TURN.last_ns - CALL_NS - 10 <= bench.sent_ns[-1] < TURN.last_ns
    assert bench.places[0] == TURN.begin_ns

    def other_tells(number: int) -> None:
        if number == 120:
            waiting.places[1] = TURN.begin_ns

    waiting = Bench(before=other_tells)
    waiting.sender.send(TURN, 0, range(2))
    assert len(waiting.sent_ns) == 120
    assert TURN.last_ns < waiting.sent_ns[-1] < TURN.stop_ns


def test_a_connection_stops_whoever_is_not_answered() -> None:
    """A connection stops with a third of the reserve left, even if counted requests of other connections are
    unanswered."""
    bench = Bench()
    bench.sender.send(TURN, 0, range(2))
    assert TURN.stop_ns - CALL_NS - 10 <= bench.sent_ns[-1] < TURN.stop_ns
    assert TURN.stop_ns == TURN.end_ns - 10_000


def test_it_is_told_when_the_last_counted_request_is_answered_and_not_before() -> None:
    """The board is marked when the last counted request is answered, also after the counted part."""
    told: list[int] = []
    bench = Bench(call_ns=70_000, before=lambda _: told.append(bench.places[0]))
    bench.sender.send(TURN, 0, range(1))
    assert told == [0, 0]
    assert bench.places[0] == TURN.begin_ns
    assert bench.clock.now_ns > TURN.last_ns


def test_another_turns_word_does_not_count() -> None:
    """A mark of an earlier turn on the board does not count."""
    bench = Bench()
    bench.places[1] = TURN.begin_ns - 1
    assert not bench.board.all_answered(range(2), TURN)
    bench.board.tell(1, TURN)
    assert bench.board.all_answered(range(1, 2), TURN)
    assert not bench.board.all_answered(range(2), TURN)


def test_a_turn_that_is_over_sends_nothing() -> None:
    """A client that wakes after its turn sends nothing, so that it does not reach into the next turn."""
    bench = Bench()
    bench.clock.now_ns = TURN.stop_ns
    bench.sender.send(TURN, 0, range(2))
    assert bench.sent_ns == []


def test_each_load_sends_its_own_requests() -> None:
    """Each load sends its own requests on the shared connection."""
    bench = Bench()
    workloads = {0: Workload(PLAN), 1: Workload(PLAN)}
    requests = {place: islice(each.requests(0, place), 300) for place, each in workloads.items()}
    bench.sender = Blocking(lambda _: bench.connection, requests, 0.5, bench.board, bench.clock, bench.clock.pause)
    bench.sender.open()
    bench.sender.send(TURN.after(0), 0, range(1))
    before = len(list(requests[1]))
    assert before == 300
    assert len(list(requests[0])) < 300


def test_faults_are_written_down_and_sending_goes_on() -> None:
    """Faults are recorded with their outcome, a reply with its status, and sending goes on."""

    def fails(number: int) -> None:
        if number == 3:
            raise Unavailable("gone")

    bench = Bench(before=fails)
    bench.sender.send(TURN, 0, range(1))
    outcomes = list(bench.sender.recorded()[0].outcomes)
    assert outcomes[:4] == [Status.OK, Status.OK, FAULT_FIRST + FaultCode.UNAVAILABLE, Status.OK]
    assert len(outcomes) == len(bench.sent_ns) == len(bench.connection.calls) == bench.sender.recorded()[0].started


def test_closing_may_be_repeated() -> None:
    """Closing closes the connection, and may be repeated."""
    bench = Bench()
    bench.sender.close()
    bench.sender.close()
    assert bench.connection.closed


def test_a_later_turn_is_the_same_so_much_later() -> None:
    """Every moment of a moved turn is later by the same time."""
    later = TURN.after(7)
    moments = ("begin_ns", "first_ns", "last_ns", "end_ns")
    assert [getattr(later, name) - getattr(TURN, name) for name in moments] == [7] * 4
    assert later.load == TURN.load


@pytest.mark.parametrize("left_ns", [-5, 0, 100, 10_000_000])
def test_waiting_ends_on_time(left_ns: int) -> None:
    """The wait ends on time: never early, and hardly late, since the end of the wait is a busy wait."""
    clock = Clock()
    at_ns = clock.now_ns + left_ns
    wait_until(at_ns, clock, clock.pause)
    assert at_ns <= clock.now_ns <= max(at_ns, 1_000_000) + 5


def test_many_lanes_send_in_their_turn_alone() -> None:
    """All lanes send from the turn's begin until the counted requests of all lanes are answered."""
    with saying(ok) as address:
        some = lanes(address, 3)
        workload = Workload(PLAN)
        requests = {0: some.sequences(workload, [workload.drawn(0, number) for number in range(3)])}
        sender = Multiplexed(some, requests, board := Board(array("q", [0])))
        try:
            sender.open()
            opened_ns = time.perf_counter_ns()  # each lane's first call may still be under way
            start_ns = opened_ns + 5_000_000
            turn = Turn(0, start_ns, start_ns + 5_000_000, start_ns + 25_000_000, start_ns + 5_025_000_000)
            sender.send(turn, 0, range(1))
            assert time.perf_counter_ns() < turn.stop_ns
            assert board.all_answered(range(1), turn)
            assert len(sender.recorded()) == 3
            for records in sender.recorded():
                assert turn.begin_ns <= min(sent_ns for sent_ns in records.sent if sent_ns > opened_ns)
                assert max(records.sent) >= turn.first_ns
                assert set(records.outcomes) == {Status.OK}
                assert records.started == len(records.outcomes)
        finally:
            sender.close()
