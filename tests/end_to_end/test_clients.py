"""The clients as processes against the servers as processes, on both transports: output and exit codes."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import grpc
import pytest

from clients.remote_exchange import RemoteExchange
from stock_service.rpc.transports import load
from stock_service.v1.stock_pb2 import LookupRequest, LookupResponse
from tests.conformance.running import until
from tests.covering import half
from tests.end_to_end.process import ROOT, STARTS, WAIT_S, Running, Server, run, serve

pytestmark = pytest.mark.slow

TRANSPORTS = ("sockets", "grpc")
PROGRAMS = ("clients.trader", "clients.price_updater", "clients.load")


@dataclass(frozen=True, slots=True)
class Served:
    """A fresh server, and the options with which a client reaches it."""

    options: tuple[str, ...]
    exchange: RemoteExchange


@pytest.fixture(params=TRANSPORTS)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    """A server on each transport, stopped after the test."""
    transport = request.param
    with Server(serve(transport)) as server, closing(load(transport).connect(server.address, 10)) as asking:
        yield Served(("--transport", transport, "--address", server.at), RemoteExchange(asking, 10))
        assert server.stopped().code == 0


@pytest.mark.parametrize("served", ["sockets"], indirect=True)
def test_the_trader_is_a_program(served: Served) -> None:
    """``python -m clients.trader`` prints and exits as its ``main`` does. ``test_trader.py`` has every outcome."""
    ended = run("clients.trader", *served.options, "lookup", "None")
    assert (ended.code, ended.stdout, ended.stderr) == (1, "UNKNOWN_STOCK (-1) None\n", "")


@pytest.mark.parametrize(("program", "transport"), half(PROGRAMS, TRANSPORTS))
def test_no_server_is_one_line_and_exit_code_3(program: str, transport: str) -> None:
    """Without a server, one line names the address and gives advice. The exit code is 3."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    ended = run(program, "--transport", transport, "--address", f"127.0.0.1:{port}", "--timeout-s", "0.3")
    assert ended.code == 3
    lines = [line for line in ended.stderr.splitlines() if line.startswith(f"python -m {program}: ")]
    assert len(lines) == 1
    assert f"127.0.0.1:{port}" in lines[0]
    assert f"start a server: python -m stock_service serve --transport {transport}" in lines[0]


@pytest.mark.parametrize(
    ("served", "stops"), [("grpc", signal.SIGINT), ("sockets", signal.SIGTERM)], indirect=["served"]
)
def test_the_price_updater_updates_until_it_is_stopped(served: Served, stops: signal.Signals) -> None:
    """The updater prints the number of its updates: as many as the server has committed. The exit code is 0."""
    with Running("clients.price_updater", *served.options, "--interval-s", "0.001", "--stocks", "FishCo") as updater:
        assert updater.line() == f"updating 1 stock at {served.options[-1]} every 0.001 s on average"
        until(lambda: served.exchange.lookup("FishCo").sequence > 5, "the prices change")
        updater.signal(stops)
        ended = updater.ended()
    count = served.exchange.lookup("FishCo").sequence
    assert (ended.code, ended.stdout, ended.stderr) == (0, f"{count} updates: OK {count}\n", "")


@pytest.mark.parametrize("served", ["sockets"], indirect=True)
def test_the_price_updater_says_what_was_not_done(served: Served) -> None:
    """Outcomes other than OK are exit code 1. The updater ends after ``--duration-s``."""
    window = ("--interval-s", "0.01", "--duration-s", "0.2")
    ended = run("clients.price_updater", *served.options, *window, "--stocks", "FishCo", "None")
    assert ended.code == 1
    assert "UNKNOWN_STOCK" in ended.stdout.splitlines()[-1]
    assert ended.stderr.endswith("the server does not have these stocks; give its own with --stocks\n")


def documented(word: str) -> str:
    """The example of the service's page that has this word."""
    text = (ROOT / "stock_service" / "README.md").read_text(encoding="utf-8")
    (example,) = [code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if word in code]
    return str(example)


def test_the_client_of_the_documents_trades() -> None:
    """The documents' example with the generated stub trades, unchanged except for the address."""
    example = documented("StockServiceStub")
    with Server(STARTS["grpc_server"]) as server:
        assert "127.0.0.1:50051" in example
        program = example.replace("127.0.0.1:50051", server.at)
        for _ in range(2):  # a retry changes nothing
            done = subprocess.run(
                [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
            )
            assert done.returncode == 0, done.stderr
            assert done.stdout == "10\nstatus: STATUS_OK\nprice_cents: 1599\nvolume: 10\nsequence: 1\n\n"


def test_the_service_of_the_documents_serves() -> None:
    """The documents' example with a new service serves, unchanged."""
    with Running("-c", documented("shop.v1.Shop"), "--port", "0", program=(sys.executable,)) as server:
        _, at = server.line().split()
        with grpc.insecure_channel(at) as channel:
            ask = channel.unary_unary(
                "/shop.v1.Shop/Lookup", LookupRequest.SerializeToString, LookupResponse.FromString
            )
            assert ask(LookupRequest(name="FishCo"), timeout=WAIT_S).price_cents == 6


COMMANDS = {
    "trader": "clients.trader lookup FishCo",
    "load": "clients.load --duration-s 0.1 --warm-up-s 0 --no-floor",
    "price_updater": "clients.price_updater --duration-s 0.1",
}


@pytest.fixture(scope="module")
def sockets_at() -> Iterator[str]:
    """The address of a server on sockets with default options."""
    with Server(STARTS["socket_server"]) as server:
        yield server.at
        assert server.stopped().code == 0


@pytest.mark.parametrize(
    ("program", "how"), [("trader", "| true"), ("load", "| true"), ("price_updater", "<&- >&- 2>&-")]
)
def test_a_client_that_nobody_reads_ends_without_a_traceback(program: str, how: str, sockets_at: str) -> None:
    """With closed streams a client works as usual. If the reader of its output is gone, the client ends with 141, as in
    a shell. The load client ends with 1, since Rich prints its table."""
    unread = 1 if program == "load" else 141
    words = f"{COMMANDS[program]} --transport sockets --address {sockets_at}"
    line = f'"{sys.executable}" -m {words} {how}; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["/bin/bash", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (unread if how == "| true" else 0, False), done.stderr
