"""Verdicts of ``--fail-if`` on a run under the requested load, and on a run under a different load."""

from dataclasses import replace

import pytest

from clients.load import command
from clients.load.record.result import LoadResult
from clients.load.run import fleet
from clients.load.thresholds import parse
from tests.unit.clients.load.reports import bad_arrivals, closed_records, closed_run, open_run

OFF = replace(open_run(), arrivals=(*open_run().arrivals, bad_arrivals()))
"""A run of two clients with short times. The second client did not follow the schedule."""

OPEN = ("--rate-hz", "1000", "--no-floor")


def ended(
    result: LoadResult, *options: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, list[str]]:
    """The program's exit code for a run with this result, and its lines on --fail-if."""
    monkeypatch.setattr(command, "_knock", lambda _: None)
    monkeypatch.setattr(fleet, "run", lambda *_: result)
    code = command.main(["--transport", "sockets", *options])
    return code, [line for line in capsys.readouterr().err.splitlines() if "--fail-if" in line]


def test_a_limit_kept_under_another_load_is_exit_code_4(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that was kept under a different load is exit code 4. A line has the possible causes, and advice."""
    code, (line,) = ended(OFF, *OPEN, "--fail-if", "p50>50s", capsys=capsys, monkeypatch=monkeypatch)
    assert code == 4
    assert line.startswith(
        "python -m clients.load: --fail-if: it is unknown whether the limits are kept; not the load asked for: the "
        "sends did not follow the schedule (rate ÷ declared "
    )
    assert line.endswith(
        "lower --rate-hz, give client (--cpus) and server (taskset) a core each; for a full "
        "server more --connections-per-client"
    )


def test_a_limit_kept_under_the_load_asked_for_is_exit_code_0(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit kept under the asked load is exit code 0, and so is a run off its schedule without limits."""
    kept = ("--fail-if", "p50>50s")
    assert ended(open_run(), *OPEN, *kept, capsys=capsys, monkeypatch=monkeypatch) == (0, [])
    assert ended(closed_run(closed_records()), "--no-floor", *kept, capsys=capsys, monkeypatch=monkeypatch) == (0, [])
    assert ended(OFF, *OPEN, capsys=capsys, monkeypatch=monkeypatch) == (0, [])


def test_one_run_off_its_schedule_fails_them_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run off its schedule fails all runs of the command, at any place. A limit that was not kept has a separate
    line."""
    results = iter([OFF, open_run()])
    monkeypatch.setattr(command, "_knock", lambda _: None)
    monkeypatch.setattr(fleet, "run", lambda *_: next(results))
    assert command.main(["--transport", "sockets", *OPEN, "--clients", "1", "2", "--fail-if", "p50>50s"]) == 4
    assert capsys.readouterr().err.count("it is unknown whether the limits are kept") == 1
    first, second = command.unkept([parse("p50>1us")], OFF)
    assert first.startswith("--fail-if p50>1us: it was ")
    assert second.startswith("--fail-if: it is unknown whether the limits are kept; ")
