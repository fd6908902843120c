"""The recorded results: their report, and the answers in the README, are what the rows give today."""

import re
from pathlib import Path

import pytest

from experiments import report
from experiments.report_tables import summary_table
from experiments.results import RESULTS_FILE, load_rows
from experiments.studies.stock.questions import answers

ROOT = Path(__file__).resolve().parents[1]
RECORDED = sorted(file.parent for file in (ROOT / "experiments" / "recorded").glob(f"*/{RESULTS_FILE}"))
STUDY = ROOT / "experiments" / "recorded" / "stock-quick"


def name(folder: Path) -> str:
    """For the test's name."""
    return folder.name


@pytest.mark.slow
@pytest.mark.parametrize("folder", RECORDED, ids=name)
def test_a_recorded_report_is_what_its_rows_give(folder: Path) -> None:
    """Written anew from the rows, it is the same to the letter: no number and no sentence of it was edited."""
    assert report.markdown(folder) == (folder / report.MARKDOWN).read_text(encoding="utf-8")


def test_the_study_is_recorded() -> None:
    """And found where the tests and the README look for it."""
    assert STUDY in RECORDED


def test_the_readme_has_the_recorded_answers() -> None:
    """The table of the four answers is the recorded report's."""
    readme = (ROOT / "README.md").read_text()
    between = re.search(r"<!-- answers -->\n(.*?)\n<!-- end of answers -->", readme, re.DOTALL)
    assert between is not None
    assert between[1].strip() == summary_table(answers(load_rows(STUDY))).strip()
