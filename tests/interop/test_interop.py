"""Programs of others work against the gRPC server, with only its address. They learn the service from the server's
reflection, without any file of this project."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.conftest import run, serving

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SERVICE = "stock_service.v1.StockService"
PROTO = "stock_service/v1/stock.proto"
"""The name by which the server's reflection calls the file that it was made from; nothing is read from here."""

CLIENT = Path(__file__).resolve().parent / "go"
CALLS = 200

Tool = Callable[[str], str]


def test_grpcurl_describes_and_calls(server: str, tool: Tool, tmp_path: Path) -> None:
    """grpcurl finds the services, and describes the stock service with its three methods. It trades and looks up, in
    JSON."""

    def grpcurl(*arguments: str) -> str:
        return run(tool("grpcurl"), "-plaintext", *arguments, cwd=tmp_path)

    assert {SERVICE, "grpc.health.v1.Health"} <= set(grpcurl(server, "list").split())
    described = grpcurl(server, "describe", SERVICE).splitlines()
    assert [line.split()[1] for line in described if "rpc" in line] == ["Lookup", "Trade", "Update"]
    trade, lookup = {"name": "FishCo", "quantity": 7, "side": "SIDE_SELL"}, {"name": "FishCo"}
    traded = json.loads(grpcurl("-d", json.dumps(trade), server, f"{SERVICE}/Trade"))
    assert traded == {"status": "STATUS_OK", "volume": "7", "sequence": "1"}
    found = json.loads(grpcurl("-d", json.dumps(lookup), server, f"{SERVICE}/Lookup"))
    assert found == {"status": "STATUS_OK", "price_cents": "4250", "volume": "7", "sequence": "1"}


def test_ghz_calls(server: str, tool: Tool, tmp_path: Path) -> None:
    """ghz sends its load, and every call is OK."""
    options = ["--insecure", "--call", f"{SERVICE}/Lookup", "-d", '{"name": "BoarCo"}', "-n", str(CALLS), "-c", "4"]
    report = json.loads(run(tool("ghz"), *options, "--format", "json", server, cwd=tmp_path))
    assert report["count"] == CALLS
    assert report["statusCodeDistribution"] == {"OK": CALLS}


def generate_go(protoset: Path, folder: Path, tool: Tool) -> None:
    """Writes the Go code of a set of descriptors, as the package interop/stockpb of the module in ``folder``."""
    options = ["--descriptor_set_in", str(protoset)]
    for plugin in ("go", "go-grpc"):
        options += [
            f"--plugin=protoc-gen-{plugin}={tool(f'protoc-gen-{plugin}')}",
            f"--{plugin}_out={folder}",
            f"--{plugin}_opt=module=interop",
            f"--{plugin}_opt=M{PROTO}=interop/stockpb",
        ]
    run(sys.executable, "-m", "grpc_tools.protoc", *options, PROTO, cwd=folder)


@pytest.fixture(scope="module")
def go_client(tool: Tool, go: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A client in Go, generated from the reflection of our own server, and built once."""
    module = Path(shutil.copytree(CLIENT, tmp_path_factory.mktemp("go") / "client"))
    protoset = module / "stock.protoset"
    with serving("grpc_static") as address:
        run(tool("grpcurl"), "-plaintext", "-protoset-out", str(protoset), address, "describe", SERVICE)
    generate_go(protoset, module, tool)
    go(module, "build", "-o", "program", ".")
    return str(module / "program")


@pytest.mark.timeout(300)  # the first run on a machine compiles gRPC for Go
def test_a_client_generated_in_go(server: str, go_client: str) -> None:
    """A client in Go, generated from a server's reflection, gets the right values."""
    assert run(go_client, server, "MenhirCo", "12").splitlines() == [
        "lookup STATUS_OK 10120 0 0",
        "trade STATUS_OK 12 1",
        "trade STATUS_OK 12 1",
        "fault InvalidArgument",
        "update STATUS_OK 2",
        "lookup STATUS_OK 9999 12 2",
        "lookup STATUS_UNKNOWN_STOCK 0 0 0",
        "fault Unimplemented",
    ]
