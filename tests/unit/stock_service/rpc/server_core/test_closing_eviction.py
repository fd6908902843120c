"""The connection that is closed for a new one, by a clock of numbers; the goodbye to one that holds too many bytes."""

import select
import socket
from collections.abc import Iterator

import pytest

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.server_core import closing
from stock_service.rpc.server_core.closing import IdleEviction
from stock_service.rpc.server_core.connection import PlainStream, ServedConnection
from stock_service.rpc.server_core.listening import Listening
from stock_service.rpc.server_core.options import ReadOptions, ServeOptions
from stock_service.rpc.server_core.protocol import Methods
from stock_service.rpc.transports.sockets.frames import Frames
from stock_service.rpc.wire.framing import RequestFrame, encode_request, reply_decoder, request_decoder
from stock_service.rpc.wire.served_stream import BROKEN, ServedStream

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
