"""Shares of connections while the executor is behind: they carry nothing, and the executor only counts."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from stock_service.rpc.concurrency import Reader, Task
from stock_service.rpc.server_core import queue as module
from stock_service.rpc.server_core.admission import Ahead, DelayTarget
from stock_service.rpc.server_core.connection import ServedConnection
from stock_service.rpc.server_core.protocol import Methods
from stock_service.rpc.server_core.queue import Dispatch, Turns
from stock_service.rpc.transports.sockets.frames import Frames
from stock_service.rpc.wire.framing import RequestFrame, encode_request, request_decoder
from stock_service.rpc.wire.served_stream import ServedStream
from tests.unit.stock_service.rpc.server_core.nothing import Nothing

MS = 1_000_000
NOW = 1_000 * MS
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
    """An executor that begins its tasks at once, and notes their connections."""

    workers, limit, under_way, busy = 1, 100_000, 0, 0

    def __init__(self) -> None:
        self.begun: Counter[Connection] = Counter()

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """All of them are answered."""
        for task in tasks:
            assert isinstance(task, partial)
            connection = task.args[0]
            self.begun[connection] += 1
            connection.reply(b"")
        return len(tasks)

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
        self.greedy = [self._made() for _ in range(greedy)]
        self.polite = [self._made() for _ in range(polite)]

    def _made(self) -> Connection:
        return ServedConnection(Nothing(), ServedStream(request_decoder(), lambda _: b"", 64, NOW))

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
