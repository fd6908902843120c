"""The study's page names what the study has."""

from pathlib import Path

import pytest

from experiments.studies import STUDIES
from experiments.studies.sort import design
from experiments.studies.sort.claims import ENTRIES
from tests.unit.experiments.studies.sort.planted import SCALE

PAGE = Path(design.__file__).with_name("README.md").read_text(encoding="utf-8")


def test_every_claim_is_on_the_page() -> None:
    """Every claim is on the page in its words, with the command that decides it."""
    for entry in ENTRIES:
        assert any(entry.text in line and f"`run {entry.part}`" in line for line in PAGE.splitlines()), entry.text


def test_every_comparison_of_the_main_part_is_on_the_page() -> None:
    """Every comparison of the main part is on the page. The A/A pairs are named together."""
    for comparison in design.sort(SCALE).comparisons:
        assert comparison.kind == "same" or f"`{comparison.name}`" in PAGE


@pytest.mark.parametrize("part", STUDIES["sort"].parts)
def test_every_part_is_on_the_page(part: str) -> None:
    """Every part is on the page with its command."""
    assert f"`run {part}`" in PAGE
