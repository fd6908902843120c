"""Interleaving: one ratio in every condition passes, and a ratio that depends on the slices' length does not."""

import math

import pytest

from experiments.design.slots import draw
from experiments.design.sweep import SERVERS_MAX, Slices, Sweep
from experiments.results.observed import ANSWERED_LATE, Block
from experiments.selfcheck.interleaving import MINUTES, OVERNIGHT, Condition, check, design
from experiments.selfcheck.load import Measure
from tests.unit.experiments.blocks import pairs
from tests.unit.experiments.judge.synthetic_blocks import block, with_slices

AMONG = f"among {SERVERS_MAX} servers"


@pytest.mark.parametrize("condition", OVERNIGHT.conditions, ids=lambda condition: condition.name)
def test_conditions_differ_in_length_and_company_alone(condition: Condition) -> None:
    """Conditions differ in length and company alone: the pair is the same, the counted part as long as stated, the
    servers one pair or the most."""
    sweep = design(condition, 3)
    assert sweep.comparisons == design(MINUTES.conditions[0], 1).comparisons
    assert len(sweep.servers) == (SERVERS_MAX if condition.among else 2)
    assert pairs(sweep, sweep.comparisons[0]) == condition.pairs
    assert isinstance(sweep.turns, Slices)
    turns = [slot.turn for slot in draw(sweep, sweep.turns, [2e-4] * len(sweep.arms), "1")]
    assert {(turn.last_ns - turn.first_ns) / 1e9 for turn in turns} == {condition.counted_s}


def machine(slow_in_long: float = 1.0, slow_in_company: float = 1.0) -> Measure:
    """A machine on which the sockets' ratio may depend on how it is measured."""

    def measure(sweep: Sweep, number: int) -> Block:
        assert isinstance(sweep.turns, Slices)
        factor = slow_in_long if sweep.turns.counted_s > 0.1 else 1.0
        factor *= slow_in_company if len(sweep.servers) > 2 else 1.0
        hour = math.exp(0.3 * math.sin(number))  # that all conditions of a turn share
        means = dict.fromkeys(sweep.arms, 100.0) | {sweep.comparisons[0].above: 20 * factor * hour}
        return block(sweep, means, number, 0.02)

    return measure


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "failed"),
    [
        (machine(), []),
        (machine(slow_in_long=1.08), ["200 ms, alone", f"200 ms, {AMONG}"]),
        (
            machine(slow_in_company=0.93),
            [f"20 ms, {AMONG}", f"50 ms, {AMONG}", f"200 ms, {AMONG}"],
        ),
    ],
)
def test_a_ratio_that_depends_on_how_it_is_measured_does_not_pass(measure: Measure, failed: list[str]) -> None:
    """A ratio that depends on its condition does not pass, with any drift over the turns."""
    found = check(MINUTES, measure)
    assert len(found) == len(MINUTES.conditions) - 1
    assert [each.name.removeprefix("interleaving, ") for each in found if not each.passed] == failed


def test_a_machine_too_busy_for_a_pair_is_told_of() -> None:
    """Where no slice counts, the finding says so, and the check fails."""

    def measure(sweep: Sweep, number: int) -> Block:
        one = machine()(sweep, number)
        return with_slices(one, fate=[ANSWERED_LATE] * len(one.slices.fate))

    (finding,) = check(MINUTES, measure)
    assert finding.passed is False
    assert finding.shown.endswith("no whole pair in a block")
