"""Durable trades: the sentences on planted times, and the goals that they meet."""

from collections.abc import Mapping

from experiments.design.arms import Arm
from experiments.judge.verdicts import judge
from experiments.show.content import Seen
from experiments.studies.server_cost import SERVER_COST, durable
from experiments.studies.study import Scale
from tests.unit.experiments.blocks import World, blocks

PART = SERVER_COST.parts[durable.PART]

GOOD = {("memory", 64): 900.0, ("sqlite", 64): 1500.0, ("sync", 64): 16500.0}
GOOD |= {("sqlite", 16): 700.0, ("sync", 16): 4000.0, ("sqlite", 1): 220.0, ("sync", 1): 200.0}
"""Mean times in µs, by the server and its traders: every goal is met."""


def seen(times_us: Mapping[tuple[str, int], float]) -> Seen:
    """Ten blocks in which requests take these times."""
    sweep = durable.sweep(Scale(rounds=3, looks=(10, 14), clients=(1,)))

    def mean_us(arm: Arm, _: str) -> float:
        name = "sync" if arm.setting["service"] == durable.SYNCS else arm.setting.text("store")
        return times_us[name, arm.connections]

    return Seen(judge(sweep, blocks(sweep, 10, World(mean_us, slice_noise=0.001))))


def test_goals_are_met_or_missed_by_their_interval() -> None:
    """Trades with a commit each miss the goals of 16 and 64 traders. A slow commit misses the goal of one trader."""
    (section,) = PART.sections(seen(GOOD))
    assert section.text.count("| met |") == len(durable.GOALS)
    slow = GOOD | {("sqlite", 64): 16500.0, ("sqlite", 16): 4000.0, ("sqlite", 1): 300.0}
    (section,) = PART.sections(seen(slow))
    assert section.text.count("| MISSED |") == len(durable.GOALS)


def test_without_blocks_nothing_is_told() -> None:
    """Without blocks the answer has no ratio and no figure."""
    (answer,) = PART.answers(Seen(judge(seen(GOOD).main.sweep, [])))
    assert (answer.sentence, answer.figure) == ("Not measured.", None)
