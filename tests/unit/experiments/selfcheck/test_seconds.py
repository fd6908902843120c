"""The checks of the instrument in their version of seconds: every request is found, and all is roughly right.

How right is for ``python -m experiments selfcheck`` to say, on a machine that does nothing else.
"""

from collections.abc import Callable

import pytest

from experiments.selfcheck import analytic, pairs, replay, stalls
from experiments.selfcheck.finding import Finding

CHECKS: dict[str, Callable[..., list[Finding]]] = {
    "replay": replay.check,
    "analytic": analytic.check,
    "stalls": stalls.check,
}


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", CHECKS)
def test_a_check_passes(name: str) -> None:
    """Nothing that it finds fails, and nothing is skipped: it needs no program but our own."""
    findings = CHECKS[name](seconds=True)
    assert findings
    assert [finding for finding in findings if not finding.passed] == []


@pytest.mark.slow
def test_a_slowed_server_is_slower_in_a_block_whichever_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what it computes longer, 5 ms here; the other one is not held up by it."""
    monkeypatch.setattr(pairs, "SLICES", 2)
    for slowed, extra_us in ((1, (0.0, 5000.0)), (0, (5000.0, 0.0))):
        seen_us = pairs.measure(*extra_us)
        assert seen_us[slowed] > 5000 > seen_us[1 - slowed]
