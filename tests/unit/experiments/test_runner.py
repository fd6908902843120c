"""Sweeps: every run once and on the disk at once, resumed where they stopped, and never mixed."""

import dataclasses
import gzip
import json
from pathlib import Path

import pytest

from experiments import environment, results, runner
from experiments.design import LOOKUP_AND_TRADE, Design, Factor, Run, Setting, cross
from experiments.observation import Observation, rows
from experiments.results import COLUMNS, RESULTS_FILE
from experiments.run_records import RUNS_FILE, load_raw, load_records, save_raw
from experiments.runner import DESIGN_FILE, Sweep, Watch, design_digest, planned, run_sweep
from stock_service.rpc.errors import UsageError
from tests.unit.experiments import planted_runs
from tests.unit.experiments.planted_runs import observed

HERE = environment.look()
DESIGN = Design(cross(Setting("figure_2", 0.01, 0.02), Factor("clients", (1, 2, 3))), blocks=2, seed=4)


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
            again=lambda *_: None,
        )

    def execute(self, run: Run) -> Observation:
        if len(self.executed) + 1 == self._fail_at:
            raise KeyboardInterrupt
        self.executed.append(run)
        return observed(run, keep_records=True)


def sweep(folder: Path, design: Design = DESIGN) -> Sweep:
    return Sweep("stock", design, folder)


def assert_whole(folder: Path) -> None:
    """Every run of the design is there once, in its order, in both files, and the rows are those of the records."""
    records = load_records(folder)
    assert [record.run for record in records] == list(DESIGN.runs())
    should = results.rows_text(row for record in records for row in rows(record.study, record.run, record.seen))
    assert (folder / RESULTS_FILE).read_text() == should
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [DESIGN_FILE, RESULTS_FILE, RUNS_FILE, environment.ENVIRONMENT_FILE, "records"]
    )


def test_a_sweep_does_every_run_in_the_designs_order(tmp_path: Path) -> None:
    """And keeps its records, its rows, its design and its environment, before and after."""
    recorder = Recorder()
    run_sweep(sweep(tmp_path / "new" / "folder"), recorder.execute, resume=False, watch=recorder.watch)
    folder = tmp_path / "new" / "folder"
    assert recorder.executed == list(DESIGN.runs())
    assert [row.run_id for row in results.load_rows(folder)] == [run.run_id for run in DESIGN.runs() for _ in (0, 1)]
    assert json.loads((folder / "design.json").read_text())["design"]["blocks"] == 2
    assert environment.load(folder).after is not None
    assert_whole(folder)
    assert load_raw(folder, "001-001") is not None


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
    assert_whole(tmp_path)
    assert second.left == [6 - fail_at + 1]


def interrupted(folder: Path, fail_at: int) -> None:
    """A sweep that was interrupted in that run."""
    first = Recorder(fail_at)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep(folder), first.execute, resume=False, watch=first.watch)


def resumed(folder: Path) -> list[str]:
    """The runs that were still to do, done."""
    second = Recorder()
    run_sweep(sweep(folder), second.execute, resume=True, watch=second.watch)
    return [run.run_id for run in second.executed]


@pytest.mark.slow
def test_a_record_that_a_crash_tore_is_dropped_and_its_run_done_again(tmp_path: Path) -> None:
    """Cut off at some places of its last member, or with something else at its end."""
    folder, longer = tmp_path / "folder", tmp_path / "longer"
    interrupted(folder, fail_at=4)
    interrupted(longer, fail_at=5)
    before, rows_before = (folder / RUNS_FILE).read_bytes(), (folder / RESULTS_FILE).read_bytes()
    fourth = (longer / RUNS_FILE).read_bytes()[len(before) :]
    for torn in (fourth[:1], fourth[: len(fourth) // 2], fourth[:-1], bytes(100)):
        (folder / RUNS_FILE).write_bytes(before + torn)
        (folder / RESULTS_FILE).write_bytes(rows_before)
        assert resumed(folder) == [run.run_id for run in DESIGN.runs()[3:]]
        assert_whole(folder)


@pytest.mark.parametrize("place", range(5))
def test_a_run_whose_record_is_whole_is_done_whatever_became_of_its_rows(tmp_path: Path, place: int) -> None:
    """Not written, half of a line, its lines but for the last, all but the last line's end, or no file at all."""
    ids = [run.run_id for run in DESIGN.runs()]
    interrupted(tmp_path, fail_at=4)
    file = tmp_path / RESULTS_FILE
    lines = file.read_text().splitlines(keepends=True)
    third = "".join(lines[5:])
    torn = ("", third[:30], lines[5], third[:-1])
    if place == 4:
        file.unlink()
    else:
        file.write_text("".join(lines[:5]) + torn[place])
    assert resumed(tmp_path) == ids[3:]
    assert_whole(tmp_path)


@pytest.mark.parametrize("length", [0, 20, 2000])
def test_a_crash_between_record_and_rows_of_the_first_run_loses_nothing(tmp_path: Path, length: int) -> None:
    """The results have no more than their header, or not even that."""
    interrupted(tmp_path, fail_at=2)
    header = (tmp_path / RESULTS_FILE).read_text().splitlines(keepends=True)[0]
    (tmp_path / RESULTS_FILE).write_text(header[:length])
    assert resumed(tmp_path) == [run.run_id for run in DESIGN.runs()[1:]]
    assert_whole(tmp_path)


def test_a_crash_while_a_folder_is_repaired_changes_nothing(tmp_path: Path) -> None:
    """Repaired records beside results that are not; and halves of repaired files that nobody moved into place."""
    interrupted(tmp_path, fail_at=4)
    for name in (RUNS_FILE, RESULTS_FILE):
        (tmp_path / f"{name}.repaired").write_bytes((tmp_path / name).read_bytes()[:700])
    (tmp_path / RESULTS_FILE).write_text((tmp_path / RESULTS_FILE).read_text()[:-30])
    assert len(resumed(tmp_path)) == 3
    assert_whole(tmp_path)


def test_results_without_the_runs_that_they_are_from_are_not_resumed_and_not_lost(tmp_path: Path) -> None:
    """Their rows could be computed from nothing."""
    interrupted(tmp_path, fail_at=4)
    before = (tmp_path / RESULTS_FILE).read_text()
    (tmp_path / RUNS_FILE).unlink()
    with pytest.raises(UsageError, match=r"results without runs\.jsonl\.gz"):
        resumed(tmp_path)
    assert (tmp_path / RESULTS_FILE).read_text() == before


def test_a_record_that_was_edited_is_not_sealed_again_by_a_resumption(tmp_path: Path) -> None:
    """The sweep is refused, with the run's name, and nothing is changed."""
    interrupted(tmp_path, fail_at=4)
    lines = gzip.decompress((tmp_path / RUNS_FILE).read_bytes()).decode().splitlines(keepends=True)
    edited = "".join([lines[0], lines[1].replace('"pinned":true', '"pinned":false'), lines[2]])
    (tmp_path / RUNS_FILE).write_bytes(gzip.compress(edited.encode()))
    before = (tmp_path / RUNS_FILE).read_bytes()
    with pytest.raises(UsageError, match=r"a record of run 001-002 that was edited"):
        resumed(tmp_path)
    assert (tmp_path / RUNS_FILE).read_bytes() == before


def test_a_sweep_whose_middle_cannot_be_read_is_not_resumed(tmp_path: Path) -> None:
    """A crash cuts off an end; runs after the damage would be measured again unasked."""
    interrupted(tmp_path, fail_at=5)
    data = bytearray((tmp_path / RUNS_FILE).read_bytes())
    data[len(data) // 3] ^= 0xFF
    (tmp_path / RUNS_FILE).write_bytes(data)
    with pytest.raises(UsageError, match=r"run 2: .*no whole gzip member, and whole ones after it"):
        resumed(tmp_path)
    assert (tmp_path / RUNS_FILE).read_bytes() == bytes(data)


def test_the_planned_runs_are_the_designs(tmp_path: Path) -> None:
    """With every kind of setting there is, from the file alone."""
    wide = dataclasses.replace(
        planted_runs.DESIGN,
        settings=(*planted_runs.DESIGN.settings, Setting("x", 0.1, 2.5, mix=LOOKUP_AND_TRADE, arrivals="constant")),
    )
    assert len(wide.once) == 1
    first = Recorder(fail_at=1)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep(tmp_path, wide), first.execute, resume=False, watch=first.watch)
    assert planned(tmp_path) == sweep(tmp_path, wide)


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ('"blocks": 2', '"blocks": "two"', "TypeError"),
        ('"blocks": 2', '"blocks": 0', "design as the runner writes it"),
        ('"clients": 2', '"customers": 2', "customers"),
        ('"clients": 2,', '"clients":  2,', r"line \d+: got '\"clients\":  2,'"),
        ("{", "[", "JSONDecodeError"),
    ],
)
def test_a_design_that_the_runner_did_not_write_is_refused(tmp_path: Path, good: str, bad: str, message: str) -> None:
    """With what is wrong, and the line where there is one."""
    interrupted(tmp_path, fail_at=1)
    file = tmp_path / DESIGN_FILE
    assert good in file.read_text()
    file.write_text(file.read_text().replace(good, bad, 1))
    with pytest.raises(UsageError, match=message):
        planned(tmp_path)


def test_a_column_more_leaves_the_digest_of_a_design_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs are the same ones; one block less is another design."""
    digests = []
    for name, columns, blocks in (("a", COLUMNS, 2), ("b", (*COLUMNS, "more"), 2), ("c", COLUMNS, 1)):
        monkeypatch.setattr(runner, "COLUMNS", columns)
        first = Recorder(fail_at=1)
        with pytest.raises(KeyboardInterrupt):
            run_sweep(
                sweep(tmp_path / name, dataclasses.replace(DESIGN, blocks=blocks)), first.execute, False, first.watch
            )
        digests.append(design_digest(tmp_path / name))
    assert digests[0] == digests[1] != digests[2]


def test_a_sweep_that_is_done_is_resumed_with_nothing_to_do(tmp_path: Path) -> None:
    """And its environment stays as it was."""
    recorder = Recorder()
    run_sweep(sweep(tmp_path), recorder.execute, resume=False, watch=recorder.watch)
    before = environment.load(tmp_path)
    run_sweep(sweep(tmp_path), recorder.execute, resume=True, watch=recorder.watch)
    assert recorder.left == [6, 0]
    assert environment.load(tmp_path) == before


def test_a_sweep_that_was_interrupted_after_its_last_run_ends_when_it_is_resumed(tmp_path: Path) -> None:
    """As while the last block's figures were drawn: no run is left, and the machine afterwards is kept all the same."""

    def interrupt(block: int) -> None:
        if block == DESIGN.blocks:
            raise KeyboardInterrupt

    first = Recorder()
    watch = dataclasses.replace(first.watch, ended_block=interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep(tmp_path), first.execute, resume=False, watch=watch)
    assert environment.load(tmp_path).after is None
    assert resumed(tmp_path) == []
    assert environment.load(tmp_path).after is not None


def test_times_that_a_crash_left_without_their_run_are_gone_when_it_is_done_again(tmp_path: Path) -> None:
    """Also where the run that is done in its place keeps none; those of the runs before it stay."""
    interrupted(tmp_path, fail_at=3)
    run = DESIGN.runs()[2]
    save_raw(tmp_path, run.run_id, observed(run, keep_records=True))
    run_sweep(sweep(tmp_path), observed, resume=True, watch=Recorder().watch)
    assert sorted(path.stem for path in (tmp_path / "records").iterdir()) == ["001-001", "001-002"]


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
        ("packages", HERE.packages | {"grpcio": "0.1"}, r"results of grpcio 0\.1, and this is grpcio \d"),
        ("packages", {}, "results of grpcio unknown, and this is"),
        ("kernel", "Linux 2.4", r"Linux 2\.4"),
        ("cpu_model", "Z80", "Z80"),
        ("cores", 999, "999 cores"),
    ],
)
def test_a_sweep_is_not_resumed_on_other_code_other_versions_or_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, value: object, message: str
) -> None:
    """Two working trees of one commit that differ, or another Python, package, kernel, processor or number of cores."""
    here = dataclasses.replace(HERE, dirty=True, changes="0" * 64)
    monkeypatch.setattr(environment, "look", lambda: here)
    interrupted(tmp_path, fail_at=3)
    environment.save(dataclasses.replace(here, **{field: value}), tmp_path)  # type: ignore[arg-type]  # one of its fields
    with pytest.raises(UsageError, match=message):
        resumed(tmp_path)


def test_a_sweep_is_resumed_with_another_matplotlib(tmp_path: Path) -> None:
    """It draws, and measures nothing."""
    interrupted(tmp_path, fail_at=3)
    seen = environment.load(tmp_path)
    environment.save(dataclasses.replace(seen, packages=seen.packages | {"matplotlib": "0.1"}), tmp_path)
    assert len(resumed(tmp_path)) == 4


def test_a_sweep_that_a_crash_ended_in_its_header_begins_anew(tmp_path: Path) -> None:
    """It holds no run that could be lost."""
    (tmp_path / "results.csv").write_text("study,part,blo")
    assert len(resumed(tmp_path)) == 6
    assert_whole(tmp_path)


@pytest.mark.slow
def test_a_sweep_that_a_crash_ended_in_its_first_record_begins_anew(tmp_path: Path) -> None:
    """With and without a header in the results; what was torn is in neither file."""
    interrupted(tmp_path, fail_at=2)
    torn = (tmp_path / RUNS_FILE).read_bytes()[:-5]
    for number, text in enumerate((None, "", "study,part,blo")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / RUNS_FILE).write_bytes(torn)
        if text is not None:
            (folder / RESULTS_FILE).write_text(text)
        assert len(resumed(folder)) == 6
        assert_whole(folder)
