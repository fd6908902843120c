"""Tails of the study's predictions, computed from fewer requests."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _short_tails(short_simulations: None) -> None:
    """Short simulations in all tests of the study."""
