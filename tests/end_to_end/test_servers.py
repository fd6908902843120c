"""The servers as processes: ready line, services, output, and files."""

import resource
import shutil
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from experiments.services import __main__ as services
from stock_service import __main__ as serve_or_list
from stock_service import grpc_server
from stock_service.rpc.concurrency import EXECUTORS
from stock_service.rpc.transports import TRANSPORTS, load
from stock_service.rpc.wire import http2
from stock_service.trading.locking import LOCKINGS
from stock_service.trading.service import LOOKUP
from stock_service.v1 import stock_pb2
from tests.conformance.raw_socket import RawSocket, frame
from tests.covering import half
from tests.end_to_end.process import LOOKUP_ONE, STARTS, TRANSPORT_OF, Server, run

pytestmark = pytest.mark.slow

NO_TABLE = http2.HEADER_TABLE_SIZE.to_bytes(2) + bytes(4)
"""Bytes that our own gRPC server sends first. grpcio's server does not send them."""


@pytest.mark.parametrize(("name", "number"), half(STARTS, (signal.SIGTERM, signal.SIGINT)))
def test_a_server_serves_and_stops(name: str, number: signal.Signals) -> None:
    """The ready line is the only output, requests at its address are answered, and a signal ends the server with 0."""
    with Server(STARTS[name]) as server:
        assert server.ready == f"ready 127.0.0.1:{server.address[1]}"
        connection = load(TRANSPORT_OF[name]).connect(server.address, 10.0)
        try:
            reply = stock_pb2.LookupResponse.FromString(connection.call(LOOKUP, LOOKUP_ONE, 10.0))
            assert (reply.status, reply.price_cents) == (stock_pb2.STATUS_OK, 4250)
            ended = server.stopped(number)
        finally:
            connection.close()
        assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


def test_list_prints_what_can_be_chosen() -> None:
    """``list`` prints a line for each option that takes a name."""
    ended = run("stock_service", "list")
    assert ended.code == 0
    assert ended.stdout.splitlines() == [
        f"--transport  {' '.join(TRANSPORTS)}",
        f"--executor   {' '.join(EXECUTORS)}",
        "--store      memory sqlite:PATH postgres:DSN",
        f"--locking    {' '.join(LOCKINGS)}",
    ]


def code_of(main: Callable[[Sequence[str]], None], *words: str) -> object:
    """Exit code of a program that serves nothing."""
    try:
        main(words)
    except SystemExit as ended:
        return ended.code
    return 0


MAINS = {"stock_service": serve_or_list.main, "experiments.services": services.main}


@pytest.mark.parametrize("module", MAINS)
def test_help_without_a_transport_names_those_there_are(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a transport, help is shown with exit code 0 and has the options of every transport. Serving is
    refused."""
    assert code_of(MAINS[module], "serve", "--help") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    said = " ".join(printed.out.split())
    assert all(part in said for part in ("usage:", "--transport NAME what carries", f": {', '.join(TRANSPORTS)}"))
    assert all(option in said for option in ("--port", "--workers WORKERS", "--grace-s", "--processes", "--locking"))
    assert code_of(MAINS[module], "serve") == 2


@pytest.mark.parametrize(("server", "transport"), [("grpcio", "grpc"), ("static", "grpc_static")])
def test_one_option_picks_the_grpc_server(server: str, transport: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``--server`` picks the gRPC server: ``--help`` shows its port and store, and it serves."""
    start = ("stock_service.grpc_server", "--server", server)
    assert code_of(grpc_server.main, "--server", server, "--help") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"(default: {load(transport).DEFAULT_PORT})" in said
    assert f"stock_service-{transport}.sqlite3" in said
    assert ("--read-timeout-s" in said) == (server == "static")
    with Server(start, "--store", "memory") as running:
        with socket.create_connection(running.address, 10.0) as client:
            client.sendall(http2.PREFACE + http2.settings())
            assert (NO_TABLE in client.recv(1 << 16)) == (server == "static")
        assert running.stopped().code == 0


def test_a_file_that_cannot_be_written_any_more_is_said(tmp_path: Path) -> None:
    """If the folder of a file is gone when the server stops, the log has a line, and the exit code is 1."""
    (tmp_path / "folder").mkdir()
    with Server(STARTS["socket_server"], "--timeline", str(tmp_path / "folder" / "times")) as server:
        shutil.rmtree(tmp_path / "folder")
        ended = server.stopped()
    assert ended.code == 1
    assert "times could not be written: No such file or directory" in ended.error


@pytest.mark.parametrize("dispatch", ["request", "connection"])
def test_no_descriptor_left_is_survived(dispatch: str) -> None:
    """Without free descriptors connected clients are served. Waiting clients are served once one leaves."""
    with Server(STARTS["socket_server"], "--dispatch", dispatch, "--workers", "64") as server, ExitStack() as clients:
        first = clients.enter_context(RawSocket(server.address))
        assert answered(first)
        _, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        room = 5
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (descriptors(server.pid) + room, hard))
        leaving = [RawSocket(server.address) for _ in range(room)]
        assert all(answered(client) for client in leaving)
        waiting = [clients.enter_context(RawSocket(server.address)) for _ in range(20)]
        for client in waiting:
            client.send(frame(1, LOOKUP, LOOKUP_ONE))
        assert waiting[0].silent(0.2)
        assert answered(first)
        for client in leaving:
            client.socket.close()
        assert all(client.reply() for client in waiting[:room])
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (hard, hard))
        assert all(client.reply() for client in waiting[room:])
        ended = server.stopped()
        assert ended.code == 0
        assert "no room for another connection" in ended.stderr


def answered(client: RawSocket) -> bool:
    """True if a Lookup on this connection is answered."""
    client.send(frame(1, LOOKUP, LOOKUP_ONE))
    reply = client.reply()
    return reply is not None and reply.code == 0


def descriptors(pid: int) -> int:
    """The number one above the highest descriptor that a process has open."""
    return max(int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir()) + 1
