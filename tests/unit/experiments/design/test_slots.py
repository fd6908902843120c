"""The random order of a block: neighbours in a group, chance in the order, long slices for slow arms."""

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise, product

import pytest

from experiments.design.arms import Arm, Group
from experiments.design.setting import read
from experiments.design.slots import COUNTED_RESPONSES, COUNTED_S_MAX, Slot, draw, order, seed_of, starts, warm_up
from experiments.design.sweep import Slices, Sweep
from tests.unit.experiments.judge.synthetic_blocks import GRPC, SOCKETS

THIRD = Arm(read("sockets clients=5"))

OF = Sweep(
    "try",
    "try",
    (Group((SOCKETS, GRPC, THIRD)), Group((SOCKETS, GRPC), times=4), Group((THIRD,), every=3)),
    (),
    12,
    (1,),
)


def drawn(response_s: float = 1e-4, seed: str = "1", rounds_of: Sweep = OF) -> tuple[Slot, ...]:
    """Slices of a block whose arms all have this response time."""
    return draw(rounds_of, Slices(), [response_s] * len(rounds_of.arms), seed)


def test_slices_follow_one_another() -> None:
    """Each slice begins at the end of the slice before it, and the parts of a slice are in order. The same is true of
    the warm-up, which has one slice of each arm, in order."""
    for slots in (drawn(), warm_up(OF)):
        turns = [slot.turn for slot in slots]
        assert turns[0].begin_ns == 0
        assert all(one.end_ns == other.begin_ns for one, other in pairwise(turns))
        assert all(turn.begin_ns < turn.first_ns < turn.last_ns < turn.stop_ns < turn.end_ns for turn in turns)
    assert [slot.turn.load for slot in warm_up(OF)] == [0, 1, 2]


def test_all_is_drawn_from_seed_number_and_attempt() -> None:
    """Equal seeds, numbers and attempts give equal starts and orders. A change of one value gives other orders."""
    of = replace(OF, groups=tuple(Group((Arm(read("sockets"), copy),)) for copy in range(8)))
    drawn_for = [seed_of(replace(of, seed=seed), *at) for seed in (4, 5) for at in product((1, 2), (1, 2))]
    every = {starts(of, seed) for seed in drawn_for}
    assert len(every) == len({tuple(order(of, seed)) for seed in drawn_for}) == len(drawn_for)
    assert all(sorted(each) == sorted(of.servers) for each in every)
    assert starts(of, "4/1/1") == starts(of, drawn_for[0])
    assert list(order(of, "4/1/1")) == list(order(of, drawn_for[0]))


def test_a_groups_arms_stand_side_by_side() -> None:
    """Slices of one appearance are neighbours in one round, with each arm once."""
    slots = drawn()
    places: dict[int, list[int]] = {}
    for place, slot in enumerate(slots):
        places.setdefault(slot.appearance, []).append(place)
    for appearance in places.values():
        assert appearance == list(range(appearance[0], appearance[0] + len(appearance)))
        assert len({slots[place].round for place in appearance}) == 1
        assert len({slots[place].turn.load for place in appearance}) == len(appearance)


def test_groups_stand_as_often_as_they_are_to() -> None:
    """A group appears ``times`` times in every ``every``-th round."""
    slots = drawn()
    sizes = Counter((slot.round, slot.appearance) for slot in slots)
    for number in range(OF.rounds):
        of_round = sorted(size for (each, _), size in sizes.items() if each == number)
        assert of_round == ([1] if number % 3 == 0 else []) + [2] * 4 + [3]
    assert [slot.round for slot in slots] == sorted(slot.round for slot in slots)


def test_chance_orders_groups_and_arms() -> None:
    """Each of two arms is first about equally often. Another seed gives another order."""
    assert drawn() == drawn()
    assert drawn() != drawn(seed="2")
    firsts: Counter[int] = Counter()
    for seed in range(50):
        of_two = [slot for slot in drawn(seed=str(seed)) if slot.turn.load < 2]
        for one, other in pairwise(of_two):
            if one.appearance == other.appearance:
                firsts[one.turn.load] += 1
    total = firsts.total()
    assert abs(firsts[0] - total / 2) < 5 * math.sqrt(total) / 2
    groups_first = {sum(slot.appearance == 0 for slot in drawn(seed=str(seed))) for seed in range(40)}
    assert groups_first == {1, 2, 3}


@pytest.mark.parametrize("response_s", [0.0, 1e-5, 1e-3, 3e-3, 0.01, 0.1])
def test_a_slow_arm_has_longer_slices(response_s: float) -> None:
    """The parts of a slow arm's slice last 3, 20 and 6 mean response times. The counted part has a longest time."""
    turn = drawn(response_s)[0].turn
    counted_s = (turn.last_ns - turn.first_ns) / 1e9
    assert counted_s == pytest.approx(min(COUNTED_S_MAX, max(0.02, COUNTED_RESPONSES * response_s)))
    assert (turn.first_ns - turn.begin_ns) / 1e9 == pytest.approx(max(0.003, 3 * response_s))
    assert (turn.end_ns - turn.last_ns) / 1e9 == pytest.approx(max(0.006, 6 * response_s))


def test_each_arm_has_its_own_length() -> None:
    """A slow arm does not lengthen the slices of a fast arm."""
    response_s = [1e-4, 2e-3, 1e-4]
    lengths = {(slot.turn.load, slot.turn.last_ns - slot.turn.first_ns) for slot in draw(OF, Slices(), response_s, "1")}
    assert lengths == {(0, 20_000_000), (1, 40_000_000), (2, 20_000_000)}


def test_a_block_of_slow_arms_has_fewer_rounds() -> None:
    """A block of slow arms has fewer rounds, all of them whole, and at least four."""
    slices = Slices(block_s=10.0)
    for response_s, rounds in ((1e-4, OF.rounds), (0.01, 5), (0.1, 4)):
        slots = draw(OF, slices, [response_s] * 3, "1")
        kept = {slot.round for slot in slots}
        assert kept == set(range(len(kept)))
        assert len(kept) == pytest.approx(rounds, abs=1)
        assert len(kept) == 4 or slots[-1].turn.end_ns <= 10e9
        whole = [slot for slot in draw(OF, Slices(block_s=1e9), [response_s] * 3, "1") if slot.round in kept]
        assert list(slots) == whole
