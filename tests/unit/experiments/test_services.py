"""The studies' services, and the command that serves them."""

import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest
from google.protobuf.message import Message

from experiments.helloworld import greeter_pb2
from experiments.measure.programs import Program
from experiments.services import SERVICES
from experiments.services.echo import ECHO, echo
from experiments.services.entity import GET_ENTITY
from experiments.services.greeter import SAY_HELLO
from experiments.services.sort import MERGE_SORT
from experiments.v1 import echo_pb2, entity_pb2, sort_pb2
from stock_service.rpc import transports
from stock_service.rpc.errors import InvalidRequest
from stock_service.rpc.timeline import COLUMNS
from stock_service.rpc.transports import TRANSPORTS
from stock_service.trading.service import LOOKUP
from stock_service.v1.stock_pb2 import LookupRequest, LookupResponse
from tests.covering import each_once
from tests.raw_service import answered


def test_the_echo_decodes_what_it_gives_back() -> None:
    """Bytes that are not a message are refused, since the echo decodes its request."""
    with pytest.raises(InvalidRequest):
        answered(echo(), ECHO, b"\xff\xff")


EXAMPLES: dict[str, tuple[str, Message, Message]] = {
    "echo": (ECHO, echo_pb2.EchoRequest(text="you"), echo_pb2.EchoResponse(text="you")),
    "echo-twice": (ECHO, echo_pb2.EchoRequest(text="you"), echo_pb2.EchoResponse(text="you")),
    "entity": (
        GET_ENTITY,
        entity_pb2.GetEntityRequest(id=7),
        entity_pb2.GetEntityResponse(id=7, description="entity 7", value=3.5),
    ),
    "greeter": (SAY_HELLO, greeter_pb2.HelloRequest(name="you"), greeter_pb2.HelloReply(message="Hello you")),
    "sort": (MERGE_SORT, sort_pb2.MergeSortRequest(values=[2, -1]), sort_pb2.MergeSortResponse(values=[-1, 2])),
}
"""A request of each service, and its reply."""


@pytest.mark.slow
@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize(("name", "transport"), each_once(SERVICES, TRANSPORTS))
def test_every_service_is_served_and_every_transport_serves_one(name: str, transport: str) -> None:
    """Every service and every transport is served once. A transport only sees bytes, so not every pair is tested."""
    command = [sys.executable, "-m", "experiments.services", "serve", name, "--transport", transport, "--port", "0"]
    path, payload, expected = EXAMPLES[name]
    with Program(command) as server:
        connection = transports.load(transport).connect(server.ready(), 5.0)
        try:
            reply = connection.call(path, payload.SerializeToString(), 5.0)
        finally:
            connection.close()
    assert type(expected).FromString(reply) == expected


@pytest.mark.slow
@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize("transport", ["sockets", "grpc_aio"])
def test_the_stock_service_is_served_beside_them(transport: str, tmp_path: Path) -> None:
    """The stock service has its own options, the options of every server, and extra work, on threads and on a loop.
    Its locks are in the timeline. ``results/test_fingerprint.py`` serves stocks on every transport."""
    catalog, file = tmp_path / "catalog.toml", tmp_path / "timeline"
    catalog.write_text('[[stocks]]\nname = "Only"\nprice = 1.50\nvolume_limit = 5\n')
    command = [sys.executable, "-m", "experiments.services", "serve", "stock", "--transport", transport, "--port", "0"]
    command += ["--store", "memory", "--catalog", str(catalog), "--locking", "per-stock", "--cpu-ms", "20"]
    command += ["--timeline", str(file)]
    with Program(command) as server:
        connection = transports.load(transport).connect(server.ready(), 5.0)
        began_s = time.monotonic()
        reply = connection.call(LOOKUP, LookupRequest(name="Only").SerializeToString(), 5.0)
        passed_s = time.monotonic() - began_s
        connection.close()
    assert LookupResponse.FromString(reply).price_cents == 150
    assert passed_s >= 0.02
    with numpy.load(file) as timeline:
        assert (timeline["stamps"][:, COLUMNS.index("acquired")] > 0).all()


@pytest.mark.slow
def test_only_stocks_have_a_catalog() -> None:
    """Another service than the stock service refuses ``--catalog``."""
    command = ["-m", "experiments.services", "serve", "echo", "--transport", "sockets", "--catalog", "x"]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert (done.returncode, "options: got '--catalog x', allowed: those of" in done.stderr) == (2, True)
