"""Checks of the instrument in their version of seconds: every request is found, and all is roughly right.

How right is for ``python -m experiments selfcheck`` to say, on a machine that does nothing else. The checks that
compare by a sweep or by load programs are not here. Their judgement is in ``test_ab.py``, ``test_interleaving.py`` and
``test_clients.py``; sweeps and programs run in ``test_bench.py`` and ``tests/interop/test_peers.py``.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from experiments.selfcheck import analytic, replay, stalls
from experiments.selfcheck.finding import Finding

pytestmark = [pytest.mark.slow, pytest.mark.alone]

CHECKS: dict[str, Callable[..., list[Finding]]] = {
    "replay": replay.check,
    "stalls": stalls.check,
    "analytic": analytic.check,
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", CHECKS)
def test_a_check_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that it finds fails, and nothing is skipped: it needs no program but our own.

    The queue of one check is shortened further, to what no other test does.
    """
    monkeypatch.setattr(analytic, "SECONDS", (replace(analytic.SECONDS[0], duration_s=0.35, warm_up_s=0.2),))
    findings = CHECKS[name](seconds=True)
    assert findings
    assert [finding for finding in findings if not finding.passed] == []
