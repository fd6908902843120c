"""The seed of a run: drawn anew, unless it is given or a run is gone on with."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.results import files
from experiments.sweeping import SEEDS, seed_for
from tests.unit.experiments.judge.synthetic_blocks import sweep


def test_each_run_draws_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each run draws its seed and says how to repeat it. A given seed stays."""
    seeds = {seed_for(None) for _ in range(20)}
    assert len(seeds) > 15
    assert all(0 <= seed < SEEDS for seed in seeds)
    said = capsys.readouterr().err
    assert all(f"`--seed {seed}` draws" in said for seed in seeds)
    assert seed_for(1) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("inside", [".", "stock"])
def test_a_run_that_goes_on_keeps_its_seed(tmp_path: Path, inside: str) -> None:
    """A resumed run keeps the seed of its folder's sweep, or of a study's folder around it. An empty folder has
    none."""
    folder = tmp_path / inside
    folder.mkdir(exist_ok=True)
    files.write_plan(folder, files.SWEPT, replace(sweep(), seed=4711))
    assert seed_for(None, tmp_path) == 4711
    assert seed_for(12, tmp_path) == 12
    assert 0 <= seed_for(None, tmp_path / "absent") < SEEDS
