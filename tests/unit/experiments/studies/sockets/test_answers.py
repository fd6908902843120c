"""Answers and sections have the measurements, and name the missing ones."""

from dataclasses import replace

import pytest

from experiments.judge.verdicts import judge
from experiments.show.content import Seen
from experiments.studies.sockets import SOCKETS, figures
from experiments.studies.sockets.answers import answers, bindings, sections
from experiments.studies.sockets.design import bindings as bindings_sweep
from experiments.studies.sockets.design import received
from tests.unit.experiments.blocks import World, blocks
from tests.unit.experiments.studies.sockets.planted import RECEIVED_HZ, SCALE, rows, seen, with_rows

pytestmark = pytest.mark.slow  # judges sweeps of 20 arms: some 0.3 s each


def test_throughputs_of_two_blocks_have_no_interval() -> None:
    """The interval of two blocks is left out, and no dash stands in its place."""
    few = with_rows(seen(), [row for row in rows(RECEIVED_HZ) if row.block <= 2])
    sentence = answers(few)[2].sentence
    assert "times as many messages as Berkeley sockets. These blocks" in sentence
    assert "–" not in sentence


def test_without_receivers_the_rest_is_said() -> None:
    """Without receivers' reports, as after an interruption, the other answers are there."""
    bare = Seen(seen().main)
    assert [each.sentence for each in answers(bare)[1:3]] == ["Not measured."] * 2
    told = {each.title: each.text for each in sections(bare)}
    assert "Nothing to show" in told["Times at the receivers"]
    assert "run socket_patterns" in told["Faults of the document, by our own data"]
    assert "nothing was measured" in figures.graphs(bare)[0].alternative


def test_bindings_are_compared_with_c_and_with_sockets() -> None:
    """The part's own page decides by verdicts. The main page has the same sentence, and no deciding comparison."""
    sweep = bindings_sweep(SCALE)
    world = World(lambda arm, _: 300.0 if arm.setting["language"] == "python" else 100.0, block_noise=0.01)
    judgement = judge(sweep, blocks(sweep, 10, world))
    (alone,) = bindings(Seen(judgement))
    *_, beside = answers(replace(seen(), after={"socket_bindings": judgement}))
    assert len(alone.deciding) == 4
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
