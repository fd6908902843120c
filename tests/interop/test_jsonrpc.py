"""A client of Go's own ``net/rpc/jsonrpc`` works against the server, told nothing but its address."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.measure.programs import Program

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
"""The first run on a machine compiles Go's own library."""

CLIENT = Path(__file__).resolve().parent / "go_jsonrpc"


def test_gos_client_trades_and_looks_up(go: Callable[..., str]) -> None:
    """Its replies, twenty requests at a time on one connection, and the faults as errors with their code."""
    command = [sys.executable, "-m", "stock_service", "serve", "--transport", "jsonrpc", "--port", "0"]
    command += ["--store", "memory"]
    with Program(command) as server:
        host, port = server.ready()
        lines = go(CLIENT, "run", ".", f"{host}:{port}").splitlines()
    assert lines == [
        "1 7 1",
        "1 4250 7 1",
        "UNIMPLEMENTED: no method 'StockService.None'",
        "INVALID_ARGUMENT: LookupRequest has no field 'quantity'",
    ]
