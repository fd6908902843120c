"""Tables: judgements, measurements, refusals and lost slices."""

from dataclasses import replace

from experiments.judge.gates import Refusal
from experiments.judge.stats import Estimate
from experiments.show import tables
from experiments.show.content import Claim, card
from tests.unit.experiments.show.judgements import judged


def test_without_verdicts_there_is_no_p() -> None:
    """An unfinished sweep's table has numbers alone."""
    line = tables.comparisons(judged(3), judged(3).judged.values()).lines[0]
    assert line[1] == "no verdict"
    assert line[4:] == ("–", "3")


def test_whole_means_have_a_column_where_they_disagree() -> None:
    """Whole means have a column where they disagree, and only then."""
    one = judged().judged["transport"]
    apart = replace(one, whole=Estimate(0.5, 0.49, 0.51, 10))
    assert "Of plain means" not in tables.comparisons(judged(), [one]).head
    table = tables.comparisons(judged(), [apart])
    assert table.lines[0][table.head.index("Of plain means")] == "0.500, 0.490 to 0.510"
    assert tables.WHOLE_NOTE in table.notes


def test_a_block_that_is_left_out_is_named() -> None:
    """A block that is left out is named by its number, with the gate's value."""
    judgement = judged(10)
    bad = replace(
        judgement.judged["transport"],
        dropped={4: (Refusal(6, "times fill 90 % of the time"),)},
    )
    table = tables.refusals(replace(judgement, judged={**judgement.judged, "transport": bad}))
    assert table.lines[0][3] == "without block 4"


def test_the_card_has_a_line_for_each_claim() -> None:
    """The card has a line for each claim, and no text that would break the table."""
    table = card([Claim("A | B", "CONFIRMED", "one\nline")])
    assert table.markdown.splitlines()[2] == "| A \\| B | **CONFIRMED** | one line |"
