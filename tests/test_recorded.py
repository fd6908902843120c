"""The recorded results: their report, and the answers in the README, are what the rows give today."""

import re
import shutil
from pathlib import Path

import pytest

from experiments import report
from experiments.environment import ENVIRONMENT_FILE
from experiments.report_tables import summary_table
from experiments.results import RESULTS_FILE, load_rows
from experiments.run_records import RUNS_FILE
from experiments.studies.stock.questions import answers

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "experiments" / "recorded" / "stock-quick"


@pytest.mark.slow
def test_the_recorded_report_is_what_its_rows_give(tmp_path: Path) -> None:
    """Written anew from the rows, it is the same to the letter: no number and no sentence of it was edited."""
    for name in (RESULTS_FILE, RUNS_FILE, ENVIRONMENT_FILE):
        shutil.copy(RECORDED / name, tmp_path)
    markdown, _ = report.write(tmp_path)
    assert markdown.read_text() == (RECORDED / "report.md").read_text()


def test_the_readme_has_the_recorded_answers() -> None:
    """The table of the four answers is the recorded report's."""
    readme = (ROOT / "README.md").read_text()
    between = re.search(r"<!-- answers -->\n(.*?)\n<!-- end of answers -->", readme, re.DOTALL)
    assert between is not None
    assert between[1].strip() == summary_table(answers(load_rows(RECORDED))).strip()
