"""Sweeps: every run once and on the disk at once, resumed where they stopped, and never mixed."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments import environment, results
from experiments.design import Design, Factor, Run, Setting, cross
from experiments.results import Row
from experiments.runner import Sweep, Watch, run_sweep
from stock_service.errors import UsageError
from tests.unit.experiments.test_results import ALL

DESIGN = Design(cross(Setting("figure_2", 0.1, 0.5), Factor("clients", (1, 2, 3))), blocks=2, seed=4)


class Recorder:
    """Does runs by writing them down; fails in the run that it is told to fail in."""

    def __init__(self, fail_at: int = 0) -> None:
        self.executed: list[Run] = []
        self.left: list[int] = []
        self.ended: list[str] = []
        self.blocks: list[int] = []
        self._fail_at = fail_at
        self.watch = Watch(
            began=lambda runs: self.left.append(len(runs)),
            ended_run=lambda run: self.ended.append(run.run_id),
            ended_block=self.blocks.append,
        )

    def execute(self, run: Run) -> Sequence[Row]:
        if len(self.executed) + 1 == self._fail_at:
            raise KeyboardInterrupt
        self.executed.append(run)
        everything = dataclasses.replace(ALL, run_id=run.run_id, block=run.block, clients=run.setting.clients)
        return [dataclasses.replace(everything, request="lookup"), everything]


def sweep(folder: Path, design: Design = DESIGN) -> Sweep:
    return Sweep("stock", design, folder)


def test_a_sweep_does_every_run_in_the_designs_order(tmp_path: Path) -> None:
    """And keeps its rows, its design and its environment, before and after."""
    recorder = Recorder()
    run_sweep(sweep(tmp_path / "new" / "folder"), recorder.execute, resume=False, watch=recorder.watch)
    folder = tmp_path / "new" / "folder"
    assert recorder.executed == list(DESIGN.runs())
    assert [row.run_id for row in results.load_rows(folder)] == [run.run_id for run in DESIGN.runs() for _ in (0, 1)]
    assert json.loads((folder / "design.json").read_text())["design"]["blocks"] == 2
    assert environment.load(folder).after is not None


def test_the_watcher_is_told_of_runs_and_of_whole_blocks(tmp_path: Path) -> None:
    """Before the first run, after each run, and after the last run of each block."""
    recorder = Recorder()
    run_sweep(sweep(tmp_path), recorder.execute, resume=False, watch=recorder.watch)
    assert recorder.left == [6]
    assert recorder.ended == [run.run_id for run in DESIGN.runs()]
    assert recorder.blocks == [1, 2]


@pytest.mark.parametrize("fail_at", [1, 3, 6])
def test_an_interrupted_sweep_loses_one_run_and_is_resumed(tmp_path: Path, fail_at: int) -> None:
    """What was done is on the disk; resumed, only the rest is done."""
    first, second = Recorder(fail_at), Recorder()
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep(tmp_path), first.execute, resume=False, watch=first.watch)
    assert len({row.run_id for row in results.load_rows(tmp_path)}) == fail_at - 1
    assert environment.load(tmp_path).after is None
    run_sweep(sweep(tmp_path), second.execute, resume=True, watch=second.watch)
    assert first.executed + second.executed == list(DESIGN.runs())
    assert {row.run_id for row in results.load_rows(tmp_path)} == {run.run_id for run in DESIGN.runs()}
    assert second.left == [6 - fail_at + 1]


def test_what_a_crash_tore_is_dropped_and_done_again(tmp_path: Path) -> None:
    """A last line cut in half, and the rows before it of the same run."""
    first, second = Recorder(), Recorder()
    run_sweep(sweep(tmp_path), first.execute, resume=False, watch=first.watch)
    file = tmp_path / "results.csv"
    file.write_text(file.read_text()[:-30])
    run_sweep(sweep(tmp_path), second.execute, resume=True, watch=second.watch)
    assert [run.run_id for run in second.executed] == [DESIGN.runs()[-1].run_id]
    assert len(results.load_rows(tmp_path)) == 12


def test_a_sweep_that_is_done_is_resumed_with_nothing_to_do(tmp_path: Path) -> None:
    """And its environment stays as it was."""
    recorder = Recorder()
    run_sweep(sweep(tmp_path), recorder.execute, resume=False, watch=recorder.watch)
    before = environment.load(tmp_path)
    run_sweep(sweep(tmp_path), recorder.execute, resume=True, watch=recorder.watch)
    assert recorder.left == [6, 0]
    assert environment.load(tmp_path) == before


def test_resuming_where_nothing_was_begun_begins(tmp_path: Path) -> None:
    """``--resume`` may always be given."""
    recorder = Recorder()
    run_sweep(sweep(tmp_path), recorder.execute, resume=True, watch=recorder.watch)
    assert len(recorder.executed) == 6


def test_results_are_never_added_to_unasked(tmp_path: Path) -> None:
    """A second sweep into the same folder is refused, and harms nothing."""
    recorder = Recorder()
    run_sweep(sweep(tmp_path), recorder.execute, resume=False, watch=recorder.watch)
    before = (tmp_path / "results.csv").read_text()
    with pytest.raises(UsageError, match="--resume"):
        run_sweep(sweep(tmp_path), recorder.execute, resume=False, watch=recorder.watch)
    assert (tmp_path / "results.csv").read_text() == before


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(DESIGN, seed=5),
        dataclasses.replace(DESIGN, blocks=3),
        dataclasses.replace(DESIGN, settings=DESIGN.settings[:2]),
        dataclasses.replace(DESIGN, settings=cross(Setting("figure_2", 0.1, 9.0), Factor("clients", (1, 2, 3)))),
    ],
)
def test_a_sweep_is_not_resumed_with_another_design(tmp_path: Path, other: Design) -> None:
    """Another seed, number of blocks, set of settings or length of a run."""
    recorder = Recorder()
    run_sweep(sweep(tmp_path), recorder.execute, resume=False, watch=recorder.watch)
    with pytest.raises(UsageError, match="another design"):
        run_sweep(sweep(tmp_path, other), recorder.execute, resume=True, watch=recorder.watch)


def test_a_sweep_is_not_resumed_on_another_commit(tmp_path: Path) -> None:
    """Half of the rows would be of other code."""
    recorder = Recorder()
    run_sweep(sweep(tmp_path), recorder.execute, resume=False, watch=recorder.watch)
    environment.save(dataclasses.replace(environment.load(tmp_path), commit="0" * 40), tmp_path)
    with pytest.raises(UsageError, match="commit 000000000000"):
        run_sweep(sweep(tmp_path), recorder.execute, resume=True, watch=recorder.watch)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("changes", "f" * 64, "with changes ffffffffffff"),
        ("python", "CPython 2.7", "CPython 2.7"),
        ("cpu_model", "Z80", "Z80"),
        ("cores", 999, "999 cores"),
    ],
)
def test_a_sweep_is_not_resumed_on_other_code_or_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, value: object, message: str
) -> None:
    """Two working trees of one commit that differ, or another Python, processor or number of cores."""
    here = dataclasses.replace(environment.look(), dirty=True, changes="0" * 64)
    monkeypatch.setattr(environment, "look", lambda: here)
    recorder = Recorder(fail_at=3)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep(tmp_path), recorder.execute, resume=False, watch=recorder.watch)
    environment.save(dataclasses.replace(here, **{field: value}), tmp_path)  # type: ignore[arg-type]  # one of its fields
    with pytest.raises(UsageError, match=message):
        run_sweep(sweep(tmp_path), recorder.execute, resume=True, watch=recorder.watch)


def test_a_sweep_that_a_crash_ended_in_its_header_begins_anew(tmp_path: Path) -> None:
    """It holds no run that could be lost."""
    (tmp_path / "results.csv").write_text("study,part,blo")
    recorder = Recorder()
    run_sweep(sweep(tmp_path), recorder.execute, resume=True, watch=recorder.watch)
    assert len(recorder.executed) == 6
    assert len(results.load_rows(tmp_path)) == 12
