"""Answers and sections have the measurements, and name the missing ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.judge.verdicts import judge
from experiments.show.content import Seen
from experiments.studies.sockets import SOCKETS, figures
from experiments.studies.sockets.answers import answers, bindings, patterns, sections
from experiments.studies.sockets.design import GRAPHS, received
from experiments.studies.sockets.design import bindings as bindings_sweep
from experiments.studies.sockets.design import patterns as patterns_sweep
from tests.unit.experiments.blocks import World, blocks
from tests.unit.experiments.studies.sockets.planted import RECEIVED_HZ, SCALE, rows, seen, with_rows

pytestmark = pytest.mark.slow  # judges sweeps of 20 arms: some 0.3 s each


def test_the_answers_have_the_planted_numbers() -> None:
    """Response times have verdicts; the timer has its value; throughput is that of the receivers."""
    soonest, timer, most, lines = answers(seen())
    assert [round(each.typical.value, 1) for each in soonest.deciding] == [2.0, 1.5] * 4
    assert soonest.sentence.count("verdicts in 4 cells: SLOWER in 4.") == 2
    assert soonest.to_decide is None
    assert "timer reads 33.0 ms" in timer.sentence
    assert "0.100 to 0.200 ms" in timer.sentence
    assert "nanomsg carries 0.400 times as many messages as Berkeley" in most.sentence
    assert "Berkeley sockets" in lines.sentence


def test_throughputs_of_two_blocks_have_no_interval() -> None:
    """The interval of two blocks is left out, and no dash stands in its place."""
    few = with_rows(seen(), [row for row in rows(RECEIVED_HZ) if row.block <= 2])
    sentence = answers(few)[2].sentence
    assert "times as many messages as Berkeley sockets. These blocks" in sentence
    assert "–" not in sentence


def test_every_graph_is_drawn() -> None:
    """Every graph is drawn with a bar for each API, at the client and by the document's timer; ratios of all APIs. The
    graphs are on the page."""
    drawn = {each.name: each.alternative for each in figures.graphs(seen())}
    graphs = {f"graph_{number}" for number in (*GRAPHS.values(), 5)}
    assert set(drawn) == {*graphs, "question_1"}
    page = Path(figures.__file__).with_name("README.md").read_text(encoding="utf-8")
    assert all(f"`{name}` | `run sockets` |" in page for name in graphs)
    assert drawn["question_1"].count("NNG ÷ Berkeley sockets: 1.") == len(GRAPHS)
    assert answers(seen())[0].figure == "question_1"
    assert "at the receiver, ms: Berkeley sockets 33.0" in drawn["graph_1"]
    assert "Messages a second: Berkeley sockets 20" in drawn["graph_5"].replace("19,996", "20,000")


def test_without_receivers_the_rest_is_said() -> None:
    """Without receivers' reports, as after an interruption, the other answers are there."""
    bare = Seen(seen().main)
    assert [each.sentence for each in answers(bare)[1:3]] == ["Not measured."] * 2
    assert "Nothing to show" in {each.title: each.text for each in sections(bare)}["Times at the receivers"]
    assert "nothing was measured" in figures.graphs(bare)[0].alternative


def test_the_sections_have_the_faults() -> None:
    """The idle share is computed; samples that spread are counted."""
    told = {each.title: each.text for each in sections(seen())}
    assert "So 99.7 % of the timer's time is waiting" in told["Faults of the document, by our own data"]
    assert "in 0 of 16" in told["Faults of the document, by our own data"]
    assert told["Times at the receivers"].count("\n| ") == 1 + 16  # the rule, and a line for each API and cell
    assert "run socket_patterns" in told["Faults of the document, by our own data"]


def test_patterns_are_compared_on_both_libraries() -> None:
    """Both libraries have pair beside request-reply, at both sizes."""
    sweep = patterns_sweep(SCALE)
    world = World(lambda arm, _: 90.0 if arm.setting["pattern"] == "pair" else 100.0)
    judgement = judge(sweep, blocks(sweep, 10, world))
    (answer,) = patterns(Seen(judgement))
    assert len(answer.deciding) == 4
    assert answer.sentence.count("FASTER") == 4


def test_bindings_are_compared_with_c_and_with_sockets() -> None:
    """The part's own page decides by verdicts. The main page has the same sentence, and no deciding comparison."""
    sweep = bindings_sweep(SCALE)
    world = World(lambda arm, _: 300.0 if arm.setting["language"] == "python" else 100.0, block_noise=0.01)
    judgement = judge(sweep, blocks(sweep, 10, world))
    (alone,) = bindings(Seen(judgement))
    *_, beside = answers(replace(seen(), after={"socket_bindings": judgement}))
    assert [each.comparison.name for each in alone.deciding if "binding" in each.comparison.name] == [
        "binding_zeromq",
        "binding_nng",
    ]
    assert "ZeroMQ: Python ÷ C: 3.0" in alone.sentence
    assert (beside.sentence, beside.deciding) == (alone.sentence, ())


def test_the_profiles_are_the_originals_where_they_say_so() -> None:
    """The profile ``paper`` has the original's 3600 samples of a second in each cell, and 60 samples of throughput."""
    paper = SOCKETS.scales["paper"]
    plan, sweep = received(paper), SOCKETS.parts["sockets"].sweep(paper)
    assert paper.rounds * paper.looks[-1] == 3600
    assert {cell.seconds * plan.blocks for cell in plan.cells if cell.setting["rate_hz"]} == {3600}
    assert {cell.seconds for cell in plan.cells if not cell.setting["rate_hz"]} == {60}
    assert getattr(sweep.turns, "duration_s", 0) == 1.0
    few = replace(paper, peers=frozenset({"c-berkeley"}))
    assert {arm.setting["transport"] for arm in SOCKETS.parts["sockets"].sweep(few).arms} == {"berkeley"}
