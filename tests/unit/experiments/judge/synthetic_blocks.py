"""Blocks whose truth is known: every slice answers with its arm's mean, with as much noise as is asked for.

The order is the real one (``slots.draw``). Changes to a block for one test go through ``with_slices`` and ``with_arm``.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from clients.load.record.times import Times
from experiments.design.arms import Arm, Comparison, Group, twins
from experiments.design.setting import read
from experiments.design.slots import draw
from experiments.design.sweep import Slices, Sweep
from experiments.results.observed import ALL, KEPT, Answered, ArmSeen, Block, RoundSeen, ServerSeen, SliceColumns

SOCKETS, GRPC = Arm(read("sockets")), Arm(read("grpc"))

COUNTED_NS = 20_000_000

CPU_NS, WIRE_BYTES = 40_000, 180
"""Of the server for each request, and on the wire, whatever the arm."""


def ratio(above: Arm = SOCKETS, below: Arm = GRPC, name: str = "sockets ÷ gRPC", **fields: Any) -> Comparison:
    """A headline comparison of two arms, its declared factors those in which they differ."""
    levels = dict(below.setting.levels)
    differ = tuple(factor for factor, level in above.setting.levels if level != levels[factor])
    return Comparison(name, name, above, below, differ, **({"family": "headline"} | fields))


def sweep(*comparisons: Comparison, rounds: int = 15, looks: tuple[int, ...] = (10, 14, 20), **fields: Any) -> Sweep:
    """Each comparison's two arms in a group, once a round."""
    asked = comparisons or (ratio(),)
    groups = tuple(dict.fromkeys(Group((each.above, each.below)) for each in asked))
    return Sweep("try", "try", groups, asked, rounds, looks, **fields)


def same(transport: str = "sockets", family: str = "same") -> Comparison:
    """An A/A pair."""
    return twins(read(transport), family)[0]


def block(
    of: Sweep, means_us: Mapping[Arm, float], number: int = 1, noise: float = 0.0, seed: int = 1, attempt: int = 1
) -> Block:
    """One block. ``noise`` is the deviation of a slice's log-mean; slices of one appearance share as much again."""
    turns = of.turns if isinstance(of.turns, Slices) else Slices()
    rng = random.Random(f"{seed}/{number}")
    slots = draw(of, turns, [1e-4] * len(of.arms), seed=f"{seed}/{number}")
    shared = {slot.appearance: rng.gauss(0, noise) for slot in slots}
    counts, sums = [], []
    for slot in slots:
        logs = math.log(means_us[of.arms[slot.turn.load]]) + shared[slot.appearance] + rng.gauss(0, noise)
        mean_ns = 1000 * math.exp(logs)
        counts.append(max(1, round(COUNTED_NS / mean_ns)))
        sums.append(round(counts[-1] * mean_ns))
    arm = [slot.turn.load for slot in slots]
    slices = SliceColumns(
        round=[slot.round for slot in slots],
        appearance=[slot.appearance for slot in slots],
        arm=arm,
        fate=[KEPT] * len(slots),
        counted_ns=[COUNTED_NS] * len(slots),
        requests=counts,
        active_ns=[COUNTED_NS + 5_000_000] * len(slots),
        server_cpu_ns=[CPU_NS * count for count in counts],
        client_cpu_ns=[COUNTED_NS // 4] * len(slots),
        wire_bytes=[WIRE_BYTES * count for count in counts],
        counts={ALL: counts, "lookup": counts},
        sums_ns={ALL: sums, "lookup": sums},
    )
    return Block(
        number=number,
        attempt=attempt,
        started_at="2026-01-01T00:00:00+00:00",
        duration_s=3.0,
        pinned=True,
        calibration_us=2000.0,
        slices=slices,
        arms=[_arm(counts, sums, arm, place) for place in range(len(of.arms))],
        servers=[ServerSeen(10, 64, 15.0, 1.0) for _ in of.servers],
        rounds=[RoundSeen(0.2, 0) for _ in range(of.rounds)],
        cores=2,
    )


def blocks(of: Sweep, means_us: Mapping[Arm, float], number: int = 10, noise: float = 0.02) -> list[Block]:
    """So many blocks, from number 1."""
    return [block(of, means_us, each, noise) for each in range(1, number + 1)]


def with_slices(one: Block, **columns: Any) -> Block:
    """The same with other columns."""
    return replace(one, slices=replace(one.slices, **columns))


def with_arm(one: Block, place: int, **fields: Any) -> Block:
    """The same, something else having been seen of an arm."""
    arms = list(one.arms)
    arms[place] = replace(arms[place], **fields)
    return replace(one, arms=arms)


def answered(count: int, mean_ns: float = 100_000, errors: Mapping[str, int] | None = None) -> Answered:
    """So many requests, all of them as long."""
    times = Times()
    times.record(np.full(count, round(mean_ns), dtype=np.int64))
    return Answered(times, {"OK": count}, errors or {}, float(count))


def _arm(counts: Sequence[int], sums: Sequence[int], arm: Sequence[int], place: int) -> ArmSeen:
    own = [number for number, each in enumerate(arm) if each == place]
    count, total = sum(counts[number] for number in own), sum(sums[number] for number in own)
    seen = answered(count, total / count)
    return ArmSeen({"lookup": seen, ALL: seen}, think_ns=0, span_ns=seen.times.sum_ns)
