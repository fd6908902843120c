"""Runs of kinds other than sweeps: writing, resuming, and refusals of other folders."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.kinds import KINDS
from experiments.kinds.block import Block, Run
from experiments.kinds.standalone import StandalonePlan, StartSeen
from experiments.measure import standalone
from experiments.measure.bench import CATALOG, Bench, bench
from experiments.measure.runner import run_beside
from experiments.results import environment
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.apart_seen import ALONE, repetition

pytestmark = pytest.mark.slow  # looks at the machine: some 0.2 s


PLAN, ON = ALONE, bench(CATALOG)


class Measuring:
    """Observer that gives planted values, and fails at the block ``fails_at``."""

    def __init__(self, patch: pytest.MonkeyPatch, fails_at: int = 0) -> None:
        self.asked: list[int] = []
        self._fails_at = fails_at
        patch.setattr(standalone, "runs", self)

    def __call__(self, _: StandalonePlan, number: int, __: Bench) -> tuple[Run[StartSeen], ...]:
        if number == self._fails_at:
            raise InterruptedError
        self.asked.append(number)
        return repetition(number, 130, (15, 17, 29), 0.0).runs


def run(plan: StandalonePlan, folder: Path, resume: bool) -> Sequence[Block[StartSeen]]:
    """Runs every block that the folder lacks."""
    return run_beside(plan, folder, resume, ON, lambda _: None)


def test_every_repetition_is_kept_beside_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block is written into a new folder, with the environment before and after the run."""
    Measuring(monkeypatch)
    folder = tmp_path / "new"
    seen = run(PLAN, folder, resume=False)
    assert [each.number for each in seen] == [1, 2, 3]
    assert KINDS["standalone"].load(folder) == (PLAN, seen)
    assert environment.load(folder).after is not None


def test_what_was_interrupted_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run keeps whole blocks, and measures the interrupted block."""
    Measuring(monkeypatch, fails_at=3)
    with pytest.raises(InterruptedError):
        run(PLAN, tmp_path, resume=False)
    again = Measuring(monkeypatch)
    assert len(run(PLAN, tmp_path, resume=True)) == 3
    assert again.asked == [3]


def test_a_folder_with_results_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with results is refused without --resume, with another plan, and on another machine."""
    Measuring(monkeypatch)
    run(PLAN, tmp_path, resume=False)
    with pytest.raises(UsageError, match=r"--resume"):
        run(PLAN, tmp_path, resume=False)
    with pytest.raises(UsageError, match="another plan"):
        run(replace(PLAN, idle_s=7.0), tmp_path, resume=True)
    file = tmp_path / environment.ENVIRONMENT_FILE
    file.write_text(file.read_text().replace("CPython", "PyPy"))
    with pytest.raises(UsageError, match="PyPy"):
        run(PLAN, tmp_path, resume=True)
