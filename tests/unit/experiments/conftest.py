"""Fixtures: one record of the machine for all tests of a process, since a record takes half a second; short
simulations."""

import sys
from collections.abc import Iterator
from functools import cache

import pytest

from experiments.recommend.tail import tail
from experiments.results import environment

LOOK = cache(environment.look)


@pytest.fixture(autouse=True)
def _one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "look", LOOK)


@pytest.fixture(scope="module")
def short_simulations() -> Iterator[None]:
    """A tenth of the simulated requests, for tests of advice and of predictions."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys.modules["experiments.recommend.tail"], "REQUESTS", 2_000)  # its name is the function's
        tail.cache_clear()
        yield
    tail.cache_clear()
