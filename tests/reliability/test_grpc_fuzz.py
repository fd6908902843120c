"""A second of the fuzzing of ``grpc_fuzz.py``. A command fuzzes for minutes."""

import random

import pytest

from tests.reliability.grpc_fuzz import fuzz


@pytest.mark.slow
def test_frames_at_random_break_nothing(rng: random.Random) -> None:
    """Twenty thousand random frames cause no error. Some requests are answered, and some sessions end with GOAWAY."""
    done = fuzz(20_000, rng.randrange(2**32))
    assert done.answered > 1000
    assert 0 < done.broken < done.sessions
