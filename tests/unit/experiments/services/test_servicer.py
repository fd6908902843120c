"""A servicer of generated code on our server, and the page of the features of each gRPC server."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import grpc
import pytest

from experiments.helloworld.greeter_pb2 import HelloReply, HelloRequest
from experiments.measure import keeps
from experiments.measure.keeps import PAGE, SERVERS, TRIES, tried
from experiments.peers import PEERS, is_built, why_absent
from experiments.services.greeter import SAY_HELLO
from experiments.services.grpc_servers import Handlers
from experiments.services.servicer import Context, greeter_servicer, wrapped
from stock_service.rpc.call import Call
from stock_service.rpc.errors import NotFound
from tests.raw_service import answered

HERE = [name for name in SERVERS if name not in PEERS]
"""Servers that need no further package."""


_LOADED = """
import runpy, sys
from experiments.services import __main__ as serving, made
serving.main = lambda words: made(words[1])
runpy.run_module("experiments.services.servicer", run_name="__main__", alter_sys=True)
print("experiments.services.servicer" in sys.modules)
"""


def test_a_program_s_modules_are_loaded_once() -> None:
    """Each module of the program is loaded once, since start time and memory are measured."""
    told = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, timeout=30, check=True)
    assert told.stdout == "False\n"


def test_generated_code_adds_a_servicer_to_ours() -> None:
    """The method of a generated servicer has its own path and its message types."""
    service = greeter_servicer()
    reply = answered(service, SAY_HELLO, HelloRequest(name="you").SerializeToString())
    assert HelloReply.FromString(reply).message == "Hello you"
    assert (service.methods[SAY_HELLO].request_type, list(service.streams)) == (HelloRequest, ["/trial.Trial/Several"])


def test_a_method_asks_its_call() -> None:
    """A context has the metadata, peer and deadline of its call. ``abort`` raises the fault of its code."""
    context = Context(Call(b"", "127.0.0.1:1", 0, (("a", "b"),)))
    assert (context.invocation_metadata(), context.peer()) == ((("a", "b"),), "127.0.0.1:1")
    assert (context.time_remaining(), Context(Call(b"")).time_remaining()) == (0.0, None)

    def aborting(_: object, context: Context) -> None:
        context.abort(grpc.StatusCode.NOT_FOUND, "nobody")

    handlers: Handlers = {"Find": grpc.unary_unary_rpc_method_handler(aborting, HelloRequest.FromString)}
    service = wrapped("a.Finder", handlers, lambda _: (HelloRequest, HelloReply))
    with pytest.raises(NotFound, match="nobody"):
        service.methods["/a.Finder/Find"].answer_call()(Call(b""))


def told(server: str) -> dict[str, str]:
    """Cells of a server's row of the page."""
    (line,) = (each for each in PAGE.read_text().splitlines() if each.startswith(f"| `{server}` |"))
    return dict(zip(TRIES, line.strip("| ").split(" | ")[1:], strict=True))


@contextmanager
def one_server(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[None]:
    """Tests without options use one server, instead of a new server for each test."""
    start = keeps.started
    with start(name) as shared:
        monkeypatch.setattr(keeps, "started", lambda _, *own: start(name, *own) if own else nullcontext(shared))
        yield


@pytest.mark.slow
@pytest.mark.parametrize("server", HERE)
def test_the_page_says_what_a_server_keeps(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell of the page is right for the servers that are installed. The test that ends the server comes last. On
    a busy machine a deadline passes too early or too late, so that a "no" beside the page's "yes" is tried twice."""
    monkeypatch.setattr(keeps, "CALL_S", 3.0)  # a call by turns on a server without them lasts as long
    page = told(server)
    with one_server(monkeypatch, server):
        for what in sorted(TRIES, key="drain".__eq__):
            again = page[what] == "yes" and what != "drain"
            assert (tried(server, what) or (again and tried(server, what))) == (page[what] == "yes"), what
    assert page.keys() == TRIES.keys()


def test_the_page_has_every_server() -> None:
    """Every server has a row of the page."""
    assert all(told(server) for server in SERVERS)


BROKEN = """
import sys, time
import experiments.services.grpc_servers as servers
servers.waited = lambda request, _: time.sleep(float(request.name)) or servers.HelloReply(message="None")
servers.GRACE_S = 0
servers.several = lambda request, _: iter(())
servers.talked = lambda requests, _: iter([servers.HelloReply(message="early")])
servers.main()
"""
"""grpcio that gives up calls that have begun, reports no deadline, and has wrong streams."""


@pytest.mark.slow
def test_what_a_server_does_not_keep_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without any of the features has ``no`` in each cell. TLS is left out."""
    monkeypatch.setattr(keeps, "command", lambda _: [sys.executable, "-c", BROKEN, "grpcio"])
    monkeypatch.setattr(keeps, "AGE_S", 60.0)
    monkeypatch.setattr(keeps, "SEEN_S", 1.0)
    with one_server(monkeypatch, "grpcio"):
        assert [what for what in sorted(TRIES, key="drain".__eq__) if what != "TLS" and tried("grpcio", what)] == []


def test_a_package_that_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package is one line with the way to get the package."""
    monkeypatch.setattr("experiments.peers.Need.is_met", lambda _: False)
    assert not is_built("grpclib")
    assert why_absent("grpclib") == "the peer grpclib is not here: grpclib is missing: run make grpc-servers"
    assert is_built("python-greeter")
