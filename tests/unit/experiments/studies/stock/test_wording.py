"""The command that would decide an open question, and the words on blocks that a gate left out."""

from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.judge.verdicts import judge
from experiments.show.sentences import to_decide
from experiments.studies.stock import sweeps
from experiments.studies.stock.wording import told
from tests.unit.experiments.studies.stock.judgements import MEAN_US, SCALE, judgement, only, planted

SWEEP = only(sweeps.stock(SCALE), "trade")


def test_too_small_a_sweep_says_that_it_has_no_verdicts() -> None:
    """Under six blocks nothing is decided, and the sentence has the command of the default profile."""
    small = judgement(only(sweeps.stock(replace(SCALE, looks=(3,))), "trade"), 3, planted())
    assert to_decide(small, ("trade",)) == "This would decide it: `python -m experiments run stock`"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (12, "To go on: `python -m experiments run stock --out FOLDER --resume`"),
        (15, "This would decide it: `python -m experiments run stock`"),
    ],
)
def test_blocks_at_no_look_decide_nothing(number: int, said: str) -> None:
    """Between two looks the sweep goes on to the next look. Past the last look further blocks reach no look."""
    assert to_decide(judgement(SWEEP, number, planted()), ("trade",)) == said


def test_blocks_that_a_gate_left_out_are_counted() -> None:
    """An undecided claim says how many blocks are missing from it."""
    sweep, trade = SWEEP, Arm(sweeps.GRPC.but(mix="trade"))
    whole = judgement(sweep, 7, planted({trade: 1.05 * MEAN_US}, scatter=0.03))
    faulty = judgement(sweep, 10, planted(scatter=0.03, errors=[trade]))
    mixed = judge(sweep, [*whole.blocks, *faulty.blocks[7:]])
    assert told(mixed, "trade", "a Trade", "a Lookup").endswith("Gates left out 3 blocks.")
    needed = mixed.judged["trade"].rulings[0].blocks_needed
    assert needed is not None
    assert (
        to_decide(mixed, ("trade",)) == f"This would decide it: `python -m experiments run stock --blocks {needed + 3}`"
    )
