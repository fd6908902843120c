"""Final states of keys: missing keys, and a broken connection."""

from collections.abc import Callable

import pytest

from experiments.kinds.stress import FinalState
from experiments.measure.stress import final_seen
from stock_service.rpc.errors import Fault, NotFound, Unavailable

KEYS = FinalState("known", "GET /entities/{id}", 5, 3, '{"id":{id}}')


class Store:
    """A connection to a server whose keys are right. ``fault`` gives the fault of a path."""

    def __init__(self, fault: Callable[[str], Fault | None]) -> None:
        self._fault = fault

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        """The entity of the path."""
        assert not payload
        assert timeout_s > 0
        fault = self._fault(path)
        if fault is not None:
            raise fault
        return b'{"id": %d}' % int(path.rpartition("/")[2])

    def close(self) -> None:
        """Does nothing."""


def test_a_key_that_is_not_there_is_wrong() -> None:
    """A missing key is a wrong key."""
    seen = final_seen(KEYS, Store(lambda path: NotFound("no such key") if path.endswith("6") else None))
    assert (seen.right, seen.wrong) == (2, 1)


def test_a_dead_connection_is_no_wrong_key() -> None:
    """A broken connection is a fault, and not a wrong key."""
    with pytest.raises(Unavailable):
        final_seen(KEYS, Store(lambda path: Unavailable("closed") if path.endswith("6") else None))
