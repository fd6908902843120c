"""A moment of ``replica_rates.py``: what it counts, and nothing of its speed."""

import pytest

from tests.postgres import Postgres
from tests.reliability.replica_rates import ALONE, HOT, measured

SECONDS = 0.3


@pytest.mark.slow
def test_only_the_control_has_a_commit_a_trade(postgres: Postgres) -> None:
    """And the store has each trade of the replies once."""
    found, agreed = measured(postgres, (HOT, ALONE), SECONDS)
    assert agreed
    assert all(turn.trades_hz > 2 * turn.groups_hz for turn in found[HOT.name])
    assert sum(turn.trades_hz / turn.groups_hz for turn in found[ALONE.name]) / len(found[ALONE.name]) < 1.5
