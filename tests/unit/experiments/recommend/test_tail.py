"""The simulated percentiles, compared with the exact distribution of M/M/c, and refusals. Tolerance: 10 %, with 200
requests over the p99."""

import math

import pytest

from experiments.design.demands import Demands
from experiments.recommend.tail import tail
from experiments.selfcheck.theory import Mmc
from stock_service.rpc.errors import UsageError

MS = 0.001
NEAR = 0.10


@pytest.mark.slow
@pytest.mark.parametrize("utilisation", [0.5, 0.7])
@pytest.mark.parametrize("quantile", [0.5, 0.99])
def test_workers_that_only_wait_are_m_m_c(utilisation: float, quantile: float) -> None:
    """With exponential times and only workers to share, the tail is Erlang's."""
    known = Mmc(4, utilisation, 2 * MS)
    demands = Demands(gil_s=0, free_s=0, wait_s=2 * MS, overhead_s=0, wait_variation=1)
    predicted_s = tail(demands, 4, known.rate_hz, quantile)
    assert predicted_s == pytest.approx(known.quantile_s(quantile), rel=NEAR)


@pytest.mark.slow
def test_the_same_question_has_the_same_answer() -> None:
    """The seed is fixed: equal questions have equal answers, also without the cache."""
    demands = Demands(gil_s=1 * MS, free_s=0, wait_s=2 * MS, overhead_s=1 * MS)
    assert tail(demands, 4, 600) == tail.__wrapped__(demands, 4, 600)


def test_beyond_capacity_there_is_no_tail() -> None:
    """A rate that the server cannot keep up with has an endless queue."""
    assert math.isinf(tail(Demands(1 * MS, 0, 0, 0), 8, 1001))


def test_impossible_questions_are_refused() -> None:
    """A rate is over 0 and a quantile between 0 and 1."""
    for rate_hz, quantile in ((0.0, 0.99), (10.0, 1.0), (10.0, 0.0)):
        with pytest.raises(UsageError):
            tail(Demands(1 * MS, 0, 0, 0), 8, rate_hz, quantile)
