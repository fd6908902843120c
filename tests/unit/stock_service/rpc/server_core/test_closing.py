"""Connections that end: lingering ones, the one that is closed for a new one, and one that holds too many bytes.

The clock is a number."""

import select
import socket
from collections.abc import Iterator

import pytest

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.server_core import closing
from stock_service.rpc.server_core.closing import LOOK_S, QUIET_S, IdleEviction, LingeringClose
from stock_service.rpc.server_core.connection import PlainStream, ServedConnection
from stock_service.rpc.server_core.listening import Listening
from stock_service.rpc.server_core.options import ReadOptions, ServeOptions
from stock_service.rpc.server_core.protocol import Methods
from stock_service.rpc.transports.sockets.frames import Frames
from stock_service.rpc.wire.framing import RequestFrame, encode_request, reply_decoder, request_decoder
from stock_service.rpc.wire.served_stream import BROKEN, ServedStream
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


S = 1_000_000_000
Connections = list[ServedConnection[RequestFrame]]


@pytest.fixture
def connections() -> Iterator[Connections]:
    """Four that connected at 1, 2, 3 and 4 s."""
    pairs = [socket.socketpair() for _ in range(4)]
    yield [
        ServedConnection(
            PlainStream(ours, ("", 0)), ServedStream(request_decoder(), lambda _: b"", 64, (number + 1) * S)
        )
        for number, (ours, _) in enumerate(pairs)
    ]
    for pair in pairs:
        for each in pair:
            each.close()


def test_the_longest_idle_yields_first(connections: Connections) -> None:
    """The longest idle connection is closed first, and then the next, in any order of their coming."""
    yielding: IdleEviction[RequestFrame] = IdleEviction()
    left = connections[::-1]
    for expected in connections[:3]:
        yields = yielding.longest_idle(left, 4 * S + 10_000_000)
        assert yields is expected
        yields.stream.close()
        left.remove(yields)


def test_who_has_just_been_there_yields_to_nobody(connections: Connections) -> None:
    """A connection is closed only after a second of silence. A look without such a connection is not repeated at
    once."""
    yielding: IdleEviction[RequestFrame] = IdleEviction()
    assert yielding.longest_idle(connections, S + S // 2) is None
    assert yielding.longest_idle(connections, 2 * S - 1) is None
    assert yielding.longest_idle(connections, 2 * S) is None
    assert yielding.longest_idle(connections, 2 * S + S // 5) is connections[0]


def test_who_is_served_yields_to_nobody(connections: Connections) -> None:
    """A connection with a request under way, or with one that came since the look, is not closed."""
    yielding: IdleEviction[RequestFrame] = IdleEviction()
    frame = encode_request(1, 0, b"/a.B/C", b"")
    assert connections[0].stream.take(frame, 2 * S, 2 * S) is not None
    assert yielding.longest_idle(connections, 10 * S) is connections[1]
    assert connections[2].stream.take(frame, 10 * S, 10 * S) is not None
    connections[2].stream.replied(False)
    assert yielding.longest_idle(connections[2:], 10 * S) is connections[3]


def test_who_holds_too_many_bytes_is_told_once() -> None:
    """Though the connection is looked at again, when the first of two requests that were begun has ended."""
    ours, theirs = socket.socketpair()
    options = ServeOptions(frame_bytes_max=100)
    listening = Listening(options, select.epoll)
    connection = ServedConnection(PlainStream(ours, ("", 0)), ServedStream(request_decoder(), lambda _: b"", 64, S))
    connections: closing.Connections[RequestFrame] = closing.Connections(
        listening, Frames(Methods({}, {}), 100), options, ReadOptions(buffered_bytes_max=0), lambda _: None
    )
    connections.add(connection)
    for call in (1, 2):
        assert connection.take(encode_request(call, 0, b"/a.B/C", b""), S, S) is not None
    connection.take(encode_request(3, 0, b"/a.B/C", bytes(100_000))[:-1], S, S)
    connections.buffered.note(connection)
    assert connection.stream.state is BROKEN
    connection.reply(b"")
    connections.buffered.note(connection)
    assert [reply.code for reply in reply_decoder().feed(theirs.recv(4096))] == [FaultCode.INTERNAL]
    connections.close(connection)
    listening.end()
    theirs.close()
