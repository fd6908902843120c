"""The interoperability cases of grpc-go's own client, against our own gRPC server."""

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.running import Running
from tests.interop.cases import GO_CASES, go_case, interop_server

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """A server of the service that they call."""
    with interop_server() as server:
        yield server


@pytest.mark.parametrize("case", GO_CASES)
def test_case(case: str, running: Running, tool: Callable[[str], str]) -> None:
    """Every case of the tool passes."""
    assert not go_case(tool("grpc-go-interop"), case, running.address)
