"""Steps of a curve: the verdict on each step, and steps without blocks."""

import pytest

from experiments.design.arms import Arm, Group
from experiments.design.setting import read
from experiments.design.sweep import Sweep
from experiments.judge.stats import Estimate
from experiments.judge.steps import Step, steps
from experiments.judge.verdicts import Judgement, Verdict, judge
from tests.unit.experiments.blocks import World, blocks

ARMS = tuple(Arm(read(f"sockets clients={clients}")) for clients in (1, 2, 3))


def curve(*means_us: float, number: int = 10, scatter: float = 0.002, failed: int | None = None) -> Judgement:
    """Sweep of this number of blocks, of arms with these means. All requests of one arm may fail."""
    sweep = Sweep("stock", "stock", (Group(ARMS),), (), 4, (10, 14))
    means = dict(zip(ARMS, means_us, strict=True))
    world = World(
        lambda arm, _: means[arm],
        block_noise=scatter,
        slice_noise=0.0,
        errors=lambda arm: 100 if failed is not None and arm == ARMS[failed] else 0,
    )
    return judge(sweep, blocks(sweep, number, world))


def directions(of: Judgement) -> list[Verdict]:
    """Verdicts on the steps that have a block."""
    return [each.verdict(of) for each in steps(of, ARMS)]


@pytest.mark.parametrize(
    ("means_us", "expected"),
    [
        ((100.0, 130.0, 150.0), [Verdict.GROWS, Verdict.GROWS]),
        ((100.0, 80.0, 150.0), [Verdict.FALLS, Verdict.GROWS]),
        ((100.0, 100.0, 150.0), [Verdict.FLAT, Verdict.GROWS]),
        ((100.0, 102.0, 102.0), [Verdict.GROWS, Verdict.FLAT]),
    ],
)
def test_each_step_leads_somewhere_by_itself(means_us: tuple[float, ...], expected: list[Verdict]) -> None:
    """Each step has its own verdict. A small rise that is certain is a rise."""
    found = curve(*means_us)
    assert directions(found) == expected
    ratios = [means_us[1] / means_us[0], means_us[2] / means_us[1]]
    assert [each.is_small(found.sweep.limits) for each in steps(found, ARMS)] == [0.95 < each < 1.05 for each in ratios]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [((1.01, 1.03), Verdict.INCONCLUSIVE), ((0.97, 0.99), Verdict.INCONCLUSIVE), ((0.98, 1.02), Verdict.FLAT)],
)
def test_a_step_whose_interval_excludes_1_is_not_flat(ends: tuple[float, float], expected: Verdict) -> None:
    """A small step is FLAT only if its interval has 1, whether the step rises or falls."""
    step = Step(ARMS[1], ARMS[0], Estimate(sum(ends) / 2, *ends, 10), p_holm=0.2)
    assert step.verdict(curve(100.0, 100.0, 100.0)) is expected


def test_a_step_is_open_where_it_is_not_certain_and_at_no_look() -> None:
    """A step is INCONCLUSIVE for blocks that scatter, and for seven of ten blocks."""
    assert directions(curve(100.0, 110.0, 120.0, scatter=0.5)) == [Verdict.INCONCLUSIVE] * 2
    assert directions(curve(100.0, 200.0, 400.0, number=7)) == [Verdict.INCONCLUSIVE] * 2


def test_a_step_with_an_arm_that_gates_left_out_is_missing() -> None:
    """A step is missing if gates left out one of the two arms. The other step is there."""
    assert [each.above for each in steps(curve(100.0, 130.0, 150.0, failed=0), ARMS)] == [ARMS[2]]
