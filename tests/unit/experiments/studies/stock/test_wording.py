"""Numbers and reasons in words."""

import pytest

from experiments.design.arms import Arm
from experiments.judge.verdicts import judge as judgement_of
from experiments.studies.stock import sweeps
from experiments.studies.stock.wording import number, ratio, times_text, to_decide, told, unfinished, words
from experiments.studies.study import Scale
from tests.unit.experiments.studies.stock.judgements import MEAN_US, SCALE, Planted, judgement

SAID = words("On gRPC", "a Trade", "a Lookup")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.291, "0.29"), (0.998, "0.998"), (1.0, "1.00"), (1.0496, "1.0496"), (1.2, "1.20"), (0.0153, "0.0153")],
)
def test_a_ratio_is_not_shown_on_a_bound_that_it_is_not_on(value: float, text: str) -> None:
    """Two decimals, and more where they would show 1 or a margin."""
    assert ratio(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (0.2213, "0.221"), (12.34, "12.3"), (1234.5, "1,234")])
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    """Without an exponent."""
    assert number(value) == text


def test_times_need_not_be_whole() -> None:
    """Five clients are 2.5 times two."""
    assert (times_text(5.0), times_text(2.5)) == ("5", "2.5")


def test_too_small_a_sweep_says_that_it_has_no_verdicts() -> None:
    """Under six blocks nothing is decided, and the default profile is named."""
    small = judgement(sweeps.stock(Scale(rounds=2, looks=(3,), clients=(1, 5))), 3, Planted())
    assert unfinished(small) == "No verdict: 3 blocks, and fewer than 6 decide nothing."
    assert to_decide(small, ("trade",)) == "python -m experiments run stock"


def test_blocks_between_two_looks_wait_for_the_next() -> None:
    """Earlier verdicts are dropped."""
    between = judgement(sweeps.stock(SCALE), 12, Planted())
    assert unfinished(between) == "No verdict yet: 12 of 14 blocks."
    assert to_decide(between, ("trade",)) == "python -m experiments run stock --out FOLDER --resume"


def test_blocks_past_the_last_look_have_none() -> None:
    """They stand at no look, and going on brings them to none."""
    past = judgement(sweeps.stock(SCALE), 15, Planted())
    assert unfinished(past) == "No verdict: 15 blocks, and no look was declared there."
    assert to_decide(past, ("trade",)) == "python -m experiments run stock"


def test_blocks_that_a_gate_left_out_are_counted() -> None:
    """What is undecided says how many blocks are missing from it."""
    sweep = sweeps.stock(SCALE)
    trade = Arm(sweeps.GRPC.but(mix="trade"))
    whole = judgement(sweep, 7, Planted({trade: 1.05 * MEAN_US}, scatter=0.03))
    faulty = judgement(sweep, 10, Planted(scatter=0.03, errors={trade: 100}))
    mixed = judgement_of(sweep, [*whole.blocks, *faulty.blocks[7:]])
    text = told(mixed, "trade", SAID)
    assert text.startswith("Undecided: whether on gRPC a Trade or a Lookup takes less time.")
    assert "7 blocks are too few" in text
    assert text.endswith("3 blocks more left out by gate 4.")
    needed = mixed.judged["trade"].rulings[0].blocks_needed
    assert needed is not None
    assert to_decide(mixed, ("trade",)) == f"python -m experiments run stock --blocks {needed + 3}"
