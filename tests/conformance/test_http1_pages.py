"""A web page of another site cannot trade over http1: the browser's request for it is refused before a method runs.

A browser lets a page send a request to any address without asking, with a body of three types. It names the page's site
in ``Origin``. A site whose name comes to mean this machine (DNS rebinding) is named in ``Host``. Requests here are raw.
"""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import product

import pytest

from experiments.services.entity import entity
from stock_service.rpc.server_core.options import PassedListener
from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.wire.http1 import response_decoder
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import LookupReply, Status
from stock_service.trading.service import TRADE, stock_service
from stock_service.v1.stock_pb2 import SIDE_BUY, TradeRequest
from tests.conformance.running import Kind, Limits, maker
from tests.conformance.test_http1 import Raw
from tests.conformance.transports import fresh_exchange

MAKE = maker(Kind("http1", "static-pool"))

BUY = TradeRequest(name="GameStart", quantity=1, side=SIDE_BUY).SerializeToString()
BUY_IN_JSON = b'{"name": "GameStart", "quantity": 1, "side": 1}'

LINE = b"POST %s HTTP/1.1" % TRADE.encode()
HOST = b"Host: 127.0.0.1:{port}"
TYPE = b"Content-Type: application/protobuf"

UNTOUCHED = LookupReply(Status.OK, 1599, 0, 0)
"""Stock that the request would buy."""

SIMPLE = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
"""The types that a page may send to another site unasked (Fetch, CORS-safelisted request-header)."""


class Client(Raw):
    """A connection that sends heads as it is told, in which ``{port}`` is the server's."""

    def __init__(self, port: int) -> None:
        self.port = port
        super().__init__(("127.0.0.1", port))

    def request(self, *lines: bytes, body: bytes = BUY) -> bytes:
        """Bytes of a request. Without a body it has no length."""
        length = (b"Content-Length: %d" % len(body),) if body else ()
        return b"\r\n".join([*lines, *length, b"", b""]).replace(b"{port}", b"%d" % self.port) + body

    def asks(self, *lines: bytes, body: bytes = BUY) -> tuple[int, str, str]:
        """The status of the response to a request, the fault that it names, and its body."""
        self.socket.sendall(self.request(*lines, body=body))
        status, fields, said = self.answer()
        return status, fields.get(b"fault", b"").decode(), said.decode(errors="replace")


@contextmanager
def stocks(options: ServeOptions | None = None) -> Iterator[tuple[Client, Exchange]]:
    """A client of a server, and the exchange that the server trades on."""
    exchange = fresh_exchange()
    with (
        MAKE(stock_service(exchange), Limits(options=options or ServeOptions())) as running,
        closing(Client(running.address[1])) as client,
    ):
        yield client, exchange


OTHER_TYPES = [
    ((), "none"),
    ((b"Content-Type:",), "none"),
    *(((b"Content-Type: " + kind.encode(),), kind) for kind in SIMPLE),
    ((b"Content-Type: TEXT/Plain;charset=UTF-8",), "text/plain"),
    ((b"Content-Type: text/plain; application/json",), "text/plain"),
    ((b"Content-Type: multipart/form-data; boundary=a",), "multipart/form-data"),
    ((b"Content-Type: application/json, text/plain",), "application/json, text/plain"),
    ((b"Content-Type: application/octet-stream",), "application/octet-stream"),
]
"""Fields of a POST, and the type that it is said to have."""


@pytest.mark.parametrize("body", [BUY, BUY_IN_JSON, b""], ids=["protobuf", "json", "empty"])
def test_a_message_of_another_type_trades_nothing(body: bytes) -> None:
    """A POST without a type, and one of a type that pages may send unasked, is 415 in one line; the next one trades."""
    allowed = "application/protobuf, application/x-protobuf, application/json"
    with stocks() as (client, exchange):
        for kind, shown in OTHER_TYPES:
            told = f"Content-Type: got {shown}, allowed: {allowed}; send the message as one of these, and name it"
            assert client.asks(LINE, HOST, *kind, body=body) == (415, "INVALID_ARGUMENT", told)
        assert exchange.lookup("GameStart") == UNTOUCHED
        assert client.asks(LINE, HOST, TYPE)[0] == 200
        assert exchange.lookup("GameStart").volume == 1


@pytest.mark.parametrize("kind", [None, *SIMPLE, "application/protobuf"])
def test_a_routes_body_is_json_by_its_type(kind: str | None) -> None:
    """A route's body without the type of JSON is 415, with a length or in chunks, and is not stored. A request without
    a body needs no type."""
    fields = (HOST,) if kind is None else (HOST, b"Content-Type: " + kind.encode())
    with MAKE(entity()) as running, closing(Client(running.address[1])) as client:
        status, _, said = client.asks(b"PUT /entities/-5 HTTP/1.1", *fields, body=b'{"value": 2}')
        assert (status, said.partition(",")[0]) == (415, f"Content-Type: got {kind or 'none'}")
        assert "allowed: application/json; " in said
        client.socket.sendall(
            client.request(b"PUT /entities/-5 HTTP/1.1", *fields, b"Transfer-Encoding: chunked", body=b"")
        )
        assert client.asks(b"2\r\n{}\r\n0", body=b"")[0] == 415
        assert client.asks(b"GET /entities/-5 HTTP/1.1", *fields, body=b"{}")[0] == 415
        assert client.asks(b"GET /entities/-5 HTTP/1.1", *fields, body=b"")[0] == 404


FOREIGN_ORIGINS = (
    "null",
    "",
    "https://evil.example",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "http://127.0.0.1:{port}0",
    "http://127.0.0.1:{port}.evil.example",
    "http://evil.example/127.0.0.1:{port}",
    "http://127.0.0.1:{port}@evil.example",
    "http://localhost:{port}",
    "ftp://127.0.0.1:{port}",
    "127.0.0.1:{port}",
    "http://127.0.0.1:{port}, https://evil.example",
)


def test_a_page_of_the_same_address_trades() -> None:
    """A page of the same address may trade, by any name of this machine, and with the port of a tunnel to the
    server."""
    hosts = ("127.0.0.1:{port}", "LocalHost:{port}", "[::1]:9")
    with stocks() as (client, exchange):
        for number, (host, scheme) in enumerate(product(hosts, ("http", "https")), 1):
            origin = f"Origin: {scheme}://{host.lower()}".encode()
            assert client.asks(LINE, b"Host: " + host.encode(), TYPE, origin)[0] == 200, host
            assert exchange.lookup("GameStart").volume == number


FOREIGN_HOSTS = (
    b"evil.example",
    b"evil.example:{port}",
    b"127.0.0.1.evil.example",
    b"localhost.evil.example:{port}",
    b"evil-localhost",
    b"192.168.1.1:{port}",
    b"0.0.0.0:{port}",
    b"[::2]:{port}",
    b"",
    b":{port}",
)


def test_this_machine_is_called_by_any_name_of_its_own() -> None:
    """Any name of this machine is accepted, with any port, as tunnels have. The first line's host counts, not the
    field's."""
    hosts = (b"localhost", b"LOCALHOST:1", b"127.255.1.2:{port}", b"[::1]", b"127.0.0.1:")
    with stocks() as (client, exchange):
        for host in hosts:
            assert client.asks(LINE, b"Host: " + host, TYPE)[0] == 200, host
            line = LINE.replace(b" /", b" http://%s/" % host, 1)
            assert client.asks(line, b"Host: evil.example", TYPE)[0] == 200, host
        assert exchange.lookup("GameStart").volume == 2 * len(hosts)


NO_ONE_HOST: tuple[tuple[bytes, ...], ...] = (
    (),
    (HOST, HOST),
    (HOST, b"host: evil.example"),
    (b"Host: a b",),
    (b"Host: a, 127.0.0.1:{port}",),
    (b"Host: a/b",),
    (b"Host: a@127.0.0.1",),
    (b"Host: [::1",),
    (b"Host: ::1",),
    (b"Host: a:b",),
)


NO_PAGE = "Origin: got '", "allowed: none, or the address that the request is for; call from a page of that address"
NO_NAME = (
    "Host: got ",
    "allowed on loopback: localhost, 127.0.0.0/8, [::1] or --host, with any port; call by one of these",
)

OWN = b"Origin: http://127.0.0.1:{port}"

REFUSED: list[tuple[int, tuple[str, str], list[tuple[bytes, ...]]]] = [
    (403, NO_PAGE, [(LINE, HOST, TYPE, b"Origin: " + each.encode()) for each in FOREIGN_ORIGINS]),
    (403, NO_PAGE, [(LINE, HOST, TYPE, OWN, OWN)]),
    (421, NO_NAME, [(LINE, b"Host: " + host, TYPE) for host in FOREIGN_HOSTS]),
    (421, NO_NAME, [(LINE, b"Host: " + host, TYPE, b"Origin: http://" + host) for host in FOREIGN_HOSTS]),
    (421, NO_NAME, [(LINE.replace(b" /", b" http://%s/" % host, 1), HOST, TYPE) for host in FOREIGN_HOSTS]),
    (400, ("", ""), [(LINE, *fields, TYPE) for fields in NO_ONE_HOST]),
    (400, ("", ""), [(LINE, HOST, b"Content-Type: application/json;a=b", b"Content-Type: text/plain")]),
]
"""Status of the response, its first and last words, and heads that get this response. A head has a foreign Origin or a
second Origin, or a foreign Host, also in the first line. Or a head has no Host, two Hosts or an invalid Host (RFC 9112,
3.2), or two types."""


@pytest.mark.parametrize(("status", "words", "heads"), REFUSED)
def test_what_another_site_may_have_sent_trades_nothing(
    status: int, words: tuple[str, str], heads: list[tuple[bytes, ...]]
) -> None:
    """The answer is the table's and the connection's end, though the connection's request before was answered."""
    with stocks() as (first, exchange):
        for head in heads:
            with closing(Client(first.port)) as client:
                assert client.asks(LINE, HOST, TYPE, body=b"")[0] == 200
                found, fault, said = client.asks(*head)
                assert (head, found) == (head, status)
                assert fault == ("INVALID_ARGUMENT" if status == 400 else "PERMISSION_DENIED")
                assert said.startswith(words[0])
                assert said.endswith(words[1])
                assert client.response()[0] == 0
        assert exchange.lookup("GameStart") == UNTOUCHED


def test_the_oldest_http_names_no_host() -> None:
    """A browser speaks HTTP/1.1. A program's request in HTTP/1.0 needs no Host; with a foreign Host it is refused."""
    old = LINE.replace(b"1.1", b"1.0")
    for fields, status in (((), 200), ((b"Host: evil.example",), 421), ((b"Origin: http://127.0.0.1:{port}",), 403)):
        with stocks() as (client, _):
            assert client.asks(old, TYPE, *fields)[0] == status


def test_of_a_pipeline_nothing_is_begun_behind_a_foreign_request() -> None:
    """The requests before it are answered. It is refused anew each time, though its head has been met."""
    with stocks() as (client, exchange):
        for volume in (1, 2):
            with closing(Client(client.port)) as other:
                good = other.request(LINE, HOST, TYPE)
                other.socket.sendall(good + other.request(LINE, HOST, TYPE, b"Origin: null") + good)
                said = b"".join(iter(lambda other=other: other.socket.recv(65536), b""))  # type: ignore[misc]
                assert [head.status for head, _ in response_decoder(1 << 20).feed(said)] == [200, 403]
            assert exchange.lookup("GameStart").volume == volume


def test_a_foreign_request_is_not_told_to_send_its_body() -> None:
    """A client that waits to be told so is refused by the head."""
    with stocks() as (client, exchange):
        asks = (HOST, TYPE, b"Origin: null", b"Expect: 100-continue", b"Content-Length: 5")
        assert client.asks(LINE, *asks, body=b"")[0] == 403
        assert exchange.lookup("GameStart") == UNTOUCHED


def test_a_server_for_others_has_any_name() -> None:
    """A server for other machines cannot know its names. It refuses a foreign Origin, too."""
    with stocks(ServeOptions(host="0.0.0.0")) as (client, exchange):
        named = b"Host: stocks.example"
        assert client.asks(LINE, named, TYPE, b"Origin: https://stocks.example")[0] == 200
        assert client.asks(LINE, named, TYPE, b"Origin: https://evil.example")[0] == 403
        assert exchange.lookup("GameStart").volume == 1


def test_a_name_that_was_asked_for_is_the_servers_own() -> None:
    """``--host`` may be a name of this machine that leads to loopback; no other name is taken for it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        options = ServeOptions(host="stocks.example", listener=PassedListener(listener))
        for host, status in ((b"Stocks.Example:{port}", 200), (b"localhost", 200), (b"stocks-example", 421)):
            with stocks(options) as (client, _):
                assert client.asks(LINE, b"Host: " + host, TYPE)[0] == status
