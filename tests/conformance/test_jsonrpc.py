"""JSON-RPC as others speak it: bare texts on a connection, in Go's form and in others."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from stock_service.rpc.errors import FAULTS, InternalFault, Overloaded, Unavailable
from stock_service.rpc.server_core.options import ReadOptions
from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.transports.jsonrpc.codec import JsonRpcCodec
from stock_service.trading.service import LOOKUP, stock_service
from stock_service.v1.stock_pb2 import LookupRequest
from tests.conformance.running import BLOCK, ECHO, WAIT_S, Kind, Limits, Probe, maker
from tests.conformance.transports import fresh_exchange

MAKE = maker(Kind("jsonrpc", "static-pool"))


class Raw:
    """A connection that sends what it likes, and reads replies, which are a line each."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, WAIT_S)
        self._lines = self.socket.makefile("rb")

    def send(self, text: str) -> None:
        """Sends all of it."""
        self.socket.sendall(text.encode())

    def reply(self) -> object:
        """The next reply; None once the server has closed."""
        line = self._lines.readline()
        return json.loads(line) if line else None

    def close(self) -> None:
        """Closes it."""
        self._lines.close()
        self.socket.close()


@contextmanager
def stocks() -> Iterator[Raw]:
    """A connection to a stock service."""
    with MAKE(stock_service(fresh_exchange())) as running, closing(Raw(running.address)) as client:
        yield client


def lookup(id: object, params: object = ({"name": "GameStart"},), method: str = "StockService.Lookup") -> str:  # noqa: A002
    """A request, as Go writes it."""
    return json.dumps({"method": method, "params": params, "id": id}) + "\n"


FOUND = {"status": 1, "price_cents": 1599, "volume": 0, "sequence": 0}


@pytest.mark.parametrize("method", ["StockService.Lookup", "stock_service.v1.StockService.Lookup"])
@pytest.mark.parametrize("id", [0, 1, 2**64 - 1, 'a"b'])
def test_a_request_is_answered_with_its_id(method: str, id: object) -> None:  # noqa: A002
    """By the service's short name, as Go has it, and by its full one; integers are numbers."""
    with stocks() as client:
        client.send(lookup(id, method=method))
        assert client.reply() == {"id": id, "result": FOUND, "error": None}


def test_requests_need_no_lines() -> None:
    """Several in one line, one in several, in pieces; a message may be its bytes in base64, and its reply is then."""
    with stocks() as client:
        client.send(lookup(1).rstrip() + lookup(2).replace(",", "\n,\n"))
        ids = {reply["id"] for reply in (client.reply(), client.reply()) if isinstance(reply, dict)}
        assert ids == {1, 2}
        client.send(lookup(3)[:20])
        client.send(lookup(3)[20:] + lookup(4, ["CglHYW1lU3RhcnQ="]))
        replies = [reply for reply in (client.reply(), client.reply()) if isinstance(reply, dict)]
        assert {reply["id"]: reply["result"] for reply in replies} == {3: FOUND, 4: "CAEQvww="}


@pytest.mark.parametrize(
    ("sent", "id", "said"),
    [
        (lookup(1, []), 1, "INVALID_ARGUMENT: params: got 0 values"),
        (lookup(1, [{}, {}]), 1, "INVALID_ARGUMENT: params: got 2 values"),
        (lookup(1, [{"nome": "x"}]), 1, "INVALID_ARGUMENT: LookupRequest has no field 'nome'"),
        (lookup(1, [{"name": 1}]), 1, "INVALID_ARGUMENT: name: got 1, allowed: a text"),
        (lookup(1, ["%"]), 1, "INVALID_ARGUMENT: params: got a text that is no base64"),
        (lookup(1, ["/w=="]), 1, "INVALID_ARGUMENT: 1 bytes that are no stock_service.v1.LookupRequest"),
        (lookup(1, method="StockService.None"), 1, "UNIMPLEMENTED: no method 'StockService.None'"),
        (lookup(None), None, "INVALID_ARGUMENT: a request needs an id"),
        (lookup(1.5), None, "INVALID_ARGUMENT: "),
        ("{a}", None, "INVALID_ARGUMENT: 3 bytes that are no request"),
        ('{"id": 1}', None, "INVALID_ARGUMENT: "),
    ],
)
def test_what_is_no_request_is_told_so(sent: str, id: object, said: str) -> None:  # noqa: A002
    """With its id where it has one; the next request is answered."""
    with stocks() as client:
        client.send(sent)
        reply = client.reply()
        assert isinstance(reply, dict)
        assert (reply["id"], reply["result"]) == (id, None)
        assert reply["error"].startswith(said)
        client.send(lookup(9))
        assert client.reply() == {"id": 9, "result": FOUND, "error": None}


@pytest.mark.parametrize(
    ("sent", "code"),
    [("[1]", "INVALID_ARGUMENT"), ('{"a": "' + "x" * 700, "INVALID_ARGUMENT"), ('{"a', "DEADLINE_EXCEEDED")],
)
def test_a_limit_ends_the_connection(sent: str, code: str) -> None:
    """What begins no object, one that is too long, and one that is not whole in time: said once."""
    limits = Limits(options=ServeOptions(frame_bytes_max=100, own=ReadOptions(read_s=0.05)))
    with MAKE(Probe().service, limits) as running, closing(Raw(running.address)) as client:
        client.send(sent)
        reply = client.reply()
        assert isinstance(reply, dict)
        assert (reply["id"], reply["error"].partition(":")[0]) == (None, code)
        assert client.reply() is None


def test_replies_come_as_they_are_ready() -> None:
    """A request that takes long holds up none behind it."""
    probe = Probe()
    with MAKE(probe.service) as running, closing(Raw(running.address)) as client, probe:
        for number, path in ((1, BLOCK), (2, ECHO)):
            client.send(lookup(number, ["YQ=="], path[1:].replace("/", ".")))
        assert client.reply() == {"id": 2, "result": "YQ==", "error": None}
        probe.released.set()
        assert client.reply() == {"id": 1, "result": "YQ==", "error": None}


def replied(text: bytes) -> object:
    """What the codec makes of a reply to its first call."""
    codec = JsonRpcCodec(1.0)
    codec.start(codec.prepare(LOOKUP, LookupRequest(name="A").SerializeToString()))
    ((call, reply),) = codec.feed(text)
    assert call == 1
    return reply


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b'{"id":1,"result":null,"error":"RESOURCE_EXHAUSTED: full"}', Overloaded),
        (b'{"id":1,"result":null,"error":"rpc: can\'t find method"}', InternalFault),
        (b'{"id":1,"result":null,"error":{"code":5}}', InternalFault),
        (b'{"id":1,"result":{"none":1},"error":null}', InternalFault),
        (b'{"id":1,"result":"%","error":null}', InternalFault),
        (b'{"id":1,"error":null}', InternalFault),
        (b'{"id":2,"result":{},"error":null}', InternalFault),
        (b'{"id":null,"result":null,"error":"UNAVAILABLE: gone"}', FAULTS[14]),
        (b"{}", Unavailable),
        (b"[", Unavailable),
    ],
)
def test_a_reply_that_is_no_answer_is_a_fault(text: bytes, fault: type[Exception]) -> None:
    """Of a server of ours, with its code; of another, or of none at all."""
    assert type(replied(text)) is fault
