"""Blocks apart from sweeps: each kept at once, gone on with, refused where they would not be of one plan."""

from pathlib import Path

import pytest

from experiments.design.alone import Alone
from experiments.measure.alone import KEPT
from experiments.results import alone, environment
from experiments.results.alone import Repetition
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.apart_seen import ALONE, repetition

pytestmark = pytest.mark.slow  # looks at the machine: some 0.2 s


class Measuring:
    """Measures what is planted, and fails at one number."""

    def __init__(self, fails_at: int = 0) -> None:
        self.asked: list[int] = []
        self._fails_at = fails_at

    def __call__(self, number: int) -> Repetition:
        if number == self._fails_at:
            raise InterruptedError
        self.asked.append(number)
        return repetition(number, 130, (15, 17, 29), 0.0)


def test_every_repetition_is_kept_beside_the_environment(tmp_path: Path) -> None:
    """In a folder that need not be there; the environment is looked at twice."""
    folder = tmp_path / "new"
    seen = KEPT.run(ALONE, 3, folder, False, Measuring())
    assert [each.number for each in seen] == [1, 2, 3]
    assert alone.load(folder) == (ALONE, seen)
    assert environment.load(folder).after is not None


def test_what_was_interrupted_is_gone_on_with(tmp_path: Path) -> None:
    """Whole repetitions stay; the one that failed is measured."""
    with pytest.raises(InterruptedError):
        KEPT.run(ALONE, 3, tmp_path, False, Measuring(fails_at=3))
    again = Measuring()
    assert len(KEPT.run(ALONE, 3, tmp_path, True, again)) == 3
    assert again.asked == [3]


def test_a_folder_with_results_is_not_written_over(tmp_path: Path) -> None:
    """Without being told to go on; nor with another plan; nor where they are of another machine."""
    KEPT.run(ALONE, 1, tmp_path, False, Measuring())
    with pytest.raises(UsageError, match=r"--resume"):
        KEPT.run(ALONE, 2, tmp_path, False, Measuring())
    other = Alone("study", "part", ALONE.servers, ALONE.repetitions, 7.0)
    with pytest.raises(UsageError, match="another plan"):
        KEPT.run(other, 2, tmp_path, True, Measuring())
    file = tmp_path / environment.ENVIRONMENT_FILE
    file.write_text(file.read_text().replace("CPython", "PyPy"))
    with pytest.raises(UsageError, match="PyPy"):
        KEPT.run(ALONE, 2, tmp_path, True, Measuring())
