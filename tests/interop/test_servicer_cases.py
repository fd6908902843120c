"""The interoperability cases of grpc-go's own client, against a servicer on our gRPC server."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from stock_service.rpc.server import server
from stock_service.rpc.transports import Address
from tests.interop.cases import GO_CASES, go_case
from tests.interop.interop_servicer import interop_handler

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    """Where it is served."""
    with ThreadPoolExecutor(8) as pool:
        served = server(pool, (interop_handler(),))
        port = served.add_insecure_port("127.0.0.1:0")
        served.start()
        yield "127.0.0.1", port
        served.stop(None)


@pytest.mark.parametrize("case", [*GO_CASES, "client_streaming", "cancel_after_begin", "rpc_soak", "channel_soak"])
def test_case(case: str, address: Address, tool: Callable[[str], str]) -> None:
    """It passes."""
    assert not go_case(tool("grpc-go-interop"), case, address)
