"""The lean gRPC client against servers of others: grpc-go, and gRPC's C++ with a generated service.

Both are built here, from ``go_server`` and ``cpp``: the Go one with the modules that ``make go-tools`` fetches, the C++
one with Debian's libgrpc++-dev, protobuf-compiler-grpc and g++. A server that cannot be built skips its tests.
"""

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from stock_service.rpc.codec_connection import CodecConnection
from stock_service.rpc.errors import FAULTS, DeadlineExceeded, FaultCode, InternalFault, UnknownMethod
from stock_service.rpc.wire.codec import Prepared
from stock_service.rpc.wire.grpc_codec import GrpcCodec
from stock_service.trading.service import LOOKUP
from stock_service.v1 import stock_pb2
from tests.end_to_end.process import Running
from tests.interop.conftest import HERE

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

WAIT_S = 10.0

FAIL, LARGE, ECHO, LATE = (f"/interop.Trial/{name}" for name in ("Fail", "Large", "Echo", "Late"))
DETAIL = "Kurs über 100 % – ß"


@pytest.fixture(scope="module", params=["go", "cpp"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server, built once for all tests."""
    if request.param == "cpp":
        return Path(request.getfixturevalue("build_cpp")("server"))
    server = tmp_path_factory.mktemp("go") / "server"
    request.getfixturevalue("go")(HERE / "go_server", "build", "-o", str(server), ".")
    return server


@pytest.fixture
def serve(program: Path) -> Iterator[Callable[..., str]]:
    """Starts the server with some arguments, and gives its address; stops it after the test."""
    with ExitStack() as started:

        def start(*arguments: str) -> str:
            server = started.enter_context(Running(*arguments, program=(str(program),)))
            started.callback(stop, server)
            word, address = server.line().split()
            assert word == "ready"
            return address

        yield start


def stop(server: Running) -> None:
    """Stops a server, which must end well."""
    server.signal(signal.SIGTERM)
    assert server.ended().code == 0


Serve = Callable[..., str]


def connected(address: str) -> CodecConnection:
    """A connection to an address in words, which tells the server to go on after the client has given a call up."""
    host, port = address.split(":")
    prepare = GrpcCodec(address).prepare

    def patient(path: str, payload: bytes, _timeout_s: float) -> Prepared:
        return prepare(path, payload, WAIT_S)

    return CodecConnection((host, int(port)), partial(GrpcCodec, address), prepare=patient).open(WAIT_S)


def test_lookup(serve: Serve) -> None:
    """A thousand Lookups on one connection, each with the price of its own stock."""
    with closing(connected(serve())) as connection:
        for number in range(1000):
            name = "x" * (number % 60 + 1)
            payload = stock_pb2.LookupRequest(name=name).SerializeToString()
            reply = stock_pb2.LookupResponse.FromString(connection.call(LOOKUP, payload, WAIT_S))
            assert (reply.status, reply.price_cents, reply.volume) == (stock_pb2.STATUS_OK, 100 * len(name), 7)


def test_faults(serve: Serve) -> None:
    """The client gets every status that has a fault here, and one without, with a text that is not ASCII."""
    with closing(connected(serve())) as connection:
        for code in FaultCode:
            with pytest.raises(FAULTS[code]) as caught:
                connection.call(FAIL, bytes([code]), WAIT_S)
            assert code is FaultCode.DEADLINE_EXCEEDED or caught.value.detail.endswith(DETAIL)
        with pytest.raises(InternalFault, match=f"ALREADY_EXISTS: {DETAIL}"):
            connection.call(FAIL, b"\x06", WAIT_S)
        with pytest.raises(UnknownMethod):
            connection.call("/no.Such/Method", b"", WAIT_S)
        assert connection.call(ECHO, b"after", WAIT_S) == b"after"


def test_large_messages(serve: Serve) -> None:
    """Replies of 300,000 bytes come one behind the other, and requests fill every window several times."""
    with closing(connected(serve())) as connection:
        for _ in range(20):
            assert connection.call(LARGE, b"", WAIT_S) == b"large " * 50_000
        for size in (16_378, 16_379, 16_380, 65_530, 65_531, 300_000, 1_000_000):
            payload = bytes(range(250)) * (size // 250 + 1)
            assert connection.call(ECHO, payload[:size], WAIT_S) == payload[:size]


def test_a_deadline(serve: Serve) -> None:
    """The late reply to a call that was given up is dropped, and the connection goes on."""
    with closing(connected(serve())) as connection:
        with pytest.raises(DeadlineExceeded):
            connection.call(LATE, b"late", 0.2)
        assert connection.call(ECHO, b"next", WAIT_S) == b"next"


def test_a_server_that_pings(serve: Serve) -> None:
    """A call that takes two seconds outlives a keepalive that gives up after one and a half: its PING is answered."""
    with closing(connected(serve("-keepalive"))) as connection:
        assert connection.call(LATE, b"late", WAIT_S) == b"late"
        assert connection.call(ECHO, b"next", WAIT_S) == b"next"


def test_many_calls_at_a_time_on_one_connection(serve: Serve) -> None:
    """Fifty calls are under way on the codec alone: each of two thousand calls, of all sizes, gets its own reply."""
    address = serve()
    host, port = address.split(":")
    codec = GrpcCodec(address)
    payloads = [b"%d" % number * (number % 300) for number in range(2000)]
    waiting: dict[int, bytes] = {}
    with socket.create_connection((host, int(port)), WAIT_S) as server:
        server.sendall(codec.hello)
        while payloads or waiting:
            while payloads and len(waiting) < 50 and codec.room():
                payload = payloads.pop()
                call, data = codec.start(codec.prepare(ECHO, payload, WAIT_S))
                waiting[call] = payload
                server.sendall(data)
            for call, reply in codec.feed(server.recv(65_536)):
                assert reply == waiting.pop(call)
            server.sendall(codec.take_outgoing())
