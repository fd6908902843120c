"""Connections that are read after all others, and the time for it, on connections of a simulated server."""

import select

import pytest

from stock_service.rpc.server_core import low_priority_reads as module
from stock_service.rpc.server_core.connection import ServedConnection
from stock_service.rpc.server_core.low_priority_reads import LowPriorityReads
from stock_service.rpc.wire.framing import RequestFrame, request_decoder
from stock_service.rpc.wire.served_stream import ServedStream
from tests.unit.stock_service.rpc.server_core.nothing import Nothing

NOW = 1_000_000_000


class Reader:
    """A reader that notes who was read; each connection then has as much left as ``more`` says."""

    def __init__(self, made: int, costly: int = 0) -> None:
        """Connections that all wait to be read; reads of the first ``costly`` were costly so far."""
        self.low_priority: LowPriorityReads[RequestFrame] = LowPriorityReads(self.read, self.look_after)
        self.more = [0] * made
        self.made = [ServedConnection(Nothing(), ServedStream(request_decoder(), _no, 64, NOW)) for _ in range(made)]
        self.order: list[int] = []
        for place, each in enumerate(self.made):
            each.cost_ns = 10**9 if place < costly else 0
            each.events = select.EPOLLIN
            self.low_priority.join(each, NOW)

    def read(self, connection: ServedConnection[RequestFrame], now_ns: int) -> None:
        """Reads one."""
        number = self.made.index(connection)
        self.order.append(number)
        connection.first_ns = 0
        if self.more[number]:
            self.more[number] -= 1
            self.low_priority.join(connection, now_ns)

    def look_after(self, connection: ServedConnection[RequestFrame], _now_ns: int) -> None:
        """Has it watched, as the server does."""
        connection.events = connection.watched(True)

    def watched(self) -> list[bool]:
        """Connections that epoll would report as readable."""
        return [bool(each.events & select.EPOLLIN) for each in self.made]


def _no(_: object) -> bytes:
    return b""


def test_every_other_turn_is_for_one_that_was_cheap_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second turn is for a cheap connection, so that a new client does not wait for all costly ones. Costly ones
    are read beside any number of new ones."""
    monkeypatch.setattr(module, "WHILE_NS", 0)
    reader = Reader(6, costly=3)
    while reader.low_priority.queue:
        reader.low_priority.serve(others=False)
    assert reader.order == [3, 0, 4, 1, 5, 2]


def test_costs_of_reads_add_up() -> None:
    """Costs of reads add up: those of the reading thread, and of the thread that unfolds a message."""
    reader = Reader(2)
    reader.more[0] = 1
    for _ in range(3):
        reader.made[0].later_ns = 10**12
        reader.low_priority.serve(others=False)
    assert sorted(reader.order) == [0, 0, 1]
    assert reader.made[0].cost_ns >= 2 * 10**12
    assert 0 < reader.made[1].cost_ns < 10**12


def test_a_cheap_one_that_joins_again_is_read_once_in_a_while() -> None:
    """A cheap connection that joins again has its next cheap turn once all waiting ones were read."""
    reader = Reader(4, costly=3)
    reader.more = [1, 1, 1, 2]
    reader.low_priority.serve(others=False)
    assert sorted(reader.order) == [0, 1, 2, 3]
    reader.low_priority.serve(others=False)
    assert sorted(reader.order[4:]) == [0, 1, 2, 3]


def test_a_cheap_one_that_joined_again_is_cheap_still() -> None:
    """A cheap connection that joined again is still cheap: the next cheap turn is its own, though costly ones have
    waited longer."""
    reader = Reader(4, costly=3)
    for each in reader.made[:3]:
        each.later_ns = 10**9
    reader.more[3] = 1
    reader.low_priority.serve(others=False)
    reader.low_priority.serve(others=False)
    assert reader.order == [3, 0, 3, 1]


def test_one_that_turned_out_costly_is_cheap_no_more() -> None:
    """A connection joins again before the cost of its read is known."""
    reader = Reader(3)
    reader.low_priority.clear()
    reader.made[1].cost_ns = 10**9
    reader.made[0].later_ns = 10**9
    reader.more[0] = 1
    for each in reader.made[:2]:
        reader.low_priority.join(each, NOW)
    reader.low_priority.serve(others=False)
    reader.low_priority.join(reader.made[2], NOW)
    reader.low_priority.serve(others=False)
    assert reader.order == [0, 1, 2, 0]


def test_they_rest_while_others_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """They rest for ``REST`` while others are served. Without others they are read."""
    monkeypatch.setattr(module, "REST", 1_000_000)
    reader = Reader(1)
    reader.more[0] = 9
    reader.low_priority.serve(others=True)
    reader.low_priority.serve(others=True)
    assert reader.order == [0]
    reader.low_priority.serve(others=False)
    assert reader.order == [0, 0]
    monkeypatch.setattr(module, "REST", 0)
    reader.low_priority.serve(others=False)
    reader.low_priority.serve(others=True)
    assert reader.order == [0, 0, 0, 0]


def test_who_waits_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epoll would say at once, again and again, that it is to be read. Who was read is watched again."""
    monkeypatch.setattr(module, "WHILE_NS", -1)
    reader = Reader(2)
    reader.low_priority.serve(others=False)
    assert reader.watched() == [True, False]
    reader.low_priority.serve(others=False)
    assert reader.watched() == [True, True]


def test_a_connection_that_is_not_read_is_watched_until_something_came() -> None:
    """A connection that is not read is watched until bytes come. Else a request behind a waiting one would seem to have
    come when it is read."""
    reader = Reader(1)
    reader.low_priority.serve(others=False)
    (connection,) = reader.made
    connection.events = 0  # as while it waited to be read
    assert connection.watched(reads=False) == select.EPOLLIN
    connection.first_ns = NOW
    assert connection.watched(reads=False) == 0


def test_what_waits_has_its_age() -> None:
    """A request's wait counts from when its connection was first seen readable."""
    reader = Reader(1)
    reader.low_priority.join(reader.made[0], NOW + 5)
    assert reader.made[0].first_ns == NOW
    assert len(reader.low_priority.queue) == 1


def test_what_comes_on_one_that_leaves_is_dropped_in_its_turn() -> None:
    """Bytes on a connection that leaves are dropped in its turn: its peer holds up no others, and is not left unread.
    A connection that was closed, or broken off, while it waited is not read."""
    for ends, order in ((ServedStream.leave, [0, 1]), (ServedStream.cut, [1])):
        reader = Reader(2)
        ends(reader.made[0].stream)
        reader.made[0].events = -1
        reader.low_priority.serve(others=False)
        assert reader.order == order


def test_reading_one_may_close_others() -> None:
    """Reading one may close others: the connection with most bytes pays for another one's."""
    reader = Reader(3)
    read = reader.read

    def closing(connection: ServedConnection[RequestFrame], now_ns: int) -> None:
        read(connection, now_ns)
        for other in reader.made[1:]:
            reader.low_priority.forget(other)

    reader.low_priority._read = closing
    reader.low_priority.serve(others=False)
    assert reader.order == [0]


def test_all_of_them_are_others_to_read_once_it_is_cleared() -> None:
    """A server that stops reads everyone at once."""
    reader = Reader(2)
    reader.low_priority.clear()
    assert not reader.low_priority.queue
    assert not any(each.low_priority for each in reader.made)


def test_only_who_has_just_joined_is_looked_after() -> None:
    """Thousands may wait, and each turn of the reading thread would go through all of them."""
    reader = Reader(3)
    reader.more = [1, 1, 1]
    reader.low_priority.serve(others=False)
    looked: list[ServedConnection[RequestFrame]] = []
    reader.low_priority._look_after = lambda connection, _: looked.append(connection)
    reader.made[2].events = select.EPOLLIN  # as if it were new
    reader.low_priority.forget(reader.made[2])
    reader.low_priority.join(reader.made[2], NOW)
    for each in reader.made[:2]:
        each.events = select.EPOLLIN
    reader.low_priority._rests_until_ns = 1 << 62
    reader.low_priority.serve(others=True)
    assert looked == [reader.made[2]]
