"""Requests whose client has gone, and how much of a connection is read at a time."""

import gzip

import pytest

from stock_service.rpc.server_core.connection import Serve, ServedConnection, task
from stock_service.rpc.server_core.listening import FEW_BYTES, FEWEST_BYTES
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.waiting import Wait, here
from stock_service.rpc.wire.framing import RequestFrame, encode_request, request_decoder
from stock_service.rpc.wire.grpc_calls import GrpcRequest
from stock_service.rpc.wire.grpc_session import GrpcSession
from stock_service.rpc.wire.served_stream import ServedStream
from tests.unit.stock_service.rpc.server_core.nothing import Nothing
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import HELLO, KINDS, PATH, call, data, head, message

NOW = 1_000_000_000


class Asked:
    """One connection with one request, its answers and its calls."""

    def __init__(self) -> None:
        stream = ServedStream(request_decoder(), lambda _: b"", 64, NOW)
        request = stream.take(encode_request(1, 0, b"/a.B/C", b""), NOW, NOW)
        assert request is not None
        self.request = request
        self.connection = ServedConnection(Nothing(), stream)
        self.answered: list[RequestFrame] = []
        self.looks: list[ServedConnection[RequestFrame]] = []
        self.ended = 0
        self._task: Serve[RequestFrame] = task(self._answer, self.looks.append, self._end)

    def _answer(self, request: RequestFrame, _arrived_ns: int, _peer: Address) -> bytes:
        self.answered.append(request)
        return b"reply"

    def _end(self) -> None:
        self.ended += 1

    def run(self) -> None:
        """Runs the request's task."""
        self._task(self.connection, self.request, NOW)


@pytest.mark.parametrize(
    ("gone", "waited_on", "begun"),
    [(False, None, True), (True, None, False), (True, "", False), (True, "the disk", True)],
)
def test_of_who_has_gone_nothing_is_begun(gone: bool, waited_on: str | None, begun: bool) -> None:
    """A client that is there is answered, and the reading thread need not look. The request of a client that has gone
    counts as answered, and the reading thread closes the connection. A request that was begun and has waited goes on
    though its client has gone. One that only might wait does not."""
    asked = Asked()
    if gone:
        asked.connection.cut()
    try:
        if waited_on is not None:
            here.wait = Wait(lambda _: None)
            here.wait.on = waited_on or None
        asked.run()
    finally:
        here.wait = None
    assert asked.answered == [asked.request] * begun
    assert asked.looks == [asked.connection] * gone
    assert asked.connection.stream.done == gone


def test_who_answers_learns_it_first() -> None:
    """A thread whose reply the kernel does not take ends the connection's reading at once: the next request is not
    begun before the reading thread looks."""
    asked = Asked()

    def send(_data: bytes | bytearray) -> int:
        raise BrokenPipeError

    asked.connection.bytes.send = send
    asked.run()
    asked.connection.stream.received += 1
    asked.run()
    assert asked.answered == [asked.request]
    assert not asked.connection.stream.in_flight


def test_what_is_much_to_unfold_is_read_in_the_smallest_pieces() -> None:
    """From the first message that unfolds much on, it is read in the smallest pieces, as long as the client's calls do
    not pay for them: one read may bring four."""
    most = 1 << 20
    session = GrpcSession(KINDS, most, 8, lambda: NOW)
    stream: ServedStream[GrpcRequest] = ServedStream(session, lambda _: b"", 64, NOW, session)
    connection = ServedConnection(Nothing(), stream, session)
    found = [connection.few]
    zipped = head(3, PATH, grpc_encoding="gzip") + data(3, message(gzip.compress(bytes(most)), 1))
    for number, piece in enumerate((HELLO + call(1), zipped[:-1], zipped[-1:], call(5)[:1])):
        request = connection.take(piece, NOW, NOW)
        if not number:
            (request,) = [each for each, _ in stream.release(1)] if request is None else [request]
            connection.answer(request, b"")
        found.append(connection.few)
    assert found == [FEW_BYTES, FEW_BYTES, 0, FEWEST_BYTES, FEWEST_BYTES]
