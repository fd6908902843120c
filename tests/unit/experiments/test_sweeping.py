"""The seed of a run: a new seed, unless a seed is given or a run is resumed."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.results import files
from experiments.sweeping import SEEDS, seed_for
from tests.unit.experiments.judge.synthetic_blocks import sweep


def test_each_run_draws_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each run has a new seed, and prints the option that repeats the seed. A given seed is used."""
    seeds = {seed_for(None) for _ in range(20)}
    assert len(seeds) > 15
    assert all(0 <= seed < SEEDS for seed in seeds)
    said = capsys.readouterr().err
    assert all(f"`--seed {seed}` draws" in said for seed in seeds)
    assert seed_for(1) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("inside", [".", "stock"])
def test_a_run_that_goes_on_keeps_its_seed(tmp_path: Path, inside: str) -> None:
    """A resumed run has the seed of its folder's sweep, also in a study's folder. An empty folder has no seed."""
    folder = tmp_path / inside
    folder.mkdir(exist_ok=True)
    files.write_plan(folder, files.SWEPT, replace(sweep(), seed=4711))
    assert seed_for(None, tmp_path) == 4711
    assert seed_for(12, tmp_path) == 12
    assert 0 <= seed_for(None, tmp_path / "absent") < SEEDS
