"""Judgements of blocks that were never run: means planted by arm, with a scatter over blocks that a seed repeats."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from clients.load.record.times import Times
from experiments.design.arms import Arm
from experiments.design.slots import order
from experiments.design.sweep import Sweep
from experiments.judge.verdicts import Judgement, judge
from experiments.results.observed import ALL, Answered, ArmSeen, Block, RoundSeen, SliceColumns, Window
from experiments.results.stages import StageSummary, StageTimes
from experiments.show.content import Seen
from experiments.studies.study import Scale

SCALE = Scale(rounds=4, looks=(10, 14), clients=(1, 5))

MEAN_US = 500.0
"""Of an arm that nothing is planted for."""

REQUESTS = 100
"""Counted in a slice."""


@dataclass(frozen=True, slots=True)
class Planted:
    """What the blocks are to hold, by arm; of the others, ``MEAN_US`` and nothing else."""

    means_us: Mapping[Arm, float] = field(default_factory=dict)
    scatter: float = 0.002
    """The standard deviation over blocks of an arm's log mean."""
    later: Mapping[Arm, float] = field(default_factory=dict)
    """By this factor the second half of each block's rounds is slower."""
    errors: Mapping[Arm, int] = field(default_factory=dict)
    pauses: Mapping[Arm, float] = field(default_factory=dict)
    """By this factor one slice of a block is slower."""
    windows: Mapping[Arm, Sequence[Window]] = field(default_factory=dict)
    stages: Mapping[Arm, Mapping[str, StageSummary]] = field(default_factory=dict)
    client_share: float = 0.5
    """Of the time, the load side's processor time."""


def judgement(sweep: Sweep, blocks: int, planted: Planted) -> Judgement:
    """So many blocks, judged."""
    rng = random.Random(1)
    return judge(sweep, [_block(sweep, number, planted, rng) for number in range(1, blocks + 1)])


def seen(sweep: Callable[[Scale], Sweep], blocks: int = 10, planted: Planted | None = None) -> Seen:
    """A part alone, at the tests' scale."""
    return Seen(judgement(sweep(SCALE), blocks, planted or Planted()), {})


def stage_summary(wait_us: float, locked: int = 1000, queue_us: float = 5.0) -> StageSummary:
    """Stages of a thousand requests that waited so long for the lock, and for a thread."""
    other = StageTimes(10.0, None, None)
    wait, queue = StageTimes(wait_us, None, None), StageTimes(queue_us, None, None)
    total = StageTimes(30.0 + wait_us + queue_us, None, None)
    return StageSummary(1000, locked, 5, queue, other, wait, other, other, total, 0, 0.0)


def _block(sweep: Sweep, number: int, planted: Planted, rng: random.Random) -> Block:
    factors = [planted.means_us.get(arm, MEAN_US) * rng.lognormvariate(0, planted.scatter) for arm in sweep.arms]
    rounds, appearances, arms, sums_ns = [], [], [], []
    paused: set[int] = set()
    for turn, appearance, place in order(sweep, f"{number}"):
        arm = sweep.arms[place]
        mean_us = factors[place] * (planted.later.get(arm, 1.0) if turn >= sweep.rounds // 2 else 1.0)
        if place not in paused:
            mean_us *= planted.pauses.get(arm, 1.0)
            paused.add(place)
        rounds.append(turn)
        appearances.append(appearance)
        arms.append(place)
        sums_ns.append(round(mean_us * 1000 * REQUESTS))
    size = len(arms)
    names = (ALL, "lookup", "trade")
    columns = SliceColumns(
        round=rounds,
        appearance=appearances,
        arm=arms,
        fate=[0] * size,
        counted_ns=[20_000_000] * size,
        requests=[REQUESTS] * size,
        active_ns=[1_000_000] * size,
        server_cpu_ns=[1_000_000] * size,
        client_cpu_ns=[round(1_000_000 * planted.client_share)] * size,
        wire_bytes=[0] * size,
        counts=dict.fromkeys(names, [REQUESTS] * size),
        sums_ns=dict.fromkeys(names, sums_ns),
    )
    return Block(
        number=number,
        attempt=1,
        started_at="2026-01-01T00:00:00",
        duration_s=1.0,
        pinned=True,
        calibration_us=100.0,
        slices=columns,
        arms=[_arm(arm, factors[place], planted) for place, arm in enumerate(sweep.arms)],
        servers=(),
        rounds=[RoundSeen(1.0, 0)] * sweep.rounds,
    )


def _arm(arm: Arm, mean_us: float, planted: Planted) -> ArmSeen:
    times = Times()
    if arm in planted.windows:  # of which percentiles are said
        times.record(np.full(2000, round(mean_us * 1000), dtype=np.int64))
    errors = {"timeout": planted.errors[arm]} if arm in planted.errors else {}
    answered = Answered(times, {"OK": 2000}, errors, 2000.0)
    return ArmSeen(
        answered={ALL: answered, "lookup": answered, "trade": answered},
        updates=10,
        windows=planted.windows.get(arm, ()),
        stages=planted.stages.get(arm, {}),
    )
