"""Clients on other implementations of gRPC, against grpcio's server and our own: every method, and faults.

Each client looks MenhirCo up, buys 12 shares with the request_id "once", sends this trade again, and then a trade of 13
with the same id. It sets the price to 9999 cents, looks it up, looks up an unknown stock, and calls an unknown method.
It prints a line for each: ``lookup STATUS PRICE VOLUME SEQUENCE``, ``trade STATUS VOLUME SEQUENCE``, ``update STATUS
SEQUENCE`` or ``fault CODE``. The client on grpc-go is in ``test_interop.py``. A client that is not built is skipped. No
test here uses the network.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from experiments.peers import missing
from tests.interop.conftest import HERE, ROOT, TOOLS, absent, run

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

EXPECTED = [
    "lookup 1 10120 0 0",
    "trade 1 12 1",
    "trade 1 12 1",
    "fault 3",
    "update 1 2",
    "lookup 1 9999 12 2",
    "lookup 3 0 0 0",
    "fault 12",
]


def _absent(what: str, remedy: str, lacks: list[str]) -> NoReturn:
    """Skips the test where this machine lacks a tool for the client; ends it as ``absent`` does where all tools are
    there."""
    if lacks:
        pytest.skip(f"{what} is absent: {lacks[0]}; then run {remedy}")
    absent(what, remedy)


def test_node(server: str) -> None:
    """@grpc/grpc-js, in Node."""
    node, modules = shutil.which("node"), TOOLS.parent / "node" / "node_modules"
    if node is None or not modules.exists():
        _absent("the client in Node", "make node-client", [] if shutil.which("npm") else ["npm is missing"])
    lines = run(node, str(HERE / "node_client" / "main.js"), str(modules), str(ROOT / "protos"), server)
    assert lines.splitlines() == EXPECTED


def test_tonic(server: str) -> None:
    """tonic, in Rust."""
    if not (TOOLS / "tonic-client").exists():
        _absent("the client on tonic", "make tonic-client", missing("rust-stock"))
    assert run(str(TOOLS / "tonic-client"), server).splitlines() == EXPECTED


def test_cpp(server: str, build_cpp: Callable[[str], Path]) -> None:
    """gRPC's C++."""
    assert run(str(build_cpp("client")), server).splitlines() == EXPECTED


def test_h2load(server: str, tmp_path: Path) -> None:
    """nghttp2's load client: 2,000 calls on four connections, 16 streams each, are all answered with HTTP's 200."""
    h2load = shutil.which("h2load")
    if h2load is None:
        absent("h2load", "apt-get install nghttp2-client")
    lookup = tmp_path / "lookup"
    lookup.write_bytes(b"\0\0\0\0\x08\x0a\x06FishCo")  # as gRPC frames it
    headers = [f"-H{header}" for header in ("content-type: application/grpc", "te: trailers")]
    url = f"http://{server}/stock_service.v1.StockService/Lookup"
    said = run(h2load, "-n2000", "-c4", "-m16", f"-d{lookup}", *headers, url)
    assert "2000 succeeded, 0 failed" in said, said
