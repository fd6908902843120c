"""A page names the executors that its recording has, and no other: of every committed recording, and of one re-made."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.design.arms import Arm
from experiments.design.setting import recorded
from experiments.judge.verdicts import Judgement, judge
from experiments.show import report
from experiments.show.content import Content, content, read
from experiments.studies import PARTS
from stock_service.rpc.concurrency import EXECUTORS

ROOT = Path(__file__).resolve().parents[4]

RECORDINGS = sorted(file.parent for file in (ROOT / "experiments" / "studies").glob("*/recorded/*/sweep.json"))

SHOWN = {name: part for name, (_, part) in PARTS.items()}

IN_ITS_PLACE = dict(zip(EXECUTORS, [*EXECUTORS][1:] + [*EXECUTORS][:1], strict=True))
"""The executors of a recording that is re-made."""


def untrue(page: Content, also: str = "") -> list[str]:
    """Executors that a page names, in its texts or figures, and that its recording lacks."""
    judgements = (page.seen.main, *page.seen.after.values())
    has = {arm.setting.text("executor") for each in judgements for arm in each.sweep.arms}
    told = (also, report.markdown(page), *(f"{each.title} {each.alternative}" for each in page.pictures))
    text = " ".join(told).lower()
    lacking = {
        level: recorded({"transport": "sockets", "executor": level}).executor for level in EXECUTORS.keys() - has
    }
    return [name for names in lacking.items() for name in names if name in text]


def at_another(arm: Arm) -> Arm:
    """The arm as if another executor had been recorded."""
    levels = dict(arm.setting.levels)
    executor = str(levels["executor"])
    return replace(arm, setting=recorded(levels | {"executor": IN_ITS_PLACE.get(executor, executor)}))


def re_made(of: Judgement) -> Judgement:
    """The same blocks, as if its servers had had other executors; titles were made with the sweep, and say nothing."""
    groups = tuple(replace(each, arms=tuple(map(at_another, each.arms))) for each in of.sweep.groups)
    comparisons = tuple(
        replace(each, title=f"title {number}", above=at_another(each.above), below=at_another(each.below))
        for number, each in enumerate(of.sweep.comparisons)
    )
    return judge(replace(of.sweep, groups=groups, comparisons=comparisons), of.blocks)


def test_every_executor_has_another_in_its_place() -> None:
    """So a new one is tried, too."""
    assert IN_ITS_PLACE.keys() == set(IN_ITS_PLACE.values()) == EXECUTORS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: "-".join(folder.parts[-3::2]))
def test_a_page_names_the_executors_of_its_recording(folder: Path) -> None:
    """As they were recorded; and where the same blocks are those of other executors, it names those.

    So does the page that its version wrote, where that is kept, but for the title of a part: it named a kind of server.
    """
    page = read(folder, SHOWN)
    written = [file.read_text(encoding="utf-8").partition("\n")[2] for file in folder.glob(report.MARKDOWN)]
    assert untrue(page, " ".join(written)) == []
    seen = replace(page.seen, main=re_made(page.seen.main), after={n: re_made(j) for n, j in page.seen.after.items()})
    assert untrue(content(SHOWN[page.seen.main.sweep.part], seen)) == []
