"""A socket server in this process, for tests that need a real one, the server that forks clients, and runs that end
at once."""

from collections.abc import Callable, Iterator
from itertools import chain, repeat

import pytest

from clients.load import command
from clients.load.record.result import LoadResult
from clients.load.run import fleet
from stock_service.rpc.option_types import shown_address
from tests.unit.clients.load.run.fleet_bench import serving


@pytest.fixture
def server() -> Iterator[str]:
    """The default stocks on sockets: its ``HOST:PORT``."""
    with serving("sockets") as address:
        yield shown_address(address)


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replaces the load client's runs: each ends at once, with the next of the given results, or with the last one."""

    def of(*results: LoadResult) -> None:
        runs = chain(results, repeat(results[-1]))
        monkeypatch.setattr(command, "_knock", lambda _: None)
        monkeypatch.setattr(fleet, "run", lambda *_: next(runs))

    return of


@pytest.fixture(scope="module")
def warmed() -> None:
    """Starts the fork server first, so that no test is blamed for its descriptors."""
    fleet.warm()
