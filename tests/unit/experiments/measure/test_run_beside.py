"""Runs of kinds other than sweeps: writing, resuming, and refusals of other folders."""

from collections.abc import Sequence
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


def run(folder: Path, resume: bool) -> Sequence[Block[StartSeen]]:
    """Runs every block that the folder lacks."""
    return run_beside(PLAN, folder, resume, ON, lambda _: None)


def test_an_interrupted_run_is_resumed_on_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted run is resumed in its folder, with the environment before and after the run. Another machine is
    refused. ``test_runner.py`` has the other refusals."""
    folder = tmp_path / "new"
    Measuring(monkeypatch, fails_at=3)
    with pytest.raises(InterruptedError):
        run(folder, resume=False)
    again = Measuring(monkeypatch)
    seen = run(folder, resume=True)
    assert again.asked == [3]
    assert [each.number for each in seen] == [1, 2, 3]
    assert KINDS["standalone"].load(folder) == (PLAN, seen)
    assert environment.load(folder).after is not None
    file = folder / environment.ENVIRONMENT_FILE
    file.write_text(file.read_text().replace("CPython", "PyPy"))
    with pytest.raises(UsageError, match="PyPy"):
        run(folder, resume=True)
