"""``--metrics``: the numbers that a server shows of itself, over HTTP."""

import socket
import sys

import pytest

from stock_service.rpc.transports import load
from stock_service.trading.service import LOOKUP
from stock_service.v1 import stock_pb2
from tests.conformance.running import until
from tests.end_to_end.process import STARTS, WAIT_S, Running, Server, metrics_pages, run

pytest.importorskip("prometheus_client")
pytestmark = pytest.mark.slow

OK = f'stock_service_requests_total{{method="{LOOKUP}",outcome="OK"}}'
BUSY = "stock_service_workers_busy"


def shown(server: Running) -> list[dict[str, float]]:
    """Every number that each process of a server shows, by its name and labels."""
    pages = [[line.rpartition(" ") for line in page.splitlines()] for page in metrics_pages(server)]
    return [{name: float(value) for name, _, value in lines if not name.startswith("#")} for lines in pages]


@pytest.mark.parametrize("start", ["serve_sockets", "serve_grpc"])
def test_a_server_shows_what_it_does(start: str) -> None:
    """Requests by method and outcome, connections and waits, but nothing that a client sent."""
    with Server(STARTS[start], "--metrics", "127.0.0.1:0") as server:
        (before,) = shown(server)
        connection = load("sockets" if "sockets" in start else "grpc").connect(server.address, WAIT_S)
        try:
            for name in ("GameStart", "GameStart", "secret-of-a-client"):
                connection.call(LOOKUP, stock_pb2.LookupRequest(name=name).SerializeToString(), WAIT_S)
            until(lambda: shown(server)[0][BUSY] == 0, "every thread is idle")  # grpcio's ends behind its answer
            (after,) = shown(server)
        finally:
            connection.close()
        assert server.stopped().code == 0
    assert (before[OK], after[OK]) == (0, 2)
    assert after[OK.replace("OK", "UNKNOWN_STOCK")] == 1
    assert (before["stock_service_connections"], after["stock_service_connections"]) == (0, 1)
    assert (after["stock_service_workers"], after[BUSY]) == (8, 0)
    assert after["stock_service_queue_wait_seconds_count"] == after["stock_service_lock_wait_seconds_count"] == 1
    assert after["stock_service_serving"] == 1
    assert "secret" not in str(after)


def test_each_process_shows_its_own() -> None:
    """Several processes have an endpoint each."""
    with Server(STARTS["serve_sockets"], "--processes", "2", "--metrics", "127.0.0.1:0") as server:
        assert len(set(server.said().splitlines())) == 2
        assert [each[OK] for each in shown(server)] == [0, 0]
        assert server.stopped().code == 0


def test_a_server_whose_metrics_have_no_port_ends() -> None:
    """A server whose metrics port is taken ends with exit code 2 and one line, although it listens already. No thread
    stays."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = run(*STARTS["grpc_server"], "--port", "0", "--metrics", address)
    allowed = "allowed: an address of this machine, with a port that is free"
    assert (ended.code, f"--metrics: got '{address}', {allowed}" in ended.error) == (2, True)


def test_a_server_without_metrics_does_not_load_the_library() -> None:
    """A server without metrics neither loads the library nor listens for readers."""
    with Server(STARTS["serve_sockets"], program=(sys.executable, "-X", "importtime", "-m")) as server:
        assert server.stopped().code == 0
        said = server.said()
    assert "stock_service.rpc.metrics" in said
    assert "prometheus_client" not in said
