"""Points: the mean of an arm over blocks, with its interval."""

import pytest

from experiments.judge.points import points
from experiments.results.observed import ALL
from tests.unit.experiments.judge.synthetic_blocks import GRPC, SOCKETS, block, sweep
from tests.unit.experiments.known import known


def test_a_mean_lies_in_its_own_interval() -> None:
    """One block of ten is a hundred times as slow. The mean is the geometric mean, and lies between both ends."""
    of = sweep()
    means_us = [100.0] * 9 + [10_000.0]
    seen = [block(of, {SOCKETS: each, GRPC: 200.0}, number) for number, each in enumerate(means_us, 1)]
    mean = known(points(of, seen)[SOCKETS, ALL].mean_us)
    assert mean.low < mean.value < mean.high
    assert mean.value == pytest.approx(100 * 100**0.1, rel=0.01)
