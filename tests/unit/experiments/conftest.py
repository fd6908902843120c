"""A whole folder of results for every test that needs one, made once."""

import shutil
from pathlib import Path

import pytest

from experiments import gallery, report
from tests.unit.experiments.planted_runs import sweep


@pytest.fixture(scope="session")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole sweep, its requests' own times kept, drawn and reported."""
    folder = sweep(tmp_path_factory.mktemp("untouched"), keep_records=True)
    gallery.draw(folder)
    report.write(folder)
    return folder


@pytest.fixture
def folder(untouched: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return shutil.copytree(untouched, tmp_path / "folder")
