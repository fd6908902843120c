"""Random order of a block: the order in which servers start, and the times of every slice of every arm.

An **arm** is a server under a load. A **slice** is a short load of one arm. The order depends only on the sweep's seed,
the block's number and the number of the attempt. So the order can be computed again. A round measures all groups that
are due, in random order. The arms of a group follow one another, in random order. All times are offsets from the
block's start. All client processes read the same clock. So they change to the next arm together, without messages to
one another.

A slice has three parts. In the first part, the lead, the load becomes steady. Only requests that are sent in the second
part, the counted part, count. Late replies arrive in the third part, the reserve. For a slow arm each part has a least
length, in mean response times of the arm: 3 for the lead, 20 for the counted part, 6 for the reserve. This rule makes a
counted part at most ``COUNTED_S_MAX`` long.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clients.load.plan.turns import Turn
from experiments.design.arms import ServerKey
from experiments.design.sweep import ROUNDS_MIN, Slices, Sweep

LEAD_RESPONSES, COUNTED_RESPONSES, RESERVE_RESPONSES = 3, 20, 6
"""Shortest lengths of the lead, the counted part and the reserve of a slice, in mean response times of the arm."""

_WARM_UP_NS = 60_000_000
"""Length of each arm's warm-up before the first slice, in nanoseconds."""

COUNTED_S_MAX = 0.25
"""Largest length of the counted part of a slow arm's slice, in seconds. An arm that needs a longer counted part should
be measured in windows."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One slice of a block. ``turn`` has the times at which the parts of the slice begin and end. ``turn.load`` is the
    index of the slice's arm in ``Sweep.arms``."""

    round: int
    """Number of the round, from 0."""
    appearance: int
    """Number of the group's measurement, counted over all groups of the block, from 0. Two slices with the same number
    can be a pair."""
    turn: Turn


def order(sweep: Sweep, seed: str) -> Iterator[tuple[int, int, int]]:
    """Slices or windows of a block, in the order that is drawn from ``seed``. Three numbers describe each slice or
    window: the round, the number of the group's measurement (``Slot.appearance``), and the index of the arm in
    ``Sweep.arms``."""
    rng, appearance = random.Random(seed), 0
    for number in range(sweep.rounds):
        due = [group for group in sweep.groups if number % group.every == 0 for _ in range(group.times)]
        rng.shuffle(due)
        for group in due:
            for arm in rng.sample(group.arms, len(group.arms)):
                yield number, appearance, sweep.places[arm]
            appearance += 1


def starts(sweep: Sweep, seed: str) -> tuple[ServerKey, ...]:
    """Servers of a block, in the order in which the servers start. The order is drawn from ``seed``."""
    return tuple(random.Random(f"{seed}/starts").sample(sweep.servers, len(sweep.servers)))


def seed_of(sweep: Sweep, number: int, attempt: int) -> str:
    """Seed for one attempt at a block. The order of starts and the order of slices are drawn from this seed."""
    return f"{sweep.seed}/{number}/{attempt}"


def draw(sweep: Sweep, slices: Slices, response_s: Sequence[float], seed: str) -> tuple[Slot, ...]:
    """All slices of a block, in the order of time. ``response_s``: each arm's mean response time in the warm-up, in
    seconds.

    Rounds that would end after ``slices.block_s`` are left out. But the first ``ROUNDS_MIN`` rounds are never left out.
    """
    slots: list[Slot] = []
    now_ns = 0
    for number, appearance, arm in order(sweep, seed):
        lead_ns, counted_ns, reserve_ns = _parts_ns(slices, response_s[arm])
        first_ns = now_ns + lead_ns
        turn = Turn(arm, now_ns, first_ns, first_ns + counted_ns, first_ns + counted_ns + reserve_ns)
        slots.append(Slot(number, appearance, turn))
        now_ns = turn.end_ns
    late = {slot.round for slot in slots if slot.round >= ROUNDS_MIN and slot.turn.end_ns > slices.block_s * 1e9}
    return tuple(slot for slot in slots if slot.round not in late)


def warm_up(sweep: Sweep) -> tuple[Slot, ...]:
    """Slices before the first round, one slice of each arm. The slice warms up the arm's server, and measures the arm's
    mean response time. This mean time determines the length of the arm's later slices."""
    moments = range(0, _WARM_UP_NS * len(sweep.arms), _WARM_UP_NS)
    return tuple(
        Slot(
            0,
            place,
            Turn(place, begin_ns, begin_ns + _WARM_UP_NS // 10, begin_ns + _WARM_UP_NS // 2, begin_ns + _WARM_UP_NS),
        )
        for place, begin_ns in enumerate(moments)
    )


def _parts_ns(slices: Slices, response_s: float) -> tuple[int, int, int]:
    lead_s = max(slices.lead_s, LEAD_RESPONSES * response_s)
    counted_s = max(slices.counted_s, min(COUNTED_S_MAX, COUNTED_RESPONSES * response_s))
    reserve_s = max(slices.reserve_s, RESERVE_RESPONSES * response_s)
    return round(lead_s * 1e9), round(counted_s * 1e9), round(reserve_s * 1e9)
