"""A restart fails no request: one of the hundred that ``restarts.py`` tries."""

import random

import pytest

from tests.reliability.restarts import TRANSPORTS, restarted

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_restart_under_load_fails_no_request(transport: str, rng: random.Random) -> None:
    """Trades, lookups and new connections: no fault, and each commit told of once, over both servers."""
    told = restarted(transport, 1, rng)
    assert [client.failures for client in told] == [[]] * len(told)
    assert all(client.requests for client in told)
