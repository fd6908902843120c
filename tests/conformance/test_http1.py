"""HTTP/1.1 with other clients: Python's own, and raw bytes; answers of limits, and the order of replies."""

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from experiments.services.entity import PUT_ENTITY, entity
from experiments.services.workloads import request_types
from experiments.v1 import entity_pb2
from stock_service.rpc.errors import FAULTS, FaultCode, InvalidRequest, NotFound, Overloaded, Unavailable, UnknownMethod
from stock_service.rpc.server_core.options import ReadOptions
from stock_service.rpc.transports import Address, ServeOptions
from stock_service.rpc.transports.http1.codec import HttpCodec
from stock_service.trading.model import Status
from stock_service.trading.service import LOOKUP, stock_service
from stock_service.v1.stock_pb2 import LookupRequest, LookupResponse
from tests.conformance.running import BLOCK, ECHO, FAIL, WAIT_S, Kind, Limits, Probe, maker
from tests.conformance.transports import fresh_exchange

MAKE = maker(Kind("http1", "leader-followers"))

IN_PROTOBUF, IN_JSON = "application/protobuf", "application/json"


@contextmanager
def client(address: Address) -> Iterator[http.client.HTTPConnection]:
    """Python's client of a server, closed at the end."""
    with closing(http.client.HTTPConnection(*address, timeout=WAIT_S)) as connection:
        yield connection


def ask(
    connection: http.client.HTTPConnection, verb: str, path: str, body: bytes = b"", kind: str = IN_PROTOBUF
) -> tuple[int, bytes]:
    """A request's status and body."""
    connection.request(verb, path, body, {"Content-Type": kind})
    response = connection.getresponse()
    return response.status, response.read()


def test_pythons_client_calls_methods() -> None:
    """Python's client calls methods in protobuf and in JSON, over one kept connection."""
    with MAKE(stock_service(fresh_exchange())) as running, client(running.address) as connection:
        payload = LookupRequest(name="GameStart").SerializeToString()
        for kind in (IN_PROTOBUF, "application/x-protobuf; a=b"):
            status, body = ask(connection, "POST", LOOKUP, payload, kind)
            assert (status, LookupResponse.FromString(body).price_cents) == (200, 1599)
        kept = connection.sock
        status, body = ask(connection, "POST", LOOKUP, b'{"name": "GameStart"}', IN_JSON)
        assert (status, json.loads(body)) == (200, {"status": 1, "price_cents": 1599, "volume": 0, "sequence": 0})
        assert connection.sock is kept


def test_routes_are_served_in_json() -> None:
    """Variables come from the path; what an entity's service refuses has HTTP's own status."""
    with MAKE(entity()) as running, client(running.address) as connection:

        def answers(verb: str, path: str, content: object = None) -> tuple[int, object]:
            sent = b"" if content is None else json.dumps(content).encode()
            status, body = ask(connection, verb, path, sent, IN_JSON)
            return status, json.loads(body) if status == 200 else body

        assert answers("GET", "/entities/-5") == (404, b"no entity has the id -5")
        assert answers("PUT", "/entities/-5?x=1", {"description": "ß", "value": 2}) == (200, {"created": True})
        assert answers("PUT", "/entities/-5", {"id": -5, "description": "ß"}) == (200, {"created": False})
        assert answers("GET", "/entities/%2D5") == (200, {"id": -5, "description": "ß", "value": 0.0})
        for path, content in (("x", {}), ("1", {"id": 2}), ("1", {"no": 1}), ("1", []), ("1%FF", {}), ("1", "1")):
            assert answers("PUT", f"/entities/{path}", content)[0] == 400, (path, content)
        assert answers("GET", "/entities/")[0] == 404
        assert answers("GET", "/entities/1/2")[0] == 404
        payload = entity_pb2.PutEntityRequest(id=1).SerializeToString()
        assert ask(connection, "POST", PUT_ENTITY, payload)[0] == 200
        with pytest.raises(NotFound, match="no entity has the id 0"):
            running.connect().call("/experiments.v1.EntityService/GetEntity", b"", WAIT_S)


def test_our_client_asks_for_routes() -> None:
    """Our client calls routes in JSON and methods in protobuf on one connection. Other paths are unknown."""
    routed = [each for each in request_types(0) if not each.path.startswith("/")]
    assert {each.path.split(" ")[0] for each in routed} == {"GET", "PUT"}
    with MAKE(entity()) as running:
        connection = running.connect()
        for each in routed * 2:
            assert each.check(connection.call(each.path, each.payloads[0], WAIT_S)) == Status.OK
        assert connection.call(PUT_ENTITY, entity_pb2.PutEntityRequest(id=1).SerializeToString(), WAIT_S) == b""
        with pytest.raises(NotFound, match="no entity has the id -5"):
            connection.call("GET /entities/-5", b"", WAIT_S)
        for path in ("GET /entities /1", " /entities/1", "G-T /entities/1"):
            with pytest.raises(InvalidRequest):
                connection.call(path, b"", WAIT_S)


@pytest.mark.parametrize(
    ("verb", "path", "kind", "expected", "allow"),
    [
        ("GET", ECHO, "", 405, "POST"),
        ("HEAD", ECHO, "", 405, "POST"),
        ("OPTIONS", "*", "", 404, None),
        ("POST", "/", "", 404, None),
        ("HEAD", "/none", "", 404, None),
        ("POST", ECHO + "/", "", 404, None),
        ("POST", ECHO, "text/html", 415, None),
    ],
)
def test_what_is_no_method_is_refused(verb: str, path: str, kind: str, expected: int, allow: str | None) -> None:
    """A request without a method is refused, and the next request on the connection is answered."""
    with MAKE(Probe().service) as running, client(running.address) as connection:
        connection.request(verb, path, b"", {"Content-Type": kind} if kind else {})
        response = connection.getresponse()
        assert (response.status, response.getheader("Allow")) == (expected, allow)
        assert response.getheader("Date")
        response.read()
        assert ask(connection, "POST", ECHO, b"after") == (200, b"after")


def test_a_fault_has_its_status() -> None:
    """A fault has a status of HTTP, and its name in a field."""
    statuses = {FaultCode.DEADLINE_EXCEEDED: 504, FaultCode.UNAUTHENTICATED: 401, FaultCode.UNAVAILABLE: 503}
    with MAKE(Probe().service) as running, client(running.address) as connection:
        for code, status in statuses.items():
            connection.request("POST", FAIL, str(int(code)).encode(), {"Content-Type": IN_PROTOBUF})
            response = connection.getresponse()
            assert (response.status, response.getheader("Fault")) == (status, code.name)
            assert response.read() == f"planted {int(code)}".encode()


@pytest.mark.parametrize(
    ("status", "fault"), [(b"404", UnknownMethod), (b"502", Unavailable), (b"429", Overloaded), (b"418", FAULTS[13])]
)
def test_a_status_alone_is_a_fault(status: bytes, fault: type[Exception]) -> None:
    """A status alone is a fault, from a server of others."""
    codec = HttpCodec(("a", 1))
    codec.start(codec.prepare(ECHO, b"", WAIT_S))
    ((_, reply),) = codec.feed(b"HTTP/1.1 %s X\r\nContent-Length: 3\r\n\r\nwhy" % status)
    assert type(reply) is fault
    assert codec.room()


def test_metadata_is_sent_as_fields() -> None:
    """Behind the host, one line for each key."""
    codec = HttpCodec(("a", 1), "", (("x-tenant", "north shore"), ("x-trace", "7")))
    _, sent = codec.start(codec.prepare(ECHO, b"", WAIT_S))
    assert b"\r\nHost: a:1\r\nx-tenant: north shore\r\nx-trace: 7\r\n" in sent


HEAD = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/protobuf\r\nContent-Length: %d\r\n%s\r\n"


def post(payload: bytes, path: str = ECHO, extra: bytes = b"") -> bytes:
    """A request's bytes."""
    return HEAD % (path.encode(), len(payload), extra) + payload


class Raw:
    """A connection that sends any bytes."""

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection(address, WAIT_S)
        self._file = self.socket.makefile("rb")

    def answer(self) -> tuple[int, dict[bytes, bytes], bytes]:
        """The next response's status, fields by their lower-case names, and body; 0 once the server has closed."""
        fields: dict[bytes, bytes] = {}
        line = self._file.readline()
        if not line:
            return 0, fields, b""
        while (field := self._file.readline()) != b"\r\n":
            name, _, value = field.partition(b":")
            fields[name.lower()] = value.strip()
        return int(line.split()[1]), fields, self._file.read(int(fields.get(b"content-length", 0)))

    def response(self) -> tuple[int, bytes]:
        """The next response's status and body; 0 once the server has closed."""
        status, _, body = self.answer()
        return status, body

    def close(self) -> None:
        """Closes it."""
        self._file.close()
        self.socket.close()


@contextmanager
def raw(limits: Limits | None = None, probe: Probe | None = None) -> Iterator[Callable[[], Raw]]:
    """A server, and what connects to it."""
    opened: list[Raw] = []
    probe = probe or Probe()
    with MAKE(probe.service, limits or Limits()) as running, probe:

        def connect() -> Raw:
            opened.append(Raw(running.address))
            return opened[-1]

        try:
            yield connect
        finally:
            for each in opened:
                each.close()


def test_pipelined_requests_are_answered_in_order() -> None:
    """Though the first takes longest; a refusal waits for its turn, and is the last."""
    probe = Probe()
    with raw(probe=probe) as connect:
        one = connect()
        one.socket.sendall(post(b"1", BLOCK) + post(b"2") + post(b"3") + b"GET / HTTP/1.1\r\n\r\n" + post(b"4"))
        probe.entered()
        probe.released.set()
        assert [one.response() for _ in range(3)] == [(200, b"1"), (200, b"2"), (200, b"3")]
        assert one.response()[0] == 400
        assert one.response()[0] == 0


def test_the_last_request_is_answered_and_what_follows_is_not() -> None:
    """After ``Connection: close`` the server answers, says that it closes, and closes."""
    with raw() as connect:
        one = connect()
        one.socket.sendall(post(b"1") + post(b"2", extra=b"Connection: close\r\n") + post(b"3"))
        assert [one.response() for _ in range(3)] == [(200, b"1"), (200, b"2"), (0, b"")]


def test_a_client_that_asks_is_told_to_go_on() -> None:
    """``Expect: 100-continue``, also behind a request that is under way."""
    probe = Probe()
    with raw(probe=probe) as connect:
        one = connect()
        head = HEAD % (ECHO.encode(), 2, b"Expect: 100-continue\r\n")
        one.socket.sendall(head)
        assert one.response() == (100, b"")
        one.socket.sendall(b"ab")
        assert one.response() == (200, b"ab")
        one.socket.sendall(post(b"first", BLOCK) + head)
        probe.entered()
        probe.released.set()
        assert [one.response() for _ in range(2)] == [(200, b"first"), (100, b"")]
        one.socket.sendall(b"cd" + post(b"e"))
        assert [one.response() for _ in range(2)] == [(200, b"cd"), (200, b"e")]


def test_a_body_far_over_the_limit_is_read_to_its_end() -> None:
    """A body far over the limit is read to its end, so that the client gets the reply. A reset would destroy the
    reply."""
    with raw(Limits(options=ServeOptions(frame_bytes_max=100))) as connect:
        one = connect()
        one.socket.sendall(post(bytes(20_000_000)))
        assert one.response()[0] == 413


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (post(bytes(101)), 413),
        (b"GET /" + bytes(9000).replace(b"\0", b"a"), 431),
        (post(b"12")[:-1], 408),
        (post(b"12")[:5], 408),
        (b"\x16\x03\x01\x02\x00", 400),
    ],
)
def test_a_limit_has_its_status(sent: bytes, status: int) -> None:
    """A limit is answered with its status once, and the connection is closed. Other clients are served."""
    with raw(Limits(options=ServeOptions(frame_bytes_max=100, own=ReadOptions(read_timeout_s=0.05)))) as connect:
        one, other = connect(), connect()
        one.socket.sendall(sent)
        assert one.response()[0] == status
        assert one.response()[0] == 0
        other.socket.sendall(post(b"a"))
        assert other.response() == (200, b"a")


def test_a_connection_too_many_is_told_so() -> None:
    """429, and closed."""
    with raw(Limits(options=ServeOptions(connections_max=1))) as connect:
        first = connect()
        first.socket.sendall(post(b"a"))
        assert first.response() == (200, b"a")
        assert connect().response() == (429, b"1 connections are open, the limit")
