"""Sweeps in which time is stolen: a run is done again at once, within bounds, and all of its attempts are kept."""

from pathlib import Path

import pytest

from experiments import results
from experiments.design import Design, Factor, Setting, cross
from experiments.observation import rows
from experiments.results import RESULTS_FILE, Row
from experiments.run_records import RUNS_FILE, counting, load_raw, load_records, raw_digest
from tests.unit.experiments.planted_runs import Stolen

IDLE = Setting("idle", 0.01, 0.02, clients=0)
DESIGN = Design(cross(IDLE, Factor("connections", (1, 2, 3))), blocks=14, seed=4)
"""42 runs, so that 3 repetitions are allowed, of a server that nobody calls, which take no time."""

IDS = [run.run_id for run in DESIGN.runs()]


def numbered(folder: Path) -> list[tuple[str, int, int | None]]:
    """The attempts that a folder keeps, in the order of its file."""
    return [(record.run.run_id, record.attempt, record.attempts) for record in load_records(folder)]


def table(folder: Path) -> dict[str, Row]:
    """The one row of each run."""
    found = results.load_rows(folder)
    assert [row.run_id for row in found] == IDS
    return {row.run_id: row for row in found}


def test_a_run_of_which_too_much_was_stolen_is_done_again_at_once(tmp_path: Path) -> None:
    """Before the next run; both attempts are kept, the row is that of the second, and the watcher is told."""
    stolen = Stolen({IDS[1]: [0.031, 0.01]})
    stolen.sweep(tmp_path, DESIGN)
    assert stolen.executed == [*IDS[:2], IDS[1], *IDS[2:]]
    assert stolen.said == [(IDS[1], 0.031)]
    assert numbered(tmp_path)[:4] == [(IDS[0], 1, 1), (IDS[1], 1, 2), (IDS[1], 2, 2), (IDS[2], 1, 1)]
    superseded, last = load_records(tmp_path)[1:3]
    assert (superseded.seen.steal_share, superseded.seen.started_at) == (0.031, "attempt 2 of the sweep")
    assert (last.seen.steal_share, last.seen.started_at) == (0.01, "attempt 3 of the sweep")
    assert all(record.as_written and record.belongs_to for record in (superseded, last))
    row = table(tmp_path)[IDS[1]]
    assert (row.attempt, row.steal_share, row.started_at) == (2, 0.01, "attempt 3 of the sweep")
    assert {row.attempt for run_id, row in table(tmp_path).items() if run_id != IDS[1]} == {1}


def test_as_much_as_gate_14_allows_is_no_reason_to_do_a_run_again(tmp_path: Path) -> None:
    """2 % exactly."""
    stolen = Stolen({IDS[1]: [0.02]})
    stolen.sweep(tmp_path, DESIGN)
    assert stolen.executed == IDS


def test_a_run_is_attempted_three_times_and_the_last_counts(tmp_path: Path) -> None:
    """Also where an earlier attempt lost less: nothing is chosen, and gate 14 sees what was stolen."""
    stolen = Stolen({IDS[0]: [0.03, 0.021, 0.05, 0.0]})
    stolen.sweep(tmp_path, DESIGN)
    assert stolen.executed == [IDS[0]] * 3 + IDS[1:]
    assert numbered(tmp_path)[:3] == [(IDS[0], 1, 3), (IDS[0], 2, 3), (IDS[0], 3, 3)]
    row = table(tmp_path)[IDS[0]]
    assert (row.attempt, row.steal_share) == (3, 0.05)


def test_a_sweep_repeats_one_run_in_twenty(tmp_path: Path) -> None:
    """Here 3 of 42: when they are spent, within a run or between two, an attempt counts as it is."""
    stolen = Stolen({IDS[0]: [0.05, 0.0], IDS[2]: [0.05, 0.0], IDS[5]: [0.05, 0.04, 0.0], IDS[9]: [0.06, 0.0]})
    stolen.sweep(tmp_path, DESIGN)
    repeated = [(run_id, attempts) for run_id, _, attempts in numbered(tmp_path) if attempts != 1]
    assert repeated == [(run_id, 2) for run_id in (IDS[0], IDS[2], IDS[5]) for _ in range(2)]
    found = table(tmp_path)
    assert (found[IDS[5]].steal_share, found[IDS[9]].steal_share, found[IDS[9]].attempt) == (0.04, 0.06, 1)


def test_what_was_repeated_before_an_interruption_is_counted_when_it_is_resumed(tmp_path: Path) -> None:
    """Two of the three before it, one after it, and no more."""
    shares = {IDS[0]: [0.05, 0.05, 0.05], IDS[6]: [0.05, 0.01], IDS[7]: [0.07, 0.01]}
    with pytest.raises(KeyboardInterrupt):
        Stolen(shares, fail_at=6).sweep(tmp_path, DESIGN)
    assert numbered(tmp_path) == [(IDS[0], n, 3) for n in (1, 2, 3)] + [(IDS[1], 1, 1), (IDS[2], 1, 1)]
    before = (tmp_path / RUNS_FILE).read_bytes()
    rest = Stolen(shares)
    rest.sweep(tmp_path, DESIGN, resume=True)
    assert (tmp_path / RUNS_FILE).read_bytes().startswith(before), "attempts of a run are no longer written as one"
    assert rest.executed == [*IDS[3:7], IDS[6], *IDS[7:]]
    assert (table(tmp_path)[IDS[6]].attempt, table(tmp_path)[IDS[7]].steal_share) == (2, 0.07)
    kept = load_records(tmp_path)
    assert len(kept) == len(IDS) + 3
    should = results.rows_text(row for one in counting(kept) for row in rows(one.study, one.run, one.seen, one.attempt))
    assert (tmp_path / RESULTS_FILE).read_text() == should


def test_an_interruption_in_a_second_attempt_loses_that_run_alone(tmp_path: Path) -> None:
    """Of the first attempt nothing is left; resumed, the run begins with its first attempt."""
    with pytest.raises(KeyboardInterrupt):
        Stolen({IDS[2]: [0.05]}, fail_at=4).sweep(tmp_path, DESIGN)
    assert numbered(tmp_path) == [(run_id, 1, 1) for run_id in IDS[:2]]
    assert [row.run_id for row in results.load_rows(tmp_path)] == IDS[:2]
    rest = Stolen({})
    rest.sweep(tmp_path, DESIGN, resume=True)
    assert rest.executed == IDS[2:]
    assert len(load_records(tmp_path)) == len(table(tmp_path)) == len(IDS)


def test_a_crash_while_attempts_are_written_leaves_none_of_them(tmp_path: Path) -> None:
    """Wherever it cuts: they are one gzip member."""
    with pytest.raises(KeyboardInterrupt):
        Stolen({IDS[1]: [0.05, 0.05, 0.01]}, fail_at=5).sweep(tmp_path, DESIGN)
    file = tmp_path / RUNS_FILE
    whole = file.read_bytes()
    lengths = set()
    for length in (*range(0, len(whole), 13), len(whole)):
        file.write_bytes(whole[:length])
        lengths.add(len(load_records(tmp_path)))
    assert lengths == {0, 1, 4}


def test_requests_own_times_are_kept_of_the_attempt_that_counts(tmp_path: Path) -> None:
    """The records of the others have no digest of any."""
    design = Design((Setting("figure_4", 0.01, 0.02),), blocks=2, seed=4)
    first = design.runs()[0].run_id
    Stolen({first: [0.05, 0.01]}, keep_records=True).sweep(tmp_path, design)
    superseded, last, _ = load_records(tmp_path)
    raw = load_raw(tmp_path, first)
    assert raw is not None
    assert (superseded.raw_digest, last.raw_digest) == (None, raw_digest(raw))
