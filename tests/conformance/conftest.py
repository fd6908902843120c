"""Fixtures of every test here, and a place of gRPC core that is filled before descriptors are counted."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def forget_the_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Clears pytest's log: a handler's error in it keeps the call, and so a whole gRPC server, in memory."""
    yield
    caplog.get_records("call").clear()
