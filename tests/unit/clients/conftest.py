"""A socket server in this process, for tests that need a real one, and the server that forks clients."""

from collections.abc import Iterator

import pytest

from clients.load.run import fleet
from stock_service.rpc.option_types import shown_address
from tests.unit.clients.load.run.fleet_bench import serving


@pytest.fixture
def server() -> Iterator[str]:
    """The default stocks on sockets: its ``HOST:PORT``."""
    with serving("sockets") as address:
        yield shown_address(address)


@pytest.fixture(scope="module")
def warmed() -> None:
    """Starts the fork server first, so that no test is blamed for its descriptors."""
    fleet.warm()
