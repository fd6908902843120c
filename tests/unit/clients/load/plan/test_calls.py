"""Calls of any gRPC service: the method's types, and the errors."""

import pickle
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.load.plan import calls
from clients.load.plan.calls import called
from stock_service.rpc.errors import DeadlineExceeded, InternalFault, Unavailable, UsageError
from stock_service.rpc.transports import Address
from stock_service.trading.model import Status
from stock_service.v1 import stock_pb2
from tests.unit.clients.load.plan.greeter_server import greeter, write_protos
from tests.unit.clients.load.run.fleet_bench import serving

HELLO = "tests.hello.Greeter/SayHello"
NAME = '{"name": {"first": "Ada", "last": "Lovelace"}, "times": 3}'


@pytest.fixture(scope="module")
def greets() -> Iterator[Address]:
    """grpcio's server, with reflection."""
    with greeter() as address:
        yield address


def test_a_method_is_learnt_from_our_own_server() -> None:
    """A request in JSON gets the bytes of the stock service's message."""
    with serving("grpc") as address:
        made = called(address, "stock_service.v1.StockService/Trade", '{"name": "FishCo", "quantity": 2}')
    assert (made.name, made.path) == ("Trade", "/stock_service.v1.StockService/Trade")
    assert made.payloads == (stock_pb2.TradeRequest(name="FishCo", quantity=2).SerializeToString(),)


def test_reflection_and_a_file_say_the_same(greets: Address, tmp_path: Path) -> None:
    """Reflection and a .proto file give equal requests, also with a type from an imported file."""
    asked = called(greets, HELLO, NAME)
    compiled = called(("127.0.0.1", 1), HELLO, NAME, write_protos(tmp_path))
    assert asked.payloads == compiled.payloads == (b"\n\x0f\n\x03Ada\x12\x08Lovelace\x10\x03",)
    assert asked.path == compiled.path == f"/{HELLO}"


def test_a_reply_is_checked_in_another_process(greets: Address) -> None:
    """The check pickles; it takes a greeting, and refuses what does not decode."""
    check = pickle.loads(pickle.dumps(called(greets, HELLO, "{}"))).check
    assert check(b"\n\x05Hello") == Status.OK
    with pytest.raises(InternalFault, match=r"3 bytes that are no tests\.hello\.HelloReply"):
        check(b"\n\x05H")


@pytest.mark.parametrize(
    ("call", "data", "said"),
    [
        ("tests.hello.Greeted/SayHello", "{}", "--call: got 'tests.hello.Greeted/SayHello', allowed: a method of "),
        (
            "tests.hello.Greeted/SayHello",
            "{}",
            "a method of tests.hello.Greeter (did you mean tests.hello.Greeter/SayH",
        ),
        ("tests.hello.Greeter/Greet", "{}", "allowed: a unary method; tests.hello.Greeter has SayHello"),
        ("tests.hello.Greeter/SayHellos", "{}", "a unary method, which this is not; tests.hello.Greeter has SayHello"),
        (HELLO, '{"nam": 1}', "--data: got '{\"nam\": 1}', allowed: JSON that is a tests.hello.HelloRequest: "),
        (HELLO, '{"times": "x"}', "allowed: JSON that is a tests.hello.HelloRequest: "),
        (HELLO, "{", "allowed: JSON that is a tests.hello.HelloRequest: "),
        (HELLO, "3", "allowed: JSON that is a tests.hello.HelloRequest: "),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(greets: Address, call: str, data: str, said: str) -> None:
    """A wrong method or request is one line, with the allowed values."""
    with pytest.raises(UsageError) as refused:
        called(greets, call, data)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_server_without_reflection_needs_the_file(tmp_path: Path) -> None:
    """A server without reflection needs the .proto file. An unknown service is then refused with the file's
    services."""
    with greeter(reflected=False) as address:
        with pytest.raises(
            UsageError, match=r"beside --proto FILE, as the server at 127\.0\.0\.1:\d+ has no reflection"
        ):
            called(address, HELLO, "{}")
        with pytest.raises(UsageError, match=r"a method of tests\.hello\.Greeter"):
            called(address, "Greeter/SayHello", "{}", write_protos(tmp_path))


def test_a_server_that_is_not_there_or_silent_is_a_fault() -> None:
    """An absent server is Unavailable, a silent server DeadlineExceeded, within the timeout."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(DeadlineExceeded):
            called(silent.getsockname(), HELLO, "{}", timeout_s=0.2)
    with pytest.raises(Unavailable):
        called(("127.0.0.1", 1), HELLO, "{}")


def test_a_file_that_does_not_compile_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that does not compile is refused with the compiler's error, without its warnings. Without the compiler the
    line says how to install it."""
    for text, column in (("syntax = 'proto3'; message {", 28), ("message {", 9)):
        (broken := tmp_path / "broken.proto").write_text(text)
        with pytest.raises(
            UsageError, match=rf"that protoc compiles: \S*broken\.proto:1:{column}: Expected message name"
        ):
            called(("127.0.0.1", 1), HELLO, "{}", broken)
    monkeypatch.setattr(calls, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="pip install grpcio-tools"):
        called(("127.0.0.1", 1), HELLO, "{}", broken)
