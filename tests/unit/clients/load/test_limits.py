"""Verdicts of ``--fail-if`` on a run under the requested load, and on a run under a different load."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from clients.load import command
from clients.load.record.result import LoadResult
from clients.load.thresholds import parse
from tests.unit.clients.load.reports import bad_arrivals, closed_records, closed_run, open_run

OFF = replace(open_run(), arrivals=(*open_run().arrivals, bad_arrivals()))
"""A run of two clients with short times. The second client did not follow the schedule."""

RATE, KEPT = "--rate-hz 1000", "--fail-if p50>50s"


@pytest.mark.parametrize(
    ("results", "words", "code"),
    [
        ([OFF], f"{RATE} {KEPT}", 4),
        ([OFF, open_run()], f"{RATE} --clients 1 2 {KEPT}", 4),
        ([open_run()], f"{RATE} {KEPT}", 0),
        ([closed_run(closed_records())], KEPT, 0),
        ([OFF], RATE, 0),
    ],
    ids=["off schedule", "the first off schedule", "kept", "closed loop", "off schedule without a limit"],
)
def test_a_limit_kept_under_another_load_is_exit_code_4(
    results: Sequence[LoadResult],
    words: str,
    code: int,
    capsys: pytest.CaptureFixture[str],
    canned: Callable[..., None],
) -> None:
    """A limit that was kept under a different load is exit code 4, at any place in the command's runs. One line has the
    possible causes, and advice. A limit kept under the asked load is exit code 0."""
    canned(*results)
    assert command.main(["--transport", "sockets", "--no-floor", *words.split()]) == code
    said = [line for line in capsys.readouterr().err.splitlines() if "--fail-if" in line]
    assert len(said) == (code == 4)
    for line in said:
        assert line.startswith(
            "python -m clients.load: --fail-if: it is unknown whether the limits are kept; not the requested load: the "
            "sends did not follow the schedule (rate ÷ declared "
        )
        assert line.endswith("if the server is full, more --connections-per-client")


def test_a_limit_that_was_not_kept_has_a_line_of_its_own() -> None:
    """A limit that was not kept has a separate line, before the line on the schedule."""
    first, second = command.unkept([parse("p50>1us")], OFF)
    assert first.startswith("--fail-if p50>1us: it was ")
    assert second.startswith("--fail-if: it is unknown whether the limits are kept; ")
