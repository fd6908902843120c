"""Replicas behind balancers: a single restart; ``balancers.py`` tries many."""

import pytest

from stock_service.trading.catalog_file import DEFAULT_STOCKS
from tests.postgres import Postgres
from tests.reliability.balancers import BALANCERS, begun, lacking
from tests.reliability.rows import Row

pytestmark = pytest.mark.slow

CALLS, RESTARTS = 100, 1


@pytest.fixture(scope="module")
def rows(_postgres: Postgres, pytestconfig: pytest.Config) -> list[Row]:
    """The rows of all installed balancers, from one trial."""
    with begun(_postgres.store(DEFAULT_STOCKS), pytestconfig.option.seed) as trying:
        trying.roll(CALLS, RESTARTS)
        return trying.rows(CALLS)


@pytest.mark.parametrize("name", BALANCERS)
def test_a_restart_behind_a_balancer_fails_no_call(name: str, rows: list[Row]) -> None:
    """No client with the retry policy sees a failure."""
    if lacking(name):
        pytest.skip(lacking(name))
    (own,) = [row for row in rows if row.promise.startswith(name)]
    assert own.passed, own


def test_no_trade_behind_balancers_is_done_twice(rows: list[Row]) -> None:
    """No trade behind a balancer is done twice, or done without a reply."""
    assert rows[-1].passed, rows[-1]
