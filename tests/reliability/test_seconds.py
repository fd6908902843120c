"""Some seconds of the promises that programs try for minutes. No bar here asks how late something was.

Left to the command, since they cannot be this short: ``overload``, ``real-clients``, ``fair`` and ``replicas``. Nor are
those here that have tests of their own, beside this one or as ``closed`` in ``test_access.py`` and ``stops`` in
``test_stopping.py``.
"""

import random
from collections.abc import Callable

import pytest

from tests.reliability import (
    frames_fuzz,
    held,
    honest,
    hostile_http2,
    hostile_sockets,
    kills,
    sick_disk,
    steady,
)
from tests.reliability.http2_attacker import ATTACKS as HTTP2_ATTACKS
from tests.reliability.rows import Row
from tests.reliability.socket_attacker import ATTACKS

ATTACK_S = 0.2
LOAD_S = 0.5


def some_attacks(rng: random.Random) -> list[Row]:
    """One that is drawn, and the want of files."""
    names = (rng.choice(list(ATTACKS)), hostile_sockets.STARVED)
    return hostile_sockets.attacked(names, ATTACK_S, rng.randrange(2**32))


def some_http2_attacks(rng: random.Random) -> list[Row]:
    """One that is drawn."""
    return hostile_http2.attacked([rng.choice(list(HTTP2_ATTACKS))], ATTACK_S)


def some_load(_: random.Random) -> list[Row]:
    """Half a second of it, which says nothing of the memory."""
    return steady.soak(LOAD_S)


def seconds_of(check: Callable[[bool, int], list[Row]]) -> Callable[[random.Random], list[Row]]:
    """The seconds of a promise's own module."""
    return lambda rng: check(False, rng.randrange(2**32))


TRIED: dict[str, Callable[[random.Random], list[Row]]] = {
    "hostile-sockets": some_attacks,
    "hostile-http2": some_http2_attacks,
    "steady": some_load,
    "sick-disk": seconds_of(sick_disk.check),
    "exactly-once": seconds_of(kills.check),
    "fuzzed": seconds_of(frames_fuzz.check),
    "memory": seconds_of(held.check),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIED)
def test_some_of_a_promise_is_kept(name: str, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row of it, whatever the machine does beside; how late an answer came is not asked."""
    for module in (honest, hostile_http2):
        monkeypatch.setattr(module, "P99_S", float("inf"))
    monkeypatch.setattr(kills, "SOME", 1)
    rows = TRIED[name](rng)
    assert rows
    assert [str(row) for row in rows if not row.passed] == []
