"""Figures of the server's cost, each with its load and the machine's speed in words; and the answer on executors."""

from dataclasses import replace

import pytest

from experiments.judge.verdicts import Ruling, Verdict, judge
from experiments.show.content import Seen
from experiments.show.figures.style import Picture
from experiments.studies.server_cost import SERVER_COST, who_runs
from experiments.studies.study import Scale
from tests.unit.experiments.blocks import World, blocks
from tests.unit.experiments.show.test_report import MACHINE
from tests.unit.experiments.studies.test_server_cost import split_seen

SMALL = Scale(rounds=2, looks=(10, 14), clients=(1,))


def drawn(part: str, recorded: bool = True) -> Picture:
    """The figure of a part whose Lookups take 100 µs for each connection."""
    sweep = SERVER_COST.parts[part].sweep(SMALL)
    measured = blocks(sweep, 3, World(lambda arm, _: 100.0 * arm.connections))
    seen = split_seen() if part == "split" else Seen(judge(sweep, measured))
    (picture,) = SERVER_COST.parts[part].pictures(replace(seen, environment=MACHINE if recorded else None))
    return picture


@pytest.mark.slow
@pytest.mark.parametrize("part", ["server_cost", "languages", "options", "split"])
def test_a_figure_of_processor_time_names_its_load(part: str) -> None:
    """A figure of processor time has its load, and the time of a fixed piece of work on this machine."""
    told = drawn(part).alternative
    assert "16 connections of one lean client" in told
    assert "on a machine that does a fixed piece of other work in 2.00 ms" in told
    assert "fixed piece" not in drawn(part, recorded=False).alternative


@pytest.mark.slow
def test_executors_stand_on_one_logarithmic_scale() -> None:
    """Panels of several numbers of connections share one logarithmic scale, and name the client."""
    picture = drawn(who_runs.PART)
    axes = picture.draw().axes
    assert {each.get_xscale() for each in axes} == {"log"}
    assert len({each.get_xlim() for each in axes}) == 1
    assert [each.get_title(loc="left").replace("\n", " ") for each in axes] == [
        f"{number} connection{'s' * (number > 1)}, client load.c" for number in who_runs.CONNECTIONS
    ]


@pytest.mark.slow
def test_an_open_pair_of_equal_servers_leaves_no_executor_open() -> None:
    """Every executor is decided. The A/A pair is not, and no command is said to decide it."""
    sweep = who_runs.sweep(SMALL)
    world = World(lambda arm, _: 20.0 if arm.setting["language"] == "c" else 100.0, block_noise=0.002)
    whole = judge(sweep, blocks(sweep, 10, world))
    (pair,) = whole.comparisons("same")
    judged = {**whole.judged, pair.comparison.name: replace(pair, rulings=(Ruling(1, 0.7, Verdict.INCONCLUSIVE, 224),))}
    asked = tuple(each for each in sweep.comparisons if each.name in judged)
    seen = Seen(replace(whole, sweep=replace(sweep, comparisons=asked), judged=judged))
    assert SERVER_COST.parts[who_runs.PART].answers(seen)[0].to_decide is None
