"""Some seconds of promises that programs try for minutes. No limit here is on lateness. Only the command tries the
other promises. Smaller tests show their facts: hostile peers in ``test_sockets_frames.py``, ``test_sockets_limits.py``
and ``test_grpc_session_faults.py``, kills in ``test_store.py``, sick disks in ``test_sqlite_file.py`` and
``test_sqlite_log.py``, replicas in ``test_postgres_losses.py``, stops in ``test_stopping.py``, and callers in
``test_access.py``.
"""

import random
from collections.abc import Callable

import pytest

from tests.reliability import frames_fuzz, held, honest, hostile_http2, steady
from tests.reliability.rows import Row

LOAD_S = 0.5
"""Duration of a load, too short for a judgement of the memory."""

TRIED: dict[str, Callable[[int], list[Row]]] = {
    "steady": lambda _seed: steady.soak(LOAD_S),
    "fuzzed": lambda seed: frames_fuzz.check(False, seed),
    "memory": lambda seed: held.check(False, seed),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIED)
def test_some_of_a_promise_is_kept(name: str, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row of the promise is kept, without a bound on lateness, so that a busy machine does not fail it."""
    for module in (honest, hostile_http2):
        monkeypatch.setattr(module, "P99_S", float("inf"))
    rows = TRIED[name](rng.randrange(2**32))
    assert rows
    assert [str(row) for row in rows if not row.passed] == []
