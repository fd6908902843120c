"""The end of connections that were half-closed, on streams without bytes."""

import pytest

from stock_service.rpc.server_core import closing
from stock_service.rpc.server_core.closing import LOOK_S, QUIET_S, LingeringClose
from stock_service.rpc.server_core.connection import ServedConnection
from stock_service.rpc.wire.framing import RequestFrame, request_decoder
from stock_service.rpc.wire.served_stream import ServedStream
from tests.unit.stock_service.rpc.server_core.nothing import Nothing

NOW = 1_000_000_000
GOODBYE = b"goodbye"
LOOK_NS, QUIET_NS = int(LOOK_S * 1e9), int(QUIET_S * 1e9)


class Asked(Nothing):
    """A stream that counts how often it is asked what its peer has taken, and whose peer sends without end."""

    def __init__(self, on_its_way: int = 0) -> None:
        super().__init__()
        self.asked, self._on_its_way = 0, on_its_way

    def unacknowledged(self) -> int:
        """Bytes that the peer has not acknowledged, as given."""
        self.asked += 1
        return self._on_its_way

    def drop(self) -> int:
        """Drops bytes: there are always more."""
        return 1


class Leaving:
    """One connection that leaves, and if it was closed."""

    def __init__(self, stopping: bool = False, on_its_way: int = 0) -> None:
        self.bytes = Asked(on_its_way)
        self.connection: ServedConnection[RequestFrame]
        self.connection = ServedConnection(self.bytes, ServedStream(request_decoder(), lambda _: b"", 64, NOW))
        self.closed: list[ServedConnection[RequestFrame]] = []
        self.departures: LingeringClose[RequestFrame] = LingeringClose(10.0, GOODBYE, self.closed.append)
        if stopping:
            self.departures.stop(1.0)
        self.departures.begin(self.connection, NOW)


def test_who_is_quiet_is_closed() -> None:
    """A silent connection is closed, and one on which bytes come is not."""
    leaving = Leaving()
    leaving.departures.drop(leaving.connection, NOW + QUIET_NS // 2)
    leaving.departures.look(NOW + QUIET_NS + 1)
    assert not leaving.closed
    leaving.departures.look(NOW + 2 * QUIET_NS)
    assert leaving.closed == [leaving.connection]


def test_it_is_looked_now_and_then() -> None:
    """However often the reading thread asks: thousands may be leaving, and each look asks the kernel about all."""
    leaving = Leaving()
    leaving.departures._close = lambda _: None
    for at_ns in range(NOW + 2 * QUIET_NS, NOW + 2 * QUIET_NS + 3 * LOOK_NS, 1_000_000):
        leaving.departures.look(at_ns)
    assert leaving.bytes.asked == 3


def test_a_look_goes_on_behind_those_that_it_has_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands that take nothing are asked once a look, however many calls the look takes; who has gone, never."""
    monkeypatch.setattr(closing, "CLOSING_NS", -1)  # after each connection the time is up
    closed: list[ServedConnection[RequestFrame]] = []
    departures: LingeringClose[RequestFrame]

    def close(connection: ServedConnection[RequestFrame]) -> None:
        departures.forget(connection)
        closed.append(connection)

    departures = LingeringClose(10.0, GOODBYE, close)
    stuck = [Leaving(on_its_way=1) for _ in range(20)]
    due = [Leaving() for _ in range(3)]
    gone = Leaving()
    for leaving in (*stuck, gone, *due):
        departures.begin(leaving.connection, NOW)
    at_ns = NOW + 2 * QUIET_NS
    departures.look(at_ns)
    assert sum(leaving.bytes.asked for leaving in stuck) == 1
    departures.dismiss(gone.connection)
    while departures.next_look_ns <= at_ns:
        departures.look(at_ns)
    assert closed == [gone.connection, *(leaving.connection for leaving in due)]
    assert [leaving.bytes.asked for leaving in (*stuck, gone, *due)] == [1] * 20 + [0] + [1] * 3


def test_the_server_says_goodbye_where_it_is_the_one_to_end() -> None:
    """The server sends a goodbye where it ends a connection, so that the client knows that later requests were not
    begun. A client that has ended needs none."""
    assert Leaving(stopping=True).bytes.sent == GOODBYE
    assert Leaving().bytes.sent == b""
    leaving = Leaving()
    leaving.departures.dismiss(leaving.connection)
    assert leaving.bytes.sent == GOODBYE
    assert leaving.closed == [leaving.connection]
