"""Tables: judgements, measurements, refusals and lost slices."""

from dataclasses import replace

from experiments.judge.gates import Refusal
from experiments.judge.points import points as points_of
from experiments.judge.stats import Estimate
from experiments.results.observed import ANSWERED_LATE, SILENT
from experiments.show import tables
from experiments.show.content import Claim, card
from tests.unit.experiments.blocks import World
from tests.unit.experiments.show.judgements import READ_WRITE, SOCKETS, judged, mean_us

FAILING = World(mean_us, errors=lambda arm: 30 if arm == READ_WRITE else 0)
LIMITED = World(mean_us, client_share=lambda arm: 0.9 if arm == SOCKETS[1] else 0.4)


def test_a_comparison_stands_with_interval_verdict_and_p() -> None:
    """A comparison has an interval, a verdict and a p. The head has the confidence of the look."""
    table = tables.comparisons(judged(), judged().judged.values())
    assert "97.5 % interval" in table.head
    line = table.lines[0]
    assert line[0] == "Lookup, 1 client: sockets ÷ gRPC"
    assert line[1] == "**FASTER**"
    assert line[4:] == ("0.0098", "10")


def test_what_is_undecided_stands_with_what_would_decide_it() -> None:
    """An undecided comparison has the blocks that would decide it, in a column that appears only then."""
    judgement = judged(10, World(mean_us, block_noise=0.2))
    table = tables.comparisons(judgement, judgement.judged.values())
    said = {line[1]: line[-1] for line in table.lines}
    assert table.head[-1] == "Would decide"
    assert said["**FASTER**"] == "–"
    assert said["**INCONCLUSIVE**"].startswith(("about", "over 1,000"))


def test_without_verdicts_there_is_no_p() -> None:
    """An unfinished sweep's table has numbers alone."""
    line = tables.comparisons(judged(3), judged(3).judged.values()).lines[0]
    assert line[1] == "no verdict"
    assert line[4:] == ("–", "3")


def test_the_load_side_s_limit_is_marked() -> None:
    """A limit of the load side is marked, and only there. The mark's meaning stands below."""
    judgement = judged(10, LIMITED)
    table = tables.comparisons(judgement, judgement.judged.values())
    assert [line[0].endswith(tables.LIMITED_MARK) for line in table.lines[:2]] == [True, False]
    assert tables.LIMITED_NOTE in table.markdown


def test_the_load_side_s_limit_is_no_mark_of_processor_time() -> None:
    """Processor time is the server's alone, however busy the load is."""
    judgement = judged(10, LIMITED)
    table = tables.comparisons(judgement, [judgement.judged["cpu"]])
    assert tables.LIMITED_MARK not in table.markdown


def test_whole_means_have_a_column_where_they_disagree() -> None:
    """Whole means have a column where they disagree, and only then."""
    one = judged().judged["transport"]
    apart = replace(one, whole=Estimate(0.5, 0.49, 0.51, 10))
    assert "Of plain means" not in tables.comparisons(judged(), [one]).head
    table = tables.comparisons(judged(), [apart])
    assert table.lines[0][table.head.index("Of plain means")] == "0.500, 0.490 to 0.510"
    assert tables.WHOLE_NOTE in table.notes


def test_arms_stand_with_what_varies_among_them() -> None:
    """Arms have the factors that vary among them, and no other."""
    judgement = judged(10, FAILING)
    table = tables.points(tuple(points_of(judgement.sweep, judgement.blocks).values()))
    assert table.head[:5] == ("Transport", "Locking", "Clients", "A/A pair", "Request")
    refused = [line for line in table.lines if line[1] == "read-write"]
    assert all(line[5].endswith(tables.REFUSED_MARK) for line in refused)
    assert {line[table.head.index("Errors")] for line in refused} == {"300", "600"}
    assert tables.REFUSED_NOTE in table.notes
    assert {line[3] for line in table.lines} == {"", "first server", "second server"}
    assert tables.TWINS_NOTE in table.notes


def test_a_load_side_that_does_not_say_its_share_has_a_dash() -> None:
    """A load side without a known share has a dash, and not 0 %, which would be far from its limit."""
    shown = tuple(points_of(judged().sweep, judged().blocks).values())
    column = "Load side, % of its core"
    known, unknown = tables.points(shown), tables.points([replace(point, load_share=None) for point in shown])
    assert {line[unknown.head.index(column)] for line in unknown.lines} == {"–"}
    assert tables.UNKNOWN_LOAD_NOTE in unknown.notes
    assert "–" not in {line[known.head.index(column)] for line in known.lines}
    assert tables.UNKNOWN_LOAD_NOTE not in known.notes


def test_an_arm_that_sends_one_type_has_one_line() -> None:
    """An arm that sends one type has one line of that type, since all its requests are the same."""
    shown = tuple(points_of(judged().sweep, judged().blocks).values())
    of_one = [replace(point, effective=5.0) for point in shown if point.request != "trade"]
    table = tables.points(of_one)
    assert {line[table.head.index("Request")] for line in table.lines} == {"lookup"}
    assert {line[table.head.index("p99, µs")] for line in table.lines} == {"–"}
    assert tables.FEW_NOTE in table.notes


def test_what_a_gate_leaves_out_of_every_block_is_named() -> None:
    """A comparison without a value has a line with the reason."""
    table = tables.refusals(judged(10, FAILING))
    assert [line[0] for line in table.lines] == ["Lookup, 5 clients: read-write ÷ mutex"]
    assert table.lines[0][1] == "4: errors"
    assert table.lines[0][3] == "no value in any block"


def test_a_block_that_is_left_out_is_named() -> None:
    """A block that is left out is named by its number, with the gate's value."""
    judgement = judged(10)
    bad = replace(
        judgement.judged["transport"],
        dropped={4: (Refusal(6, "times fill 90 % of the time"),)},
    )
    table = tables.refusals(replace(judgement, judged={**judgement.judged, "transport": bad}))
    assert table.lines[0][3] == "without block 4"


def test_lost_slices_are_counted_by_fate() -> None:
    """An arm with lost slices has a line, with their number by fate."""
    judgement = judged(3, World(mean_us, lost=(ANSWERED_LATE, SILENT, SILENT)))
    table = tables.left_out(judgement)
    lost = [sum(int(line[column]) for line in table.lines if line[column] != "–") for column in (3, 4)]
    assert lost == [3, 6]
    assert tables.left_out(judged(3)).markdown == "Nothing to show.\n"


def test_rounds_left_out_are_counted() -> None:
    """Left out rounds are counted. A block that lost over half of its rounds counts whole, and is named."""
    assert tables.rounds_sentence(judged(3)) == "No round was left out."
    said = "15 of 36 rounds were left out: the hypervisor took the cores."
    assert tables.rounds_sentence(judged(3, World(mean_us, robbed_rounds=5))) == said
    assert tables.rounds_sentence(judged(3, World(mean_us, robbed_rounds=7))) == (
        "No round was left out. Of blocks 1, 2, 3 all rounds count, since over half of them lost time: "
        "the hypervisor took the cores."
    )


def test_who_took_the_cores_is_named() -> None:
    """If foreign processes were watched, their time is beside the stolen time."""
    said = tables.rounds_sentence(judged(3, World(mean_us, robbed_rounds=5, foreign_ticks=30)))
    assert said == (
        "15 of 36 rounds were left out: other programs took the cores. In all rounds the hypervisor took 0.0 s of "
        "processor time, and foreign processes took 4.5 s."
    )


def test_the_card_has_a_line_for_each_claim() -> None:
    """The card has a line for each claim, and no text that would break the table."""
    table = card([Claim("A | B", "CONFIRMED", "one\nline")])
    assert table.markdown.splitlines()[2] == "| A \\| B | **CONFIRMED** | one line |"
