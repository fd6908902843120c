"""The study's page names what the study has."""

from pathlib import Path

from experiments.studies.pool_size import POOL_SIZE, design
from experiments.studies.pool_size.answers import answers
from experiments.studies.pool_size.claims import ENTRIES
from experiments.studies.pool_size.figures import pictures, sections
from tests.unit.experiments.studies.pool_size.planted import seen

PAGE = Path(design.__file__).with_name("README.md").read_text(encoding="utf-8")


def test_every_claim_is_on_the_page() -> None:
    """Every claim is on the page in its words."""
    assert [entry.text for entry in ENTRIES if f"| {entry.text} |" not in PAGE] == []


def test_every_question_figure_and_table_is_on_the_page() -> None:
    """Every question, figure and table is on the page by its name. A question's figure exists."""
    found = seen()
    figures = {picture.name for picture in pictures(found)}
    assert [name for name in figures if f"| figure `{name}` |" not in PAGE] == []
    assert {answer.figure for answer in answers(found)} <= figures
    assert [each.title for each in sections(found)[:4] if f'"{each.title.partition(":")[0]}"' not in PAGE] == []


def test_every_level_is_on_the_page() -> None:
    """Every level is on the page, in the row of its factor."""
    arms = design.pool_size(POOL_SIZE.scales["paper"]).arms
    for factor in ("workers", "connections", "io_ms", "cpu_ms", "hash_ms"):
        (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{factor}`"))
        levels = {arm.setting.text(factor) for arm in arms if arm.setting["rate_hz"] is None}
        mixed = {"0.25", "4"} if factor == "io_ms" else set()
        assert [level for level in levels - mixed if level not in line] == [], factor
