"""A part that predicts: its first part is measured, then the prediction is written, and then the part is measured."""

from datetime import datetime
from pathlib import Path

import pytest

from experiments.commands import run
from experiments.design.arms import Arm, Group
from experiments.design.demands import Demands
from experiments.design.setting import Setting, setting
from experiments.design.sweep import Sweep, Windows
from experiments.judge import ratios
from experiments.judge.verdicts import Judgement
from experiments.kinds import prediction
from experiments.kinds.prediction import Foretold
from experiments.measure.bench import CATALOG, bench
from experiments.results import files
from experiments.show.content import Seen, read
from experiments.studies.pool_size.prediction import of_demands
from experiments.studies.study import Part, Scale, Study
from stock_service.rpc.errors import UsageError

ECHO = setting(service="echo", mix="echo", client="lean")
TURNS = Windows(warm_up_s=0.05, duration_s=0.1, in_turn=True)
SCALE = Scale(rounds=1, looks=(1,), clients=(1,))


def told(judgement: Judgement, of: Setting) -> Foretold:
    """Prediction from the processor time of the only arm of the first part."""
    cpu_us = ratios.arm_cpu_us(judgement.sweep, judgement.blocks[0], 0)
    assert cpu_us is not None
    return of_demands(of, Demands(cpu_us / 1e6, 0, 0, 0), cores=1)


def first(scale: Scale) -> Sweep:
    """The first part: one client."""
    return Sweep("try", "first", (Group((Arm(ECHO),)),), (), 1, scale.looks, turns=TURNS)


def main(scale: Scale) -> Sweep:
    """The main part: an open loop at a hundredth of the predicted rate."""
    rate_hz = 100.0 if scale.foretell is None else round(scale.foretell(ECHO).capacity_hz / 100, 1)
    return Sweep("try", "try", (Group((Arm(ECHO.but(rate_hz=rate_hz)),)),), (), 1, scale.looks, turns=TURNS)


def nothing(_: Seen) -> tuple[()]:
    """A study without a question."""
    return ()


STUDY = Study(
    "try",
    "?",
    {
        "try": Part("The sweep", main, nothing, first="first", foretell=told),
        "first": Part("One client", first, nothing),
    },
    {"smoke": SCALE},
)


def measure(folder: Path, resume: bool = False) -> None:
    """Measures the part into a folder."""
    run._measure(STUDY, STUDY.parts["try"], SCALE, bench(CATALOG), folder, resume)


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_what_is_foretold_is_written_before_it_is_measured(tmp_path: Path) -> None:
    """The prediction is written before the part is measured, whose rates follow from it. A resumed run reads it as it
    was written."""
    folder = tmp_path / "try"
    measure(folder)
    written_at, (one,) = prediction.load(folder)
    (block,) = files.counting(files.read_blocks(folder))
    (before,) = files.counting(files.read_blocks(folder / "first"))
    began, written, measured = map(datetime.fromisoformat, (before.started_at, written_at, block.started_at))
    assert began <= written <= measured
    assert one.setting == files.read_sweep(folder).arms[0].setting
    assert one.throughput_hz == pytest.approx(one.capacity_hz / 100, rel=0.01)
    text = (folder / prediction.FORETOLD_FILE).read_text()
    measure(folder, resume=True)
    assert (folder / prediction.FORETOLD_FILE).read_text() == text
    seen = read(folder, STUDY.parts).seen
    assert [each.setting for each in seen.foretold] == [one.setting]
    assert len(seen.after["first"].blocks) == 1


def test_a_folder_with_other_files_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    """A folder with other files is refused before the measurement, so that no results get a later prediction."""
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="a folder with other files"):
        measure(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]
