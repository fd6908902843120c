"""The checks of the instrument in their version of seconds: every request is found, and the results are roughly right.
``python -m experiments selfcheck`` judges them closely, on a machine that does nothing else."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from experiments.selfcheck import ab, analytic, clients, interleaving, replay, stalls
from experiments.selfcheck.finding import Finding

pytestmark = pytest.mark.slow

ALONE = {"analytic", "replay", "stalls"}
"""Checks that judge lateness. The others, in seconds, judge little that a busy machine changes. Tests that are alone
come first, so that others wait once."""

CHECKS: dict[str, Callable[..., list[Finding]]] = {
    "replay": replay.check,
    "stalls": stalls.check,
    "analytic": analytic.check,
    "interleaving": interleaving.check,
    "ab": ab.check,
}


@pytest.mark.timeout(120)
def test_clients_give_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Present clients give readings, and absent ones are skipped."""
    monkeypatch.setattr(clients, "CONNECTIONS", (8,))
    findings = clients.check(seconds=True)
    assert findings
    assert [finding for finding in findings if finding.passed is False] == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.alone] if name in ALONE else []) for name in CHECKS]
)
def test_a_check_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that it finds fails, and nothing is skipped: it needs no program but our own.

    Some are shortened further, to what no other test does: a queue, equal arms on gRPC, a sweep of four servers.
    """
    monkeypatch.setattr(analytic, "SECONDS", (replace(analytic.SECONDS[0], duration_s=0.35, warm_up_s=0.2),))
    monkeypatch.setattr(ab, "HALF_WIDTHS", {"grpc": ab.HALF_WIDTHS["grpc"]})
    monkeypatch.setattr(interleaving, "SERVERS_MAX", 4)
    findings = CHECKS[name](seconds=True)
    assert findings
    assert [finding for finding in findings if not finding.passed] == []
