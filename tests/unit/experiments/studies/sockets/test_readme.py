"""The study's page names what the study has."""

from pathlib import Path

from experiments.studies.sockets import SOCKETS, design
from experiments.studies.sockets.claims import ENTRIES

PAGE = Path(design.__file__).with_name("README.md").read_text(encoding="utf-8")


def test_every_claim_is_on_the_page() -> None:
    """Every claim is on the page in its words, with the command that decides it."""
    for entry in ENTRIES:
        assert any(entry.text in line and "`run sockets`" in line for line in PAGE.splitlines()), entry.text


def test_every_part_and_figure_is_on_the_page() -> None:
    """Every part and figure is on the page with its command."""
    assert all(f"`run {part}`" in PAGE for part in SOCKETS.parts)
    assert all(f"`graph_{number}` | `run sockets` |" in PAGE for number in range(1, 6))
