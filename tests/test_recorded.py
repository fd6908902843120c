"""The recordings: all that is computed from their blocks is what their folders hold."""

from pathlib import Path

import pytest

from experiments.commands.recording import computed
from experiments.results.files import SWEEP_FILE
from experiments.verify import differences

ROOT = Path(__file__).resolve().parents[1]
RECORDED = sorted(file.parent for file in (ROOT / "experiments" / "studies").glob(f"*/recorded/*/{SWEEP_FILE}"))


@pytest.mark.slow
@pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: f"{folder.parts[-3]}-{folder.name}")
def test_a_recording_is_what_its_blocks_give(folder: Path) -> None:
    """Every row and sentence, computed anew: none was edited, and the sweep was not cut short."""
    assert list(differences(folder, computed)) == []


def test_the_studies_are_recorded() -> None:
    """Each where its study's page says."""
    assert {folder.parts[-3] for folder in RECORDED} >= {"stock"}
