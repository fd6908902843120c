"""The checks together: their printed and kept findings, and the result."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.results import environment
from experiments.selfcheck import checks
from experiments.selfcheck.checks import IDLE_LOAD_MAX, REPORT
from experiments.selfcheck.finding import Finding

GOOD = Finding("a clock", "12 µs", "under 50 µs", passed=True)
BAD = Finding("a queue", "7.1 ms", "2.77 ms within 5 %", passed=False)
ABSENT = Finding("ghz", "run make go-tools", "within 5 %", passed=None)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Finding]]:
    """The findings of each check; filled by the test."""
    found: dict[str, list[Finding]] = {}
    monkeypatch.setattr(checks, "CHECKS", {name: f"Title of {name}" for name in checks.CHECKS})
    monkeypatch.setattr(checks, "findings_of", lambda name, _: found.get(name, []))
    return found


def begun_at_load(load: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine with another load average."""
    here = environment.look()
    monkeypatch.setattr(environment, "look", lambda: replace(here, before=replace(here.before, load_1_min=load)))


@pytest.mark.parametrize(
    ("of_replay", "of_ab", "passed"),
    [([GOOD], [GOOD], True), ([GOOD], [GOOD, BAD], False), ([BAD], [GOOD], False), ([ABSENT], [GOOD], True)],
    ids=["all pass", "the last fails", "the first fails", "one is skipped"],
)
def test_one_that_fails_fails_them_all(
    found: dict[str, list[Finding]], tmp_path: Path, of_replay: list[Finding], of_ab: list[Finding], passed: bool
) -> None:
    """One failed check fails all, at any place. A skipped one neither passes nor fails."""
    found |= {"replay": of_replay, "ab": of_ab}
    assert checks.run(["replay", "ab"], overnight=False, out=tmp_path) == passed


def test_every_finding_is_printed_and_kept(
    found: dict[str, list[Finding]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every finding is printed and kept, with the measured value, the required one, and its word."""
    found |= {"replay": [GOOD, BAD], "clients": [ABSENT]}
    assert not checks.run(["replay", "clients"], overnight=False, out=tmp_path / "new")
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "passed   replay: a clock: 12 µs; must: under 50 µs",
        "FAILED   replay: a queue: 7.1 ms; must: 2.77 ms within 5 %",
        "skipped  clients: ghz: run make go-tools; must: within 5 %",
    ]
    kept = (tmp_path / "new" / REPORT).read_text(encoding="utf-8")
    assert kept.startswith("# The instrument, checked (minutes)")
    assert [kept.count(f"**{word}**") for word in ("passed", "FAILED", "skipped")] == [1, 1, 1]
    assert "Title of replay" in kept
    assert "7.1 ms" in kept


@pytest.mark.parametrize(("load", "warned"), [(IDLE_LOAD_MAX, False), (IDLE_LOAD_MAX + 0.1, True)])
@pytest.mark.usefixtures("found")
def test_a_machine_that_is_busy_is_said_to_be(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    load: float,
    warned: bool,
) -> None:
    """A busy machine is named before the measurements, and in the kept findings."""
    begun_at_load(load, monkeypatch)
    assert checks.run(["replay"], overnight=False, out=tmp_path)
    assert ("load average 0.6" in capsys.readouterr().err) == warned
    assert f"at load {load:g}" in (tmp_path / REPORT).read_text(encoding="utf-8")
