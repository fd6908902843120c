"""The cases of h2spec, for HTTP/2 and HPACK, and of grpc-go's interoperability client, against our own gRPC server."""

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.running import Running
from tests.interop.cases import GO_CASES, H2SPEC_CASES, WAIVED, go_case, h2spec, interop_server

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """A server of the service that they call."""
    with interop_server() as server:
        yield server


@pytest.mark.parametrize("case", GO_CASES)
def test_grpc_go(case: str, running: Running, tool: Callable[[str], str]) -> None:
    """Every case of the tool passes."""
    assert not go_case(tool("grpc-go-interop"), case, running.address)


def test_h2spec(tool: Callable[[str], str]) -> None:
    """Every case passes, apart from the waived ones."""
    tried, failed, said = h2spec(tool("h2spec"))
    assert failed == set(WAIVED), said
    assert tried == H2SPEC_CASES
