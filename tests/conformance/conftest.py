"""What tests of servicers are run on."""

from collections.abc import Iterator

import pytest

from tests.conformance.servicers import SERVERS, Make


@pytest.fixture(params=SERVERS)
def make(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[Make]:
    """What makes a server of servicers: grpcio's and ours."""
    yield SERVERS[request.param]
    caplog.get_records("call").clear()  # errors in there keep grpcio's server, and so its threads
