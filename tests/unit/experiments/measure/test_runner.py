"""Runs of sweeps: number of blocks, repeated blocks, and resuming after a crash."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from experiments.design.sweep import Sweep
from experiments.kinds import KINDS
from experiments.measure import standalone
from experiments.measure.bench import CATALOG, bench
from experiments.measure.runner import Asked, run_beside, run_sweep
from experiments.results import environment, files, rows
from experiments.results.observed import Block
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.apart_seen import ALONE, repetition
from tests.unit.experiments.judge.synthetic_blocks import block, sweep

OF = sweep(looks=(10, 14))
MEANS = dict.fromkeys(OF.arms, 100.0)


@dataclass
class Run:
    """A sweep's options, and its measurements: block number and attempt."""

    enough: int = 10
    """Number of blocks that are enough."""
    robbed: Callable[[Block], bool] = lambda _: False
    breaks_at: tuple[int, int] = (0, 0)
    measured: list[tuple[int, int]] = field(default_factory=list)

    def measure(self, number: int, attempt: int) -> Block:
        """Measures one block."""
        if (number, attempt) == self.breaks_at:
            raise KeyboardInterrupt
        self.measured.append((number, attempt))
        return block(OF, MEANS, number, attempt=attempt)

    def run(self, folder: Path, resume: bool = False, of: Sweep = OF) -> tuple[Block, ...]:
        """Runs the sweep."""

        def goes_on(done: Sequence[Block]) -> bool:
            return len(done) < self.enough

        asked = Asked(goes_on, lambda _: None, self.robbed)
        return run_sweep(of, folder, resume, self.measure, asked)


@pytest.mark.parametrize(("enough", "blocks"), [(1, 10), (10, 10), (11, 14), (99, 14)])
def test_it_is_asked_at_looks_alone(tmp_path: Path, enough: int, blocks: int) -> None:
    """A sweep ends only at a look, and at the last look in any case."""
    assert len(Run(enough).run(tmp_path)) == blocks


def test_a_robbed_block_is_run_again_once(tmp_path: Path) -> None:
    """A block that lost too much time is repeated once. Both attempts are written, and the last attempt counts."""
    run = Run(robbed=lambda each: each.number == 3)
    done = run.run(tmp_path)
    assert run.measured[2:5] == [(3, 1), (3, 2), (4, 1)]
    assert [each.attempt for each in done] == [1, 1, 2, *[1] * 7]
    assert [each.number for each in files.read_blocks(tmp_path)].count(3) == 2


def test_at_most_a_fifth_of_the_blocks_is_run_again(tmp_path: Path) -> None:
    """At most a fifth of the blocks is repeated."""
    run = Run(robbed=lambda _: True)
    run.run(tmp_path)
    assert sum(attempt == 2 for _, attempt in run.measured) == OF.repeats_max == 3


def test_what_is_whole_is_gone_on_with(tmp_path: Path) -> None:
    """Ctrl-C in block 4 keeps three blocks. A resumed sweep begins with block 4. A folder with blocks needs
    --resume."""
    with pytest.raises(KeyboardInterrupt):
        Run(breaks_at=(4, 1)).run(tmp_path)
    assert len(files.read_blocks(tmp_path)) == 3
    assert len((tmp_path / rows.ROWS_FILE).read_text().splitlines()) > 3
    with pytest.raises(UsageError, match=r"a folder with sweep\.json"):
        Run().run(tmp_path)
    again = Run()
    assert len(again.run(tmp_path, resume=True)) == 10
    assert again.measured[0] == (4, 1)


def test_a_run_that_crashed_at_its_begin_can_begin_again(tmp_path: Path) -> None:
    """A crash leaves a record of the machine and a part of the plan. The run begins there. Beside other files it does
    not."""
    (tmp_path / environment.ENVIRONMENT_FILE).touch()
    (tmp_path / f"{files.SWEEP_FILE}.tmp").touch()
    assert len(Run().run(tmp_path, resume=True)) == 10
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").touch()
    with pytest.raises(UsageError, match="a folder with other files"):
        Run().run(other)


def test_another_sweep_is_not_mixed_in(tmp_path: Path) -> None:
    """A folder with a sweep of another seed, or with blocks of another machine, is refused."""
    Run().run(tmp_path)
    assert environment.load(tmp_path).after is not None
    with pytest.raises(UsageError, match=r"another plan in sweep\.json"):
        Run().run(tmp_path, resume=True, of=replace(OF, seed=2))
    file = tmp_path / environment.ENVIRONMENT_FILE
    file.write_text(file.read_text().replace("CPython", "PyPy"))
    with pytest.raises(UsageError, match="PyPy"):
        Run().run(tmp_path, resume=True)


def test_an_interrupted_repetition_is_made_up_for(tmp_path: Path) -> None:
    """A resumed sweep repeats the block whose repetition was interrupted."""
    first = Run(robbed=lambda each: each.number == 2 and each.attempt == 1, breaks_at=(2, 2))
    with pytest.raises(KeyboardInterrupt):
        first.run(tmp_path)
    again = Run(robbed=first.robbed)
    done = again.run(tmp_path, resume=True)
    assert again.measured[:2] == [(2, 2), (3, 1)]
    assert [each.attempt for each in done][:3] == [1, 2, 1]


def test_a_second_run_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    """While a run measures into a folder, a second run there is refused, also with --resume. The first run goes on."""
    first = Run()
    measure = first.measure

    def beside(number: int, attempt: int) -> Block:
        with pytest.raises(UsageError, match="another run measures now"):
            Run().run(tmp_path, resume=True)
        return measure(number, attempt)

    first.measure = beside  # type: ignore[method-assign]
    first.run(tmp_path)
    assert [each.number for each in files.read_blocks(tmp_path)] == list(range(1, 11))


@pytest.mark.slow
def test_an_interrupted_run_of_another_kind_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is not a sweep keeps its whole blocks at an interruption. With --resume it measures the others."""
    measured: list[int] = []

    def runs(_: object, number: int, __: object) -> object:
        measured.append(number)
        if measured == [1, 2, 3]:
            raise KeyboardInterrupt
        return repetition(number, 130, (15, 17, 29), 0.0).runs

    monkeypatch.setattr(standalone, "runs", runs)
    with pytest.raises(KeyboardInterrupt):
        run_beside(ALONE, tmp_path, False, bench(CATALOG), lambda _: None)
    with pytest.raises(UsageError):
        run_beside(ALONE, tmp_path, False, bench(CATALOG), lambda _: None)
    seen = run_beside(ALONE, tmp_path, True, bench(CATALOG), lambda _: None)
    assert (measured, [each.number for each in seen]) == ([1, 2, 3, 3], [1, 2, 3])
    assert KINDS["standalone"].load(tmp_path) == (ALONE, seen)
