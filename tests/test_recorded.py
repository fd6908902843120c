"""The recordings: all that is computed from their blocks is what their folders hold."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from experiments.commands import index as index_command
from experiments.commands import recording
from experiments.commands.index import HERE, made, recordings
from experiments.commands.recording import computed
from experiments.judge.agreement import SPREAD_FROM
from experiments.judge.verdicts import judge
from experiments.recommend.words import DESCRIBED_ERROR, DESCRIBED_TAIL_ERROR
from experiments.results.files import SWEEP_FILE, counting, read_blocks, read_sweep
from experiments.show.report import index
from experiments.studies import STUDIES
from experiments.studies.pool_size.beside import beside
from experiments.verify import differences
from tests.unit.experiments.studies.test_readmes import sections

ROOT = Path(__file__).resolve().parents[1]
RECORDED = sorted(file.parent for file in (ROOT / "experiments" / "studies").glob(f"*/recorded/*/{SWEEP_FILE}"))


@pytest.fixture(scope="module", autouse=True)
def _read_once() -> Iterator[None]:
    """Each recording is read and judged once for all tests here."""
    once = cache(recording.read)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "read", once)
        patch.setattr(index_command, "read", once)
        yield


@pytest.mark.slow
@pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: f"{folder.parts[-3]}-{folder.name}")
def test_a_recording_is_what_its_blocks_give(folder: Path) -> None:
    """Every row and sentence, computed anew: none was edited, and the sweep was not cut short."""
    assert list(differences(folder, computed)) == []


OF_A_CARD = [folder for folder in RECORDED if folder.name == "quick"]


@pytest.mark.slow
@pytest.mark.parametrize("folder", OF_A_CARD, ids=lambda folder: folder.parts[-3])
def test_every_claim_is_listed(folder: Path) -> None:
    """Each of the recorded card stands on the study's page, word for word."""
    listed = sections((folder.parents[1] / "README.md").read_text(encoding="utf-8")).get("Claims", "")
    assert [claim.text for claim in recording.read(folder).claims if f"| {claim.text} |" not in listed] == []


def test_the_studies_are_recorded() -> None:
    """Each where its study's page says."""
    assert {folder.parts[-3] for folder in RECORDED} >= {"stock"}


@pytest.mark.slow
def test_the_index_is_of_the_recordings() -> None:
    """Made anew, it is what is committed; every study that has a recording of its main part is in it."""
    assert index.markdown(made(list(recordings()), HERE)) == (HERE / "README.md").read_text(encoding="utf-8")
    recorded = [name for name in STUDIES if HERE / name / "recorded" / "quick" in RECORDED]
    assert recorded
    assert re.findall(r"^## (\w+)$", (HERE / "README.md").read_text(encoding="utf-8"), re.MULTILINE) == recorded


RUNS = [folder for folder in RECORDED if folder.parts[-3] == "stock" and folder.name.startswith("quick")]


def test_the_readme_gives_the_ratios_of_the_runs() -> None:
    """Beside each comparison's mark stand the least and the greatest ratio of the recorded runs, and their number. Two
    make no range: "and" stands between their ratios, and "to" between those of three or more."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    marked = dict(re.findall(r"(\d+\.\d+ (?:to|and) \d+\.\d+)[^<\n]*<!-- (\w+) -->", text))
    between = "to" if len(RUNS) >= SPREAD_FROM else "and"
    ratios = [judge(read_sweep(folder), counting(read_blocks(folder))).judged for folder in RUNS]
    assert set(marked.values()) == {name for name, one in ratios[0].items() if one.comparison.family == "headline"}
    for shown, name in marked.items():
        seen = [run[name].typical.value for run in ratios]
        decimals = len(shown.partition(" ")[0].partition(".")[2])
        assert shown == f"{min(seen):.{decimals}f} {between} {max(seen):.{decimals}f}", name
    assert f"of {len(RUNS)} runs" in text


def test_advice_states_the_errors_that_were_seen() -> None:
    """As far off as ``recommend`` says are nine of ten rates, and nine of ten tails at 50 and 70 % of the capacity."""
    every = beside(recording.read(ROOT / "experiments/studies/pool_size/recorded/quick").seen)
    rates = [abs(each.ratio.value - 1) for each in every if not each.is_open and each.ratio is not None]
    tails = [abs(each.tail_ratio - 1) for each in every if each.share and each.share < 0.75 and each.tail_ratio]
    assert len(rates) > 30
    assert len(tails) == 6
    for errors, stated in ((rates, DESCRIBED_ERROR), (tails, DESCRIBED_TAIL_ERROR)):
        assert sum(error <= stated for error in errors) >= 0.9 * len(errors)
