"""The command that would decide an open question, and the words on blocks that a gate left out."""

from experiments.design.arms import Arm
from experiments.judge.verdicts import judge
from experiments.show.sentences import to_decide
from experiments.studies.stock import sweeps
from experiments.studies.stock.wording import told
from experiments.studies.study import Scale
from tests.unit.experiments.studies.stock.judgements import MEAN_US, SCALE, judgement, planted


def test_too_small_a_sweep_says_that_it_has_no_verdicts() -> None:
    """Under six blocks nothing is decided, and the default profile is named."""
    small = judgement(sweeps.stock(Scale(rounds=2, looks=(3,), clients=(1, 5))), 3, planted())
    assert to_decide(small, ("trade",)) == "This would decide it: `python -m experiments run stock`"


def test_blocks_between_two_looks_wait_for_the_next() -> None:
    """Earlier verdicts are dropped."""
    between = judgement(sweeps.stock(SCALE), 12, planted())
    assert to_decide(between, ("trade",)) == "To go on: `python -m experiments run stock --out FOLDER --resume`"


def test_blocks_past_the_last_look_have_none() -> None:
    """Blocks past the last look have no command: they stand at no look, and further blocks reach none."""
    past = judgement(sweeps.stock(SCALE), 15, planted())
    assert to_decide(past, ("trade",)) == "This would decide it: `python -m experiments run stock`"


def test_blocks_that_a_gate_left_out_are_counted() -> None:
    """An undecided claim says how many blocks are missing from it."""
    sweep = sweeps.stock(SCALE)
    trade = Arm(sweeps.GRPC.but(mix="trade"))
    whole = judgement(sweep, 7, planted({trade: 1.05 * MEAN_US}, scatter=0.03))
    faulty = judgement(sweep, 10, planted(scatter=0.03, errors=[trade]))
    mixed = judge(sweep, [*whole.blocks, *faulty.blocks[7:]])
    assert told(mixed, "trade", "a Trade", "a Lookup").endswith("Gates left out 3 blocks.")
    needed = mixed.judged["trade"].rulings[0].blocks_needed
    assert needed is not None
    assert (
        to_decide(mixed, ("trade",)) == f"This would decide it: `python -m experiments run stock --blocks {needed + 3}`"
    )
