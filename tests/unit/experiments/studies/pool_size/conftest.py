"""Tails of the study's predictions, computed from fewer requests."""

import pytest


@pytest.fixture(autouse=True)
def _short_tails(short_simulations: None) -> None:
    """Short simulations in every test of the study."""
