"""A twentieth of the simulated requests: these tests check the advice, and not its third digit."""

import sys

import pytest

from experiments.recommend import advice


@pytest.fixture
def short_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short simulations for tests of advice. Tests of the model have all requests."""
    monkeypatch.setattr(sys.modules["experiments.recommend.tail"], "REQUESTS", 1_000)  # its name is the function's
    advice._tail_s.cache_clear()
