"""Judgements of blocks that were never run: means planted by arm, with a scatter over blocks that a seed repeats.

``only`` cuts a sweep down to the arms that a test is about, since each arm costs time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from experiments.design.arms import Arm, Group
from experiments.design.sweep import Sweep
from experiments.judge.verdicts import Judgement, judge
from experiments.results.observed import Window
from experiments.results.stages import StageSummary
from experiments.show.content import Seen
from experiments.studies.stock import sweeps
from experiments.studies.study import Scale
from tests.unit.experiments.blocks import World, blocks

SCALE = Scale(rounds=2, looks=(10, 14), clients=(1, 5))

MEAN_US = 500.0
"""Mean of an arm without a planted one."""


def planted(
    means_us: Mapping[Arm, float] | None = None,
    scatter: float = 0.002,
    errors: Sequence[Arm] = (),
    windows: Mapping[Arm, Sequence[Window]] | None = None,
    stages: Mapping[Arm, Mapping[str, StageSummary]] | None = None,
    **others: Any,
) -> World:
    """A world with these means by arm, of any request type; the slices of a block do not scatter beside it."""
    means, seen = means_us or {}, windows or {}
    return World(
        lambda arm, _: means.get(arm, MEAN_US),
        block_noise=scatter,
        slice_noise=0.0,
        effective=2000.0,
        errors=lambda arm: 100 if arm in errors else 0,
        windows=lambda arm: tuple(seen.get(arm, ())),
        stages=lambda arm: (stages or {}).get(arm, {}),
        **others,
    )


def only(sweep: Sweep, *names: str, arms: Iterable[Arm] = ()) -> Sweep:
    """The sweep with the comparisons of these names alone, and with their arms and further arms."""
    comparisons = tuple(each for each in sweep.comparisons if each.name in names)
    kept = {*arms, *(arm for each in comparisons for arm in (each.above, each.below))}
    own = ((tuple(arm for arm in group.arms if arm in kept), group.times) for group in sweep.groups)
    return replace(sweep, groups=tuple(Group(arms, times) for arms, times in own if arms), comparisons=comparisons)


def judgement(sweep: Sweep, number: int, world: World) -> Judgement:
    """This number of blocks, judged."""
    return judge(sweep, blocks(sweep, number, world))


@cache
def unplanted(sweep: Callable[[Scale], Sweep] = sweeps.stock, number: int = 10) -> Judgement:
    """A part with nothing planted; judged once for all tests of a process."""
    return judgement(sweep(SCALE), number, planted())


def seen(sweep: Callable[[Scale], Sweep], number: int = 10, world: World | None = None) -> Seen:
    """A part alone, at the tests' scale."""
    return Seen(judgement(sweep(SCALE), number, world) if world else unplanted(sweep, number), {})
