"""Final states of keys: missing keys, and a broken connection."""

import pytest

from experiments.kinds.stress import FinalSeen, FinalState
from experiments.measure.stress import final_seen
from stock_service.rpc.errors import Fault, NotFound, Unavailable

KEYS = FinalState("known", "GET /entities/{id}", 5, 3, '{"id":{id}}')


class Store:
    """A connection to a server whose keys are right. A read of key 6 raises ``fault``."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault

    def call(self, path: str, _: bytes, __: float) -> bytes:
        """The entity of the path."""
        if path == "GET /entities/6":
            raise self._fault
        return b'{"id": %d}' % int(path.rpartition("/")[2])

    def close(self) -> None:
        """Does nothing."""


def test_a_missing_key_is_wrong_and_a_dead_connection_is_no_wrong_key() -> None:
    """A missing key is a wrong key. A broken connection is a fault, and not a wrong key."""
    assert final_seen(KEYS, Store(NotFound("no such key"))) == FinalSeen(2, 1)
    with pytest.raises(Unavailable):
        final_seen(KEYS, Store(Unavailable("closed")))
