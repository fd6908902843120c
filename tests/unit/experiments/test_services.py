"""The studies' own services, and their one command."""

import sys

import pytest

from experiments.helloworld import greeter_pb2
from experiments.server_process import Program
from experiments.services import SERVICES
from experiments.services.echo import ECHO, echo
from experiments.services.greeter import SAY_HELLO, greeter
from experiments.v1 import echo_pb2
from stock_service.rpc import transports
from stock_service.rpc.errors import InvalidRequest
from stock_service.rpc.transports import TRANSPORTS


def test_the_greeter_greets_under_its_original_name() -> None:
    """``/helloworld.Greeter/SayHello``, as in the gRPC examples."""
    assert SAY_HELLO == "/helloworld.Greeter/SayHello"
    reply = greeter().methods[SAY_HELLO](greeter_pb2.HelloRequest(name="you").SerializeToString())
    assert greeter_pb2.HelloReply.FromString(reply).message == "Hello you"


def test_the_echo_gives_back_what_it_decoded() -> None:
    """And refuses what does not decode: it is no copy of bytes."""
    answer = echo().methods[ECHO]
    reply = answer(echo_pb2.EchoRequest(text="GameStart").SerializeToString())
    assert echo_pb2.EchoResponse.FromString(reply).text == "GameStart"
    with pytest.raises(InvalidRequest):
        answer(b"\xff\xff")


@pytest.mark.slow
@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", SERVICES)
def test_every_service_runs_on_every_transport_unchanged(name: str, transport: str) -> None:
    """As a process that keeps the contract; the greeter's and the echo's messages have the same shape."""
    command = [sys.executable, "-m", "experiments.services", "serve", name, "--transport", transport, "--port", "0"]
    path, expected = {"greeter": (SAY_HELLO, "Hello you"), "echo": (ECHO, "you")}[name]
    with Program(command) as server:
        connection = transports.load(transport).connect(server.ready(), 5.0)
        try:
            reply = connection.call(path, greeter_pb2.HelloRequest(name="you").SerializeToString(), 5.0)
        finally:
            connection.close()
    assert greeter_pb2.HelloReply.FromString(reply).message == expected
