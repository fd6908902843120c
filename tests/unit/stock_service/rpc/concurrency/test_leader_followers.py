"""Leader/followers: who runs a batch, and who reads where the leader is stuck."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread, current_thread

import pytest

from stock_service.rpc.concurrency import Task, leader_followers
from stock_service.rpc.concurrency.leader_followers import LeaderFollowers
from stock_service.rpc.errors import Unavailable
from tests.conformance.gates import WAIT_S, Gate, until

FOREVER_NS = 1 << 62


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is: batches are near each other, and no request is slow."""
    monkeypatch.setattr(leader_followers, "_NEAR_NS", FOREVER_NS)
    monkeypatch.setattr(leader_followers, "_PATIENCE_NS", FOREVER_NS)


@pytest.fixture
def undeposed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lookout that looks too seldom to depose the leader, for any wait of the leader."""
    monkeypatch.setattr(leader_followers, "LOOK_S", 10 * WAIT_S)


class Server:
    """A server that reads batches of tasks from a queue; an empty batch is the end."""

    def __init__(self, workers: int) -> None:
        self.pool = LeaderFollowers(workers, 10_000)
        self.batches: SimpleQueue[list[Task]] = SimpleQueue()
        self.readers: list[str] = []
        """The threads that read, batch by batch."""
        self.ended = Event()
        self._gates: list[Gate] = []
        self.reader = self.pool.reader(self._read, self.ended.set)
        self.reader.start()

    def _read(self) -> None:
        while batch := self.batches.get(timeout=WAIT_S):
            self.readers.append(current_thread().name)
            assert self.pool.execute_all(batch) == len(batch), "the pool's queue was full"

    def gate(self) -> Gate:
        """A new gate, which ``end`` opens."""
        self._gates.append(Gate())
        return self._gates[-1]

    def end(self) -> None:
        """Opens all gates, and stops the reading and the pool."""
        for gate in self._gates:
            gate.open()
        self.batches.put([])
        assert self.ended.wait(WAIT_S)
        self.reader.join(WAIT_S)
        assert self.pool.stop(WAIT_S)

    def ran(self, *behind: Task) -> str:
        """The name of the thread that runs the first task of a batch."""
        names: SimpleQueue[str] = SimpleQueue()
        self.batches.put([lambda: names.put(current_thread().name), *behind])
        return names.get(timeout=WAIT_S)

    def stick(self, *behind: Task) -> Gate:
        """Makes the leader wait at a new gate, with tasks behind it in the same batch."""
        gate = self.gate()
        until(lambda: self.pool._running == 0)
        self.batches.put([gate.stand, *behind])
        gate.wait_for(1)
        return gate


@contextmanager
def serving(workers: int = 2) -> Iterator[Server]:
    """A server. At the end its gates are opened, and its reading and its pool are stopped."""
    server = Server(workers)
    try:
        yield server
    finally:
        server.end()


@pytest.mark.usefixtures("undeposed")
def test_the_leader_runs_short_requests_itself() -> None:
    """The whole batch, in order, on the thread that read it."""
    with serving() as server:
        order: list[int] = []
        done = Event()
        assert server.ran(*(partial(order.append, number) for number in range(20)), done.set) == "leader-first"
        assert done.wait(WAIT_S)
        assert order == list(range(20))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_while_the_leader_is_stuck_a_follower_reads(workers: int) -> None:
    """While the leader is stuck a follower reads, so that a waiting request holds up no others, each time anew. The old
    leader follows, and may lead again."""
    with serving(workers) as server:
        for _ in range(4):
            gate = server.stick()
            stuck = server.readers[-1]
            at_work, reads = server.gate(), len(server.readers)
            server.batches.put([at_work.stand])
            until(lambda reads=reads: len(server.readers) > reads)  # type: ignore[misc]
            assert server.readers[-1] != stuck
            if workers == 1:
                until(lambda: server.pool.under_way == 2)
                gate.open()
            at_work.wait_for(1)
            gate.open()
            at_work.open()
        assert len({*server.readers}) > 1


def test_what_is_behind_a_stuck_request_goes_to_followers() -> None:
    """Though nothing more is read: the new leader sees to it."""
    threads = SimpleQueue[str]()
    with serving() as server:
        gate = server.stick(lambda: threads.put(current_thread().name))
        assert threads.get(timeout=WAIT_S).startswith("follower-")
        assert gate.left == 0


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_no_more_requests_run_than_there_are_workers(workers: int) -> None:
    """No more requests run than there are workers, with the stuck leader's request and those of other threads."""
    with serving(workers) as server:
        gate, more = server.stick(), server.gate()
        for _ in range(workers):
            server.pool.execute(more.stand)
        more.wait_for(workers - 1)
        until(lambda: server.pool._leader != 0 and not server.pool._busy)  # a follower leads
        assert server.pool.under_way == workers + 1
        assert server.pool._running == workers
        gate.open()
        more.wait_for(1)


@pytest.mark.parametrize(("part", "value"), [("_NEAR_NS", 0), ("has_gil", lambda: False)])
def test_followers_run_all(part: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that come now and then are left to followers, so that the lookout sleeps. It would have to wake for
    each. So are all requests without a GIL, where two tasks of a batch that wait for each other both end."""
    monkeypatch.setattr(leader_followers, part, value)
    with serving() as server:
        assert all(server.ran().startswith("follower-") for _ in range(5))
        assert server.pool._batches == 0


@pytest.mark.usefixtures("undeposed")
def test_a_leader_in_a_batch_is_one_busy_thread() -> None:
    """The tasks of the batch that it has not begun wait for it."""
    with serving(8) as server:
        server.stick(*[lambda: None] * 9)
        assert (server.pool.busy, server.pool.under_way) == (1, 10)


@pytest.mark.usefixtures("undeposed")
def test_after_a_slow_request_followers_run_all_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of its batch, and what comes within ``REST`` times as long; then the leader runs again."""
    with serving() as server:
        monkeypatch.setattr(leader_followers, "_PATIENCE_NS", 1_000_000)
        monkeypatch.setattr(leader_followers, "REST", 10_000)  # 20 s at least
        behind = SimpleQueue[str]()
        server.batches.put([partial(time.sleep, 0.002), lambda: behind.put(current_thread().name)])
        assert behind.get(timeout=WAIT_S).startswith("follower-")
        assert server.pool._spread_until_ns > time.monotonic_ns()
        assert server.ran().startswith("follower-")
        monkeypatch.setattr(leader_followers, "_PATIENCE_NS", FOREVER_NS)
        server.pool._spread_until_ns = 0
        until(lambda: server.pool._running == 0)
        assert not server.ran().startswith("follower-")


def test_slow_requests_are_forgotten_in_time() -> None:
    """A request of a minute counts as one of 8 ms, since no other request waited longer for it."""
    assert leader_followers.REST * 2 * leader_followers.LOOK_S <= 0.4


def test_while_a_follower_is_at_work_followers_run_all() -> None:
    """While a follower works followers run all requests: a batch is spread, since it may wait for the same thing."""
    with serving(3) as server:
        gate = server.gate()
        server.pool.execute(gate.stand)
        gate.wait_for(1)
        assert server.ran().startswith("follower-")


def test_the_lookout_sleeps_while_there_is_nothing_new() -> None:
    """The lookout looks every 4 ms while the leader runs batches; without any it waits without a timeout."""
    watched: SimpleQueue[bool] = SimpleQueue()
    with serving() as server:
        for _ in range(2):
            server.batches.put([lambda: watched.put(server.pool._watched)])
            assert watched.get(timeout=WAIT_S)
            until(lambda: not server.pool._watched and server.pool._lookout is not None)


def test_a_second_server_reads_with_a_thread_that_runs_nothing() -> None:
    """The pool has one leader."""
    with serving() as server:
        names: SimpleQueue[str] = SimpleQueue()

        def read() -> None:
            names.put(current_thread().name)
            server.pool.execute_all([lambda: names.put(current_thread().name)])

        second = server.pool.reader(read, lambda: names.put("end"))
        second.start()
        second.join(WAIT_S)
        seen = {names.get(timeout=WAIT_S) for _ in range(3)}
        assert {"server-reader", "end"} < seen
        assert any(name.startswith("follower-") for name in seen)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("part", ["read", "end"])
def test_reading_that_fails_is_over(part: str) -> None:
    """When reading fails it is over: a stop waits for its end, and for every thread."""
    ended = Event()

    def fail() -> None:
        ended.set()
        raise OSError("planted")

    parts: dict[str, Callable[[], object]] = {"read": lambda: None, "end": ended.set}
    parts[part] = fail
    pool = LeaderFollowers(1, 1)
    reader = pool.reader(parts["read"], parts["end"])
    reader.start()
    reader.join(WAIT_S)
    assert ended.is_set()
    assert pool.stop(WAIT_S)
    assert not [thread for thread in threading.enumerate() if thread.name == "leader-first"]


def test_reading_ends_while_a_request_waits() -> None:
    """A stop waits for the stuck thread only as long as asked. The thread ends after its request."""
    with serving(1) as server:
        server.stick()
        server.batches.put([])
        assert server.ended.wait(WAIT_S)
        server.reader.join(WAIT_S)
        assert not server.pool.stop(0.01)


def test_a_stop_runs_what_waits_behind_a_stuck_request() -> None:
    """With one worker the old leader runs the tasks that wait behind its stuck request."""
    ran = Event()
    with serving(1) as server:
        gate = server.stick(ran.set)
        server.batches.put([])
        assert server.ended.wait(WAIT_S)
        stopper = Thread(target=server.pool.stop, args=(WAIT_S,))
        stopper.start()
        gate.open()
        stopper.join(WAIT_S)
        assert ran.is_set()
        with pytest.raises(Unavailable):
            server.pool.execute(ran.set)


@pytest.mark.usefixtures("undeposed")
def test_a_request_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The leader goes on, also where the request asks to exit."""

    def leave() -> None:
        raise SystemExit(3)

    with serving() as server:
        server.batches.put([lambda: 1 / 0, leave])
        assert server.ran() == "leader-first"
    assert caplog.text.count("a task raised") == 2


def test_a_storm_of_batches_and_slow_requests_loses_nothing() -> None:
    """Every task runs once, under any leader: 3,000 tasks, some of which wait for 10 ms, so that leaders are
    deposed."""
    ran: list[int] = []
    stands = Event()

    def slow(number: int) -> None:
        stands.wait(0.01)
        ran.append(number)

    with serving(3) as server:
        number = 0
        for batch in range(300):
            tasks: list[Task] = [partial(ran.append, number + place) for place in range(10)]
            if batch % 20 == 0:
                until(lambda: len(ran) == number + (batch + 6) // 7)  # noqa: B023 - so the leader runs the next batch
                tasks[batch % 10] = partial(slow, number + batch % 10)
            server.batches.put(tasks)
            if batch % 7 == 0:
                server.pool.execute(partial(ran.append, -1))
            number += 10
        until(lambda: len(ran) == 3000 + 43)
        assert len({*server.readers}) > 1
    assert sorted(ran)[43:] == list(range(3000))


def test_tasks_that_cannot_run_do_not_put_the_look_off() -> None:
    """While the leader is stuck and every worker is at work, other threads execute a task each millisecond. A follower
    reads on at the second look nevertheless."""
    pause = Event()
    with serving(1) as server:
        gate = server.stick()
        reads = len(server.readers)
        server.batches.put([lambda: None])
        executed = 0
        while len(server.readers) == reads:
            server.pool.execute(lambda: None)
            executed += 1
            assert executed < 200, "nobody reads on"
            pause.wait(0.001)
        assert gate.left == 0


def test_a_batch_that_finds_no_room_for_all_is_left_to_followers() -> None:
    """The leader could not say how many it had accepted, once it is deposed."""
    pool = LeaderFollowers(1, 1)
    gate = Gate()
    accepted: list[int] = []
    reader = pool.reader(lambda: accepted.append(pool.execute_all([gate.stand] * 5)), lambda: None)
    try:
        reader.start()
        reader.join(WAIT_S)
        assert accepted == [2]
    finally:
        gate.open()
        assert pool.stop(WAIT_S)
