"""Tails of the study's predictions, computed from fewer requests."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _short_tails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the simulated requests."""
    monkeypatch.setattr(sys.modules["experiments.recommend.tail"], "REQUESTS", 2_000)  # its name is the function's
