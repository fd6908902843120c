"""Two seconds of ``histories.py``. A command tries histories for minutes."""

import random

import pytest

from tests.reliability.histories import catalogs, run


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["sockets", "grpc_static"])
def test_a_history_over_real_connections_is_linearizable(transport: str, rng: random.Random) -> None:
    """A history over real connections is linearizable for every catalog, with threads switched as often as possible. No
    reply is missing."""
    recorded = run(transport, rng.choice(list(catalogs())), 0.3, rng.randrange(2**32), often=True)
    assert recorded.verdict.finding == "linearizable", (recorded.kind, recorded.verdict)
    assert recorded.verdict.unknown == 0
