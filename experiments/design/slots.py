"""The order of a block, drawn beforehand: when each slice of each arm begins, is counted, and ends; which server starts
first. It is drawn from the sweep's seed, the block's number and the attempt alone, so it can be drawn again.

A round has every group that is due in it, in random order; a group's arms stand side by side, in random order. All
moments are offsets from the block's start, so that client processes, which share a clock, need no messages. Slices of
an arm that answers slowly are longer: the lead is at least three of its mean response times, the counted part twenty,
the reserve six.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clients.load.plan.turns import Turn
from experiments.design.arms import ServerKey
from experiments.design.sweep import ROUNDS_MIN, Slices, Sweep

LEAD_RESPONSES, COUNTED_RESPONSES, RESERVE_RESPONSES = 3, 20, 6
"""Least length of each part of a slice, in mean response times."""

_WARM_UP_NS = 60_000_000
"""Length of each arm's warm-up, before the slices are drawn."""

COUNTED_S_MAX = 0.25
"""Longest counted part of a slice for a slow arm. A slower arm is measured in windows."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One slice: its times, its arm (``turn.load`` is the arm's place in the sweep), and its place in the order."""

    round: int
    appearance: int
    """Number of the appearance of a group. Slices of one appearance make pairs."""
    turn: Turn


def order(sweep: Sweep, seed: str) -> Iterator[tuple[int, int, int]]:
    """Round, appearance and arm of every slice or window of a block, in order."""
    rng, places = random.Random(seed), {arm: place for place, arm in enumerate(sweep.arms)}
    appearance = 0
    for number in range(sweep.rounds):
        due = [group for group in sweep.groups if number % group.every == 0 for _ in range(group.times)]
        rng.shuffle(due)
        for group in due:
            for arm in rng.sample(group.arms, len(group.arms)):
                yield number, appearance, places[arm]
            appearance += 1


def starts(sweep: Sweep, seed: str) -> tuple[ServerKey, ...]:
    """Servers of a block, in the order in which they start."""
    return tuple(random.Random(f"{seed}/starts").sample(sweep.servers, len(sweep.servers)))


def seed_of(sweep: Sweep, number: int, attempt: int) -> str:
    """Seed of every draw for a block. It depends on these values alone."""
    return f"{sweep.seed}/{number}/{attempt}"


def draw(sweep: Sweep, slices: Slices, response_s: Sequence[float], seed: str) -> tuple[Slot, ...]:
    """Every slice of a block in order; ``response_s`` is each arm's mean response, from the warm-up.

    Whole rounds that would end after ``slices.block_s`` are left out, but for the first ``ROUNDS_MIN``.
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
    """A slice of every arm, to warm its server and to see how soon it answers."""
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
