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


def refused(report_text: str) -> str:
    """How many of a report's comparisons gates refuse, as the README has it."""
    some = re.search(r"They refuse (\d+) of the (\d+) comparisons of this report", report_text)
    if some:
        return f"{some[1]} of {some[2]}"
    if "## What the gates say" not in report_text:
        return "not asked: goals, met or missed"
    none = re.search(r"None of them refuses any of the (\d+) comparisons", report_text)
    assert none or "No comparison is declared" in report_text
    return f"0 of {none[1]}" if none else "none declared"


def test_the_readme_says_how_much_gates_refuse() -> None:
    """Of the comparisons of each recorded report, in the line that leads to it; and of the study's, in a sentence."""
    readme = (ROOT / "README.md").read_text()
    lines = re.findall(r"\[`quick`\]\(experiments/recorded/([\w-]+)/report\.md\) \| ([^|;]*?)(?:;[^|]*)? \|", readme)
    reports = {folder.name: (folder / report.MARKDOWN).read_text(encoding="utf-8") for folder in RECORDED}
    assert dict(lines) == {folder: refused(text) for folder, text in reports.items()}
    some, every = refused(reports[STUDY.name]).split(" of ")
    assert f"Gates refuse {some} of its {every} comparisons" in readme


def test_the_readme_has_the_recorded_answers() -> None:
    """The table of the four answers is the recorded report's."""
    readme = (ROOT / "README.md").read_text()
    between = re.search(r"<!-- answers -->\n(.*?)\n<!-- end of answers -->", readme, re.DOTALL)
    assert between is not None
    assert between[1].strip() == summary_table(answers(load_rows(STUDY))).strip()
