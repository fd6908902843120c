"""The recordings: their folders hold the values that their blocks give, and their pages name what they have."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from experiments.commands import index as index_command
from experiments.commands import pages, recording
from experiments.commands import verify as verify_command
from experiments.commands.index import HERE
from experiments.commands.verify import expected
from experiments.design.arms import Arm
from experiments.design.setting import setting
from experiments.judge.verdicts import Judgement, judge
from experiments.recommend.words import DESCRIBED_ERROR, DESCRIBED_TAIL_ERROR
from experiments.results.files import SWEEP_FILE
from experiments.show import report
from experiments.show.content import Content, content
from experiments.studies import PARTS, STUDIES
from experiments.studies.pool_size.beside import beside
from experiments.verify import differences
from stock_service.rpc.concurrency import EXECUTORS
from tests.unit.experiments.studies.test_readmes import sections

ROOT = Path(__file__).resolve().parents[1]
RECORDED = sorted(file.parent for file in (ROOT / "experiments" / "studies").glob(f"*/recorded/*/{SWEEP_FILE}"))
INSIDE = sorted({file.parent for file in (ROOT / "experiments" / "studies").rglob(SWEEP_FILE)} - {*RECORDED})


@pytest.fixture(scope="module", autouse=True)
def _read_once() -> Iterator[None]:
    """Each recording is read and judged once for all tests here."""
    once = cache(recording.read)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "read", once)
        patch.setattr(index_command, "read", once)
        patch.setattr(pages, "read", once)
        patch.setattr(verify_command, "read", once)
        yield


@pytest.mark.slow
@pytest.mark.parametrize("folder", [*RECORDED, *INSIDE], ids=lambda folder: "-".join(folder.parts[-4:]))
def test_a_recording_is_what_its_blocks_give(folder: Path) -> None:
    """Every row and sentence, computed anew: none was edited, and the sweep was not cut short. A part that is recorded
    inside another recording has the rows of its blocks, too."""
    assert list(differences(folder, expected)) == []


OF_EACH_PART = [folder for folder in RECORDED if not folder.name.startswith("quick-")]
"""All recordings, without the second one of a part that is recorded twice."""

IN_ITS_PLACE = dict(zip(EXECUTORS, [*EXECUTORS][1:] + [*EXECUTORS][:1], strict=True))
"""Executors for a recording that is made again, by the recorded ones."""


def untrue(page: Content, also: str = "") -> list[str]:
    """Executors that a page names, in its texts or figures, and that its recording lacks, and the recordings beside
    it."""
    judgements = (page.seen.main, *page.seen.after.values(), *page.seen.beside.values())
    has = {arm.setting.text("executor") for each in judgements for arm in each.sweep.arms}
    told = (also, report.markdown(page), *(f"{each.title} {each.alternative}" for each in page.pictures))
    text = " ".join(told).lower()
    lacking = {level: setting(transport="sockets", executor=level).executor for level in EXECUTORS.keys() - has}
    return [name for names in lacking.items() for name in names if name in text]


def at_another(arm: Arm) -> Arm:
    """The arm as if another executor had been recorded."""
    levels = dict(arm.setting.levels)
    executor = str(levels["executor"])
    return replace(arm, setting=setting(**levels | {"executor": IN_ITS_PLACE.get(executor, executor)}))


def re_made(of: Judgement) -> Judgement:
    """The same blocks, as if its servers had had other executors. Titles were made with the sweep, and stay."""
    groups = tuple(replace(each, arms=tuple(map(at_another, each.arms))) for each in of.sweep.groups)
    comparisons = tuple(
        replace(each, title=f"title {number}", above=at_another(each.above), below=at_another(each.below))
        for number, each in enumerate(of.sweep.comparisons)
    )
    return judge(replace(of.sweep, groups=groups, comparisons=comparisons), of.blocks)


@pytest.mark.slow
@pytest.mark.parametrize("folder", OF_EACH_PART, ids=lambda folder: f"{folder.parts[-3]}-{folder.name}")
def test_a_page_names_the_executors_of_its_recording(folder: Path) -> None:
    """As they were recorded; and where the same blocks are those of other executors, it names those.

    So does the page that its version wrote, where that is kept, but for the title of a part: it named a kind of server.
    The document that a study reproduces may name others.
    """
    page = replace(recording.read(folder), document="")
    written = [file.read_text(encoding="utf-8").partition("\n")[2] for file in folder.glob(report.MARKDOWN)]
    assert untrue(page, " ".join(written)) == []
    after, beside = ({n: re_made(j) for n, j in of.items()} for of in (page.seen.after, page.seen.beside))
    seen = replace(page.seen, main=re_made(page.seen.main), after=after, beside=beside)
    assert untrue(content(PARTS[page.seen.main.sweep.part][1], seen)) == []


OF_A_CARD = [folder for folder in RECORDED if folder.name == "quick"]


@pytest.mark.slow
@pytest.mark.parametrize("folder", OF_A_CARD, ids=lambda folder: folder.parts[-3])
def test_every_claim_is_listed(folder: Path) -> None:
    """Each of the recorded card stands on the study's page, word for word."""
    listed = sections((folder.parents[1] / "README.md").read_text(encoding="utf-8")).get("Claims", "")
    assert [claim.text for claim in recording.read(folder).claims if f"| {claim.text} |" not in listed] == []


@pytest.mark.slow
def test_every_page_says_what_the_recordings_give() -> None:
    """Each number of a measurement, and which server it is of: where this fails, ``pages`` writes it."""
    assert [page for page, text in pages.written() if text != page.read_text(encoding="utf-8")] == []


OF_THE_FRONT_PAGE = ROOT / "experiments/studies/stock/recorded/quick"


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    [OF_THE_FRONT_PAGE, *(each for each in RECORDED if each.parts[-3] == "server_cost")],
    ids=lambda each: each.name,
)
def test_answers_are_short(folder: Path) -> None:
    """Sentences have at most 20 words, without intervals. An answer on the front page has at most four sentences."""
    for answer in recording.read(folder).answers:
        sentences = re.split(r"(?<=[.!?]) (?=[A-Z0-9])", re.sub(r" \([^)]*\)", "", answer.sentence))
        assert [each for each in sentences if len(re.findall(r"\w\S*", each)) > 20] == []
        assert len(sentences) <= 4 or folder != OF_THE_FRONT_PAGE


def test_the_front_page_is_short() -> None:
    """The front page has at most a hundred lines."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 100


def test_every_study_that_is_recorded_is_in_the_index() -> None:
    """The index has every recorded study, by its main part's recording."""
    told = [name for name in STUDIES if HERE / name / "recorded" / "quick" in RECORDED]
    assert told
    assert re.findall(r"^## (\w+)$", (HERE / "README.md").read_text(encoding="utf-8"), re.MULTILINE) == told


def test_advice_states_the_errors_that_were_seen() -> None:
    """Nine of ten rates, and five of six tails at 50 and 70 % of capacity, err by no more than ``recommend`` says."""
    every = beside(recording.read(ROOT / "experiments/studies/pool_size/recorded/quick").seen)
    rates = [abs(each.ratio.value - 1) for each in every if not each.is_open and each.ratio is not None]
    tails = [abs(each.tail_ratio.value - 1) for each in every if each.share and each.share < 0.75 and each.tail_ratio]
    assert len(rates) > 30
    assert len(tails) == 6
    assert sum(error <= DESCRIBED_ERROR for error in rates) >= 0.9 * len(rates)
    assert sum(error <= DESCRIBED_TAIL_ERROR for error in tails) >= 5
