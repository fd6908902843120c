"""Value of a comparison in a block: pairs by appearance, a trimmed mean, and no robbed round for any arm."""

import math
from dataclasses import replace

import numpy as np
import pytest

from experiments.design.arms import Arm, Comparison, Group
from experiments.design.limits import LIMITS
from experiments.design.setting import read
from experiments.design.sweep import Sweep
from experiments.judge import ratios
from experiments.results.observed import ANSWERED_LATE, KEPT, STARTED_LATE, RoundSeen
from tests.unit.experiments.blocks import pairs
from tests.unit.experiments.judge.synthetic_blocks import GRPC, SOCKETS, block, ratio, slowed, sweep, with_slices
from tests.unit.experiments.known import known

OF = sweep()
MEANS = {SOCKETS: 100.0, GRPC: 400.0}


def test_the_ratio_is_that_of_the_means() -> None:
    """Without any disturbance, the typical and the whole ratio are the ratio of the means."""
    one = block(OF, MEANS)
    assert ratios.typical(OF, one, ratio()) == pytest.approx(math.log(0.25), rel=1e-3)
    assert ratios.whole(OF, one, ratio()) == pytest.approx(math.log(0.25), rel=1e-3)
    assert ratios.arm_mean_us(OF, one, 1, "lookup") == pytest.approx(400, rel=1e-3)
    assert ratios.arm_cpu_us(OF, one, 0) == pytest.approx(40)


def test_pairs_are_of_one_appearance() -> None:
    """An effect on all slices of an appearance is in no ratio."""
    one = block(OF, MEANS)
    uneven = slowed(one, [1 if appearance % 2 else 10 for appearance in one.slices.appearance])
    logs, _ = ratios.pair_log_ratios(OF, uneven, ratio())
    assert logs == pytest.approx(np.full(15, math.log(0.25)), rel=1e-3)


def test_a_group_may_stand_several_times_a_round() -> None:
    """Each appearance makes a pair of its own, with the number of its round."""
    of = Sweep("try", "try", (Group((SOCKETS, GRPC), times=4),), (ratio(),), 5, (10,))
    logs, rounds = ratios.pair_log_ratios(of, block(of, MEANS), ratio())
    assert len(logs) == pairs(of, ratio()) == 20
    assert rounds.tolist() == sorted([0, 1, 2, 3, 4] * 4)


def test_an_arm_of_two_groups_pairs_with_its_neighbour_alone() -> None:
    """An arm of two groups pairs with its neighbour alone. Slices of another appearance are in no ratio, even of whole
    means."""
    third = Arm(read("sockets clients=5"))
    other = ratio(third, SOCKETS, "growth")
    of = Sweep("try", "try", (Group((SOCKETS, GRPC)), Group((SOCKETS, third))), (ratio(), other), 10, (10,))
    one = block(of, MEANS | {third: 300.0})
    beside = {
        appearance
        for appearance, arm in zip(one.slices.appearance, one.slices.arm, strict=True)
        if of.arms[arm] == third
    }
    uneven = slowed(one, [7 if appearance in beside else 1 for appearance in one.slices.appearance])
    assert ratios.whole(of, uneven, ratio()) == pytest.approx(math.log(0.25), rel=1e-3)
    assert ratios.whole(of, uneven, other) == pytest.approx(math.log(3), rel=1e-3)


def test_pauses_are_in_the_whole_ratio_and_not_in_the_typical_one() -> None:
    """Pauses in up to a fifth of the pairs are in the whole ratio, and not in the typical ratio."""
    one = block(OF, MEANS)
    own = [place for place, arm in enumerate(one.slices.arm) if OF.arms[arm] == SOCKETS]
    for pauses, typical in ((3, math.log(0.25)), (8, math.inf)):
        paused = slowed(one, [100 if place in own[:pauses] else 1 for place in range(len(one.slices.arm))])
        assert known(ratios.whole(OF, paused, ratio())) > math.log(0.25) + 1
        seen = known(ratios.typical(OF, paused, ratio()))
        assert (seen == pytest.approx(typical, rel=1e-3)) == math.isfinite(typical)


def test_a_pair_of_which_one_slice_is_lost_is_lost() -> None:
    """A pair with a lost slice is lost, and no other pair."""
    one = block(OF, MEANS)
    fate = [ANSWERED_LATE if place in (0, 1, 5) else KEPT for place in range(30)]
    lost = {one.slices.appearance[place] for place in (0, 1, 5)}
    logs, _ = ratios.pair_log_ratios(OF, with_slices(one, fate=fate), ratio())
    assert len(logs) == 15 - len(lost)
    assert ratios.typical(OF, with_slices(one, fate=[ANSWERED_LATE] * 30), ratio()) is None


def test_late_answers_are_in_whole_means() -> None:
    """A late answer is in the whole mean and in no pair. A slice that never began is in neither."""
    one = block(OF, MEANS)
    late, never = (with_slices(one, fate=[fate] * 30) for fate in (ANSWERED_LATE, STARTED_LATE))
    assert ratios.whole(OF, late, ratio()) == pytest.approx(ratios.whole(OF, one, ratio()))
    assert ratios.arm_mean_us(OF, late, 0, "all") == pytest.approx(ratios.arm_mean_us(OF, one, 0, "all"))
    assert ratios.whole(OF, never, ratio()) is None
    assert ratios.arm_mean_us(OF, never, 0, "all") is None


@pytest.mark.parametrize(
    ("robbed", "losses"),
    [(False, [(0, 0.2), (1, 0.05), (2, 0.2), (4, 0.2), (20, 1.0)]), (True, [(5, 0.2), (2, 0.05)])],
)
def test_a_robbed_round_is_over_a_tick_and_over_a_tenth(robbed: bool, losses: list[tuple[int, float]]) -> None:
    """A robbed round lost over a tick of 10 ms and over a tenth of the time of two cores. Losses are in ticks, and in
    seconds of a round."""
    for ticks, duration_s in losses:
        for stolen in (ticks, 0, ticks - ticks // 2):  # by the hypervisor, by foreign processes, by both
            seen = RoundSeen(duration_s, stolen, ticks - stolen)
            assert LIMITS.robbed(seen.lost_ticks, seen.duration_s, 2) == robbed


def test_a_robbed_round_is_left_out_for_all_arms() -> None:
    """Only a robbed round is left out, for all arms, and for any of its times."""
    rounds = [RoundSeen(0.2, 9 if number == 4 else 0) for number in range(15)]
    one = replace(block(OF, MEANS), rounds=rounds)
    used = ratios.used(LIMITS, one)
    assert {number for number, each in zip(one.slices.round, used, strict=True) if not each} == {4}
    assert int((~used).sum()) == 2
    logs, of_rounds = ratios.pair_log_ratios(OF, one, ratio())
    assert len(logs) == 14
    assert 4 not in of_rounds


@pytest.mark.parametrize(("robbed", "again"), [(0, False), (7, False), (8, True), (15, True)])
def test_a_block_with_over_half_its_rounds_robbed_is_run_again(robbed: int, again: bool) -> None:
    """A block with over half of its 15 rounds robbed is run again, and counts with all rounds. Otherwise robbed rounds
    are left out."""
    rounds = [RoundSeen(0.2, 9 if number < robbed else 0) for number in range(15)]
    one = replace(block(OF, MEANS), rounds=rounds)
    assert ratios.is_robbed_block(LIMITS, one) == again
    assert len(ratios.pair_log_ratios(OF, one, ratio())[0]) == (15 if again else 15 - robbed)


def test_processor_time_is_over_all_requests_of_a_slice() -> None:
    """Processor time is over all requests of a slice, counted or not."""
    one = block(OF, MEANS)
    twice = [
        each * (2 if OF.arms[arm] == SOCKETS else 1)
        for each, arm in zip(one.slices.server_cpu_ns, one.slices.arm, strict=True)
    ]
    cpu = ratio(measure="cpu")
    assert ratios.typical(OF, with_slices(one, server_cpu_ns=twice), cpu) == pytest.approx(math.log(2))
    assert ratios.typical(OF, with_slices(one, server_cpu_ns=[0] * 30), cpu) is None


def test_the_time_per_reply_is_over_all_clients_together() -> None:
    """The wall clock of a slice ÷ its requests, however many were under way: 1 ÷ throughput."""
    one = block(OF, MEANS)
    of_sockets = [OF.arms[arm] == SOCKETS for arm in one.slices.arm]
    took = [1000 if own else 500 for own in of_sockets]
    answered = [100 if own else 10 for own in of_sockets]
    logs = ratios.typical(OF, with_slices(one, active_ns=took, requests=answered), ratio(measure="wall"))
    assert logs == pytest.approx(math.log(0.2))


def test_request_types_have_ratios_of_their_own() -> None:
    """Request types have ratios of their own. A type that an arm never sent has none."""
    one = block(OF, MEANS)
    slices = replace(
        one.slices,
        sums_ns=dict(one.slices.sums_ns)
        | {"trade": [2 * s if a else s for s, a in zip(one.slices.sums_ns["all"], one.slices.arm, strict=True)]},
        counts=dict(one.slices.counts) | {"trade": one.slices.counts["all"]},
    )
    traded: Comparison = ratio(request="trade")
    halved = ratios.typical(OF, replace(one, slices=slices), traded)
    assert halved == pytest.approx(math.log(0.125 if OF.arms[0] == SOCKETS else 0.5), rel=1e-3)
    assert ratios.typical(OF, one, traded) is None
