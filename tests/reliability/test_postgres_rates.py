"""A short run of ``replica_rates.py``: the counts, without the speeds."""

import pytest

from tests.postgres import Postgres
from tests.reliability.replica_rates import ALONE, HOT, measured

SECONDS, TURNS = 0.3, 3


@pytest.mark.slow
def test_only_the_control_has_a_commit_a_trade(postgres: Postgres) -> None:
    """Only the control has a commit for each trade. The store has each acknowledged trade once."""
    found, agreed = measured(postgres, (HOT, ALONE), SECONDS, TURNS)
    assert agreed
    assert all(turn.trades_hz > 2 * turn.groups_hz for turn in found[HOT.name])
    assert sum(turn.trades_hz / turn.groups_hz for turn in found[ALONE.name]) / len(found[ALONE.name]) < 1.5
