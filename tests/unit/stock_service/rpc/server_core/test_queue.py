"""Turns of connections that wait, refusals, and shares while the executor is behind; connections carry nothing."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from stock_service.rpc.concurrency import Reader, Task
from stock_service.rpc.server_core import queue as module
from stock_service.rpc.server_core.admission import Ahead, DelayTarget
from stock_service.rpc.server_core.connection import ServedConnection
from stock_service.rpc.server_core.listening import FEW_BYTES, READ_BYTES
from stock_service.rpc.server_core.protocol import Methods
from stock_service.rpc.server_core.queue import MANY, Dispatch, Turns
from stock_service.rpc.transports.sockets.frames import Frames
from stock_service.rpc.wire.framing import RequestFrame, encode_request, reply_decoder, request_decoder
from stock_service.rpc.wire.served_stream import ServedStream
from tests.unit.stock_service.rpc.server_core.nothing import Nothing

MS = 1_000_000
NOW = 1_000 * MS


def turns(delay: DelayTarget | None = None) -> Turns[RequestFrame]:
    """Turns of a server of frames."""
    return Turns(Frames(Methods({}, {}), 1000), delay or DelayTarget(20), Ahead(8, 1000))


def connection(requests: int, arrived_ns: int = NOW) -> ServedConnection[RequestFrame]:
    """A connection with this number of waiting requests."""
    stream = ServedStream(request_decoder(), lambda _: b"", 64, NOW)
    frames = b"".join(encode_request(call, 0, b"/a.B/C", b"") for call in range(1, requests + 1))
    taken = stream.take(frames, NOW, arrived_ns)
    if taken is not None:
        stream.put_back(taken, arrived_ns)
    return ServedConnection(Nothing(), stream)


def read_apart(*requests: tuple[int, int]) -> ServedConnection[RequestFrame]:
    """A connection whose requests came one by one, and wait since the executor is behind, with each arrival and its
    time."""
    stream = ServedStream(request_decoder(), lambda _: b"", 64, NOW)
    taken = []
    for call, (arrived_ns, timeout_ms) in enumerate(requests, 1):
        request = stream.take(encode_request(call, timeout_ms, b"/a.B/C", b""), NOW, arrived_ns)
        assert request is not None
        taken.append((request, arrived_ns))
    for request, arrived_ns in reversed(taken):
        stream.put_back(request, arrived_ns)
    return ServedConnection(Nothing(), stream)


def refused(of: ServedConnection[RequestFrame]) -> list[int]:
    """The calls that a connection was refused."""
    assert isinstance(of.bytes, Nothing)
    return [reply.call for reply in reply_decoder().feed(bytes(of.bytes.sent))]


def test_each_has_its_share_in_the_order_in_which_they_came() -> None:
    """Each connection has its share of the room in the order of their coming. While any waits, new requests wait,
    too."""
    waiting, made = turns(), [connection(10) for _ in range(3)]
    waiting.wait(NOW)
    assert waiting.share == 0
    for each in made:
        waiting.join(each, 100, NOW)
    assert [each.stream.queued for each in made] == [True] * 3
    given = waiting.shared(12)
    assert next(given) is made[0]
    assert waiting.share == 4
    assert not made[0].stream.queued
    waiting.hold()
    assert waiting.share == 0
    assert list(given) == made[1:]
    waiting.hold()
    assert waiting.share == MANY


def test_who_was_refused_nothing_has_every_other_turn() -> None:
    """A connection without refusals has every second turn, before those that send too much, which are not kept out."""
    waiting, greedy, polite = turns(), [connection(9) for _ in range(4)], [connection(1) for _ in range(2)]
    for each in greedy:
        each.refused_ns = NOW
    for each in (*greedy, *polite):
        waiting.join(each, 100, NOW)
    assert list(waiting.queue) == [polite[0], greedy[0], polite[1], *greedy[1:]]
    assert waiting.next() is polite[0]
    waiting.join(polite[0], 100, NOW)
    assert list(waiting.queue) == [greedy[0], polite[1], polite[0], *greedy[1:]]


def test_who_has_few_requests_waiting_has_every_other_turn() -> None:
    """A connection with few waiting requests has every second turn, before those with many, also if nothing of these
    was refused: they may have come again for this."""
    waiting, much, little = turns(), [connection(5) for _ in range(3)], connection(4)
    for each in (*much, little):
        waiting.join(each, 100, NOW)
    assert list(waiting.queue) == [little, *much]


def test_refusing_goes_on_another_time_if_there_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refusals go on at the next call if there are many, so that some requests are begun in between. Each look goes on
    where the last one ended."""
    monkeypatch.setattr(module, "SHEDDING_NS", -1)
    waiting, late = turns(), [connection(2, NOW - 3000 * MS) for _ in range(2)]
    for each in late:
        waiting.join(each, 100, NOW)
    waiting.look(NOW)
    assert [len(refused(each)) for each in late] in ([2, 0], [0, 2])
    waiting.look(NOW)
    assert [len(refused(each)) for each in late] == [2, 2]


def test_what_is_over_the_room_is_refused_to_who_has_more_than_a_share() -> None:
    """Over the room the oldest requests of a connection with more than its share are refused. One with less waits."""
    waiting, much, little = turns(), connection(30), connection(2)
    waiting.wait(NOW)
    waiting.join(much, 20, NOW)
    assert refused(much) == list(range(1, 11))
    waiting.join(little, 20, NOW)
    assert refused(little) == []
    assert little.stream.queued


def dispatched(of: ServedConnection[RequestFrame]) -> list[int]:
    """The calls of a connection that are left to begin."""
    return [request.call for request, _ in of.stream.release(MANY)]


def test_each_request_of_a_connection_waits_for_as_long_as_it_says() -> None:
    """Each of three requests that waited equally long is judged by its own time."""
    delay = DelayTarget(20)
    delay.emptied(NOW)
    made = read_apart(*((NOW - 60 * MS, timeout_ms) for timeout_ms in (100, 80, 1000)))
    turns(delay).shed(made, NOW)
    assert refused(made) == [1, 2]
    assert made.stream.in_flight == 0
    assert dispatched(made) == [3]


def test_reading_is_in_small_pieces_until_it_has_recovered() -> None:
    """From the first waiting request until some time after the last refusal reading is in small pieces."""
    delay = DelayTarget(20)
    waiting = turns(delay)
    assert waiting.read_bytes == READ_BYTES
    waiting.wait(NOW)
    assert waiting.read_bytes == FEW_BYTES
    delay.refused(NOW)
    waiting.recover(NOW + 50 * MS)
    assert waiting.read_bytes == FEW_BYTES
    waiting.recover(NOW + 101 * MS)
    assert waiting.read_bytes == READ_BYTES


def test_what_waited_in_the_kernel_is_refused_though_nobody_waits_here() -> None:
    """A request that waited in the kernel is refused by the limit of a burst, since no queue stands. Without a target
    it is let through."""
    late, early = connection(3, NOW - 1334 * MS), connection(3, NOW - 1333 * MS)
    for each in (late, early):
        turns().read_late(each, NOW)
    assert [each.stream.releasable() for each in (late, early)] == [0, 3]


def test_while_any_send_little_half_a_turn_of_each_is_begun_at_a_time() -> None:
    """While some clients send little beside others that send much, half a turn of each is begun at a time. Else the
    whole room is filled, and also where requests take long."""
    waiting = turns()
    waiting.ahead.ran(20, 2 * MS)
    for number in range(40):
        waiting.join(connection(10 if number else 3), 1000, NOW - 20 * MS)
    assert waiting.fair_room(100, NOW) == 100
    for each in waiting.shared(40):
        each.stream.release(1)
        waiting.join(each, 1000, NOW)
        break
    assert waiting.fair_room(100, NOW) == 100
    waiting.join(connection(1), 1000, NOW)
    assert waiting.fair_room(100, NOW) == 100
    waiting.join(connection(10), 1000, NOW)
    assert [waiting.fair_room(room, NOW) for room in (100, 5, 0)] == [21, 5, 0]
    assert waiting.fair_room(100, NOW + 11 * MS) == 100
    waiting.ahead.ran(80, 2 * MS)
    assert waiting.fair_room(100, NOW) == 21
    waiting.behind = True
    assert waiting.fair_room(100, NOW) == 40, "as many as last a sleep"
    waiting = turns()
    waiting.ahead.ran(20, 10 * MS)  # 2 in a millisecond
    for number in range(40):
        waiting.join(connection(10 if number else 1), 1000, NOW)
    assert waiting.fair_room(100, NOW) == 100


REQUEST = encode_request(1, 0, b"/a.B/C", b"")

Connection = ServedConnection[RequestFrame]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, each takes its turn to the end."""
    monkeypatch.setattr(module, "SHEDDING_NS", 1 << 60)


class Steady(Ahead):
    """A dispatch that always finds the executor equally fast."""

    def __init__(self, ahead: int) -> None:
        super().__init__(1, 100_000)
        self.tasks = self.burst = ahead

    def room(self, ended: int, under_way: int, now_ns: int, cpu_ns: int, reading_ns: int) -> int:
        return self.tasks

    def ran(self, tasks: int, took_ns: int) -> None:
        pass


class Counting:
    """An executor that begins the first ``takes`` tasks at once, and notes their connections."""

    workers, limit, under_way, busy = 1, 100_000, 0, 0

    def __init__(self) -> None:
        self.begun: Counter[Connection] = Counter()
        self.takes = self.limit

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """All that are begun are answered."""
        for task in tasks[: self.takes]:
            assert isinstance(task, partial)
            self.begun[task.args[0]] += 1
            task.args[0].reply(b"")
        return min(len(tasks), self.takes)

    def execute(self, task: Task) -> None:
        raise NotImplementedError

    def reader(self, read: Callable[[], object], end: Callable[[], object]) -> Reader:
        raise NotImplementedError

    def stop(self, grace_s: float) -> bool:
        return True


class Served:
    """A server's reading thread as far as handing over goes: greedy connections always have more than they may."""

    def __init__(self, greedy: int, polite: int, ahead: int) -> None:
        protocol, self.executor = Frames(Methods({}, {}), 1000), Counting()
        self.turns: Turns[RequestFrame] = Turns(protocol, DelayTarget(20), Steady(ahead))
        self.dispatch = Dispatch(protocol, self.executor, self.turns, self.attend, lambda _: None, None, None)
        self.greedy = [connection(0) for _ in range(greedy)]
        self.polite = [connection(0) for _ in range(polite)]

    def attend(self, connection: Connection, now_ns: int) -> None:
        """Do with waiting requests as the server does."""
        for request, arrived_ns in connection.stream.release(self.turns.share):
            self.dispatch.batch.append(partial(_nothing, connection, request, arrived_ns))
        if not connection.stream.queued and connection.stream.releasable():
            self.turns.join(connection, self.executor.limit, now_ns)
        connection.stream.settle(now_ns)

    def turn(self, now_ns: int) -> None:
        """Read what each client has sent since the last turn, and hand it over."""
        for connections, data in ((self.greedy, REQUEST * 64), (self.polite, REQUEST)):
            for connection in connections:
                if not connection.stream.queued:
                    request = connection.stream.take(data, now_ns, now_ns)
                    if request is not None:
                        self.dispatch.batch.append(partial(_nothing, connection, request, now_ns))
                    self.attend(connection, now_ns)
        self.dispatch.dispatch(now_ns)


def _nothing(_connection: Connection, _request: RequestFrame, _arrived_ns: int) -> None:
    raise NotImplementedError  # only its arguments are looked at


def test_every_request_that_the_executor_does_not_take_is_refused() -> None:
    """If the executor takes only a part of a batch, each other request of the batch is refused."""
    served, asking = Served(0, 0, 80), connection(4)
    served.executor.takes = 1
    served.attend(asking, NOW)
    served.dispatch.dispatch(NOW)
    assert served.executor.begun == {asking: 1}
    assert refused(asking) == [2, 3, 4]


@pytest.mark.parametrize("ahead", [20, 80, 250])
@pytest.mark.parametrize(("greedy", "polite"), [(64, 16), (64, 1)])
def test_who_sends_little_has_its_share(greedy: int, polite: int, ahead: int) -> None:
    """A client that sends little, with one request at a time, has its share of turns beside clients with many
    requests."""
    served = Served(greedy, polite, ahead)
    for number in range(12):
        if number == 2:
            served.executor.begun.clear()  # until now nobody had waited
        served.turn(NOW + number * MS)
    begun = served.executor.begun
    fair = begun.total() / (greedy + polite)
    assert min(begun[each] for each in served.polite) >= 0.9 * fair
    assert min(begun[each] for each in served.greedy) >= 0.25 * fair
