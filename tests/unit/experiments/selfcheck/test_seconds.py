"""The checks of the instrument in a version of seconds: every request is found, and the results are roughly right.
``python -m experiments selfcheck`` judges them closely, on a machine that does nothing else."""

from collections.abc import Sequence

import pytest

from experiments.selfcheck import ab, analytic, checks, clients, interleaving, replay, stalls
from experiments.selfcheck.finding import Finding
from experiments.selfcheck.theory import Mmc

pytestmark = pytest.mark.slow

BUSY = "no whole pair"
"""Words of a finding where other programs had the cores in all of a few slices."""


def not_passed(findings: Sequence[Finding]) -> list[Finding]:
    """Findings that did not pass, of which there may be none. Some finding must be there."""
    assert findings
    return [finding for finding in findings if finding.passed is False]


def test_every_check_has_a_version_of_minutes_and_one_for_a_night() -> None:
    """The module of each check has both versions, and the command runs the asked one."""
    modules = {each.__name__.rpartition(".")[2]: each for each in (ab, analytic, clients, interleaving, replay, stalls)}
    assert checks.CHECKS.keys() - modules.keys() == {"statistics"}
    assert all(each.MINUTES != each.OVERNIGHT for each in modules.values())


@pytest.mark.timeout(120)
def test_clients_give_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Present clients give readings, and absent ones are skipped. A busy machine may move the readings apart."""
    monkeypatch.setattr(clients, "CONNECTIONS", (8,))
    findings = clients.check(clients.Scale(turns=1, duration_s=0.2, warm_up_s=0.1))
    assert [each for each in not_passed(findings) if "within turns" not in each.shown] == []


@pytest.mark.alone
@pytest.mark.timeout(120)
def test_replay_finds_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request is found, and most requests are near. Real-time priority would take the cores from other tests."""
    monkeypatch.setattr(replay, "no_real_time", lambda: "other tests need the cores")
    scale = replay.Scale(700, within_share_else=0.9, off_ms=50.0, median_us=20_000.0, left_out_max=0.9)
    assert not_passed(replay.check(scale)) == []


@pytest.mark.alone
@pytest.mark.timeout(120)
def test_stalls_are_seen() -> None:
    """The open loop sees the stalls, and the closed loop does not."""
    percentiles = (90.0, 95.0, 98.0)
    scale = stalls.Scale(1.0, periods=2, closed_periods=1, percentiles=percentiles, within=0.4, utilisation_max=0.2)
    assert not_passed(stalls.check(scale)) == []


@pytest.mark.alone
@pytest.mark.timeout(120)
def test_a_queue_is_roughly_that_of_theory() -> None:
    """The values of a queue are near those of theory, and no request is lost. Two replications decide nothing about
    intervals."""
    row = analytic.Row(Mmc(4, 0.5, 0.002), 2, 0.35, 0.2)
    findings = analytic.check(analytic.Scale((row,), replications=2, within_share=1.0, within_ms=500.0))
    assert [each for each in not_passed(findings) if each.name != "analytic, intervals"] == []


@pytest.mark.timeout(120)
def test_a_pair_among_other_servers_has_a_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair alone and among other servers has a ratio each."""
    monkeypatch.setattr(interleaving, "SERVERS_MAX", 4)
    among = interleaving.Condition(0.02, 2, among=True)
    (finding,) = interleaving.check(interleaving.Scale(1, (interleaving.Condition(0.02, 3), among)))
    assert finding.name == f"interleaving, {among.name}" or BUSY in finding.shown


@pytest.mark.timeout(120)
def test_a_triple_has_both_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal arms and a slowed one have a ratio each."""
    monkeypatch.setattr(ab, "HALF_WIDTHS", {"sockets": ab.HALF_WIDTHS["sockets"]})  # its servers start soonest
    findings = ab.check(ab.Scale(triples=1, blocks=2, rounds=3))
    assert len(findings) == 2 or "no block of" in findings[0].shown
