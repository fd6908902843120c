"""Judges the usual sweep once before the tests, and loads what statistics and figures need: seconds, of no test."""

import pytest

from tests.unit.experiments.show.judgements import judged


@pytest.fixture(scope="session", autouse=True)
def _usual() -> None:
    judged()
