"""The study's page names what the study has."""

from pathlib import Path

from experiments.studies.greeter import design, figures
from experiments.studies.greeter.claims import ENTRIES
from tests.unit.experiments.studies.greeter.judgements import SCALE, seen

PAGE = Path(design.__file__).with_name("README.md").read_text(encoding="utf-8")


def test_every_claim_is_on_the_page() -> None:
    """Every claim is on the page with its words and its place in the document."""
    for entry in ENTRIES:
        assert f"| {entry.text} | {entry.place} |" in PAGE, entry.text


def test_every_comparison_is_on_the_page() -> None:
    """Every comparison is on the page. The A/A pairs are named together."""
    for comparison in design.greeter(SCALE).comparisons:
        assert comparison.kind == "same" or f"`{comparison.name}`" in PAGE, comparison.name


def test_every_figure_is_on_the_page() -> None:
    """Every figure is on the page by its name."""
    for picture in figures.pictures(seen()):
        assert f"| figure `{picture.name}` |" in PAGE, picture.name


def test_every_level_that_varies_is_on_the_page() -> None:
    """Beside its factor."""
    for factor in ("language", "clients", "call_style", "in_flight", "client"):
        levels = {arm.setting.text(factor) for arm in design.greeter(SCALE).arms}
        (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{factor}`"))
        assert all(level in line for level in levels), factor
