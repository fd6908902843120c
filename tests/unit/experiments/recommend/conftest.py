"""A tenth of the simulated requests: what is asked here is which advice follows, not its third digit."""

import sys

import pytest

from experiments.recommend import advice


@pytest.fixture
def short_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of advices; those of the model have all requests."""
    monkeypatch.setattr(sys.modules["experiments.recommend.tail"], "REQUESTS", 2_000)  # its name is the function's
    advice._tail_s.cache_clear()
