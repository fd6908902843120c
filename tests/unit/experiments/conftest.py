"""The machine is looked at once for all tests of a process: a look takes half a second."""

from functools import cache

import pytest

from experiments.results import environment

LOOK = cache(environment.look)


@pytest.fixture(autouse=True)
def _one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "look", LOOK)
