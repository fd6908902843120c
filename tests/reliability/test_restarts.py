"""A restart fails no request: a single restart; ``restarts.py`` tries a hundred."""

import random

import pytest

from tests.reliability.restarts import TRANSPORTS, restarted

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_restart_under_load_fails_no_request(transport: str, rng: random.Random) -> None:
    """A restart fails no trade, Lookup or new connection. Each commit of both servers is told once."""
    told = restarted(transport, 1, rng)
    assert [client.failures for client in told] == [[]] * len(told)
    assert all(client.requests for client in told)
