"""The study's page names what the study has."""

from pathlib import Path

import pytest

from experiments.studies.stock import sweeps
from experiments.studies.stock.claims import ENTRIES
from tests.unit.experiments.studies.stock.judgements import SCALE

PAGE = Path(sweeps.__file__).with_name("README.md").read_text(encoding="utf-8")


def test_every_claim_is_on_the_page() -> None:
    """Every claim is on the page in its words, with the command that decides it."""
    for entry in ENTRIES:
        assert any(entry.text in line and f"`run {entry.part}`" in line for line in PAGE.splitlines()), entry.text


def test_every_comparison_of_the_main_part_is_on_the_page() -> None:
    """Every comparison of the main part is on the page. The A/A pairs are named together."""
    for comparison in sweeps.stock(SCALE).comparisons:
        assert comparison.kind == "same" or f"`{comparison.name}`" in PAGE


@pytest.mark.parametrize(
    "part",
    [
        "pool_fills",
        "past_pool",
        "executors",
        "socket_trade",
        "pool_by_clients",
        "updater",
        "lock_strategies",
        "client_kind",
        "dispatch",
        "connection_policy",
        "offered_load",
        "lock_waits",
        "stages",
    ],
)
def test_every_part_is_on_the_page(part: str) -> None:
    """Every part is on the page with its command."""
    assert f"| `run {part}` |" in PAGE
