"""The table of goals: what stands in it, how a figure comes about, and what its lines say."""

from dataclasses import dataclass, field
from dataclasses import replace as but

import numpy as np
import pytest

from clients.load.record.times import Times
from experiments.design.sweep import SERVERS_MAX, Sweep
from experiments.measure.bench import CATALOG, bench
from experiments.measure.load_programs import Ask, Reading
from experiments.performance.command import row_line
from experiments.performance.table import SECTIONS, Row, Section
from experiments.performance.turns import WINDOWS, Found, Measuring, Plan, Turn, found, measure

HOW = Measuring(bench(CATALOG), Plan(1, 6))
ROW = Row("a ÷ b", "throughput", "a", "b", 2)


def turn(arm: str, appearance: int, hz: float) -> Turn:
    """A window."""
    return Turn(arm, 1, appearance, hz, 1.0, 100.0, 200.0, 300.0, 0.5, 0)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda each: each.name)
def test_every_goal_can_be_measured(section: Section) -> None:
    """Both of its arms stand side by side; no others are known; no more servers than may be alive at once."""
    sweep = Sweep("performance", section.name, section.grouped(frozenset()), (), 1, (1,), turns=WINDOWS)
    assert sweep.alive <= SERVERS_MAX
    assert {name for group in section.groups for name in group} == set(section.arms)
    for row in section.rows:
        assert any({row.above, row.below or row.above} <= set(group) for group in section.groups), row.what


def test_what_is_not_here_is_in_no_group() -> None:
    """Nor does an arm stand alone: the window beside it is what it is compared with."""
    (section,) = (each for each in SECTIONS if each.name == "sockets")
    left = section.grouped(frozenset({"C epoll 1", "C epoll 16"}))
    names = {setting: name for name, setting in section.arms.items()}
    assert [[names[arm.setting] for arm in group.arms] for group in left] == [
        ["sockets 16", "Python epoll", "echo on sockets"],
        ["sockets 64", "C epoll 64"],
    ]


def test_a_figure_is_the_median_over_turns_of_the_ratio_within_a_turn() -> None:
    """Windows that did not stand side by side make no ratio."""
    turns = [turn("a", place, 10.0 * hz) for place, hz in enumerate((1, 2, 3, 4, 5, 60, 7))]
    turns += [turn("b", place, 10.0) for place in range(6)] + [turn("b", 99, 1e9)]
    figure = found(ROW, turns, HOW).figure
    assert figure is not None
    assert (figure.value, figure.low, figure.high, figure.n) == (3.5, 1, 60, 6)


def test_a_block_does_not_lend_its_windows_to_another() -> None:
    """Each starts its servers afresh."""
    turns = [turn("a", 1, 20), but(turn("b", 1, 10), block=2)]
    assert found(ROW, turns, HOW) == Found(None, absent="no request was answered in both")


def test_a_row_of_one_arm_is_its_own_figure() -> None:
    """As of the tail: p99.9 ÷ median of a window."""
    row = Row("a", "p99.9 ÷ median", "a", None, 10, at_least=False)
    figure = found(row, [turn("a", 1, 20), turn("b", 1, 10)], HOW).figure
    assert figure is not None
    assert figure.value == 3


def test_a_starved_client_is_in_no_median() -> None:
    """The figure is that of the worst turn."""
    row = Row("a", "least served ÷ mean", "a", None, 0.5)
    turns = [but(turn("a", place, 20), least_share=share) for place, share in enumerate((0.9, 0.1, 0.8, 1))]
    figure = found(row, turns, HOW).figure
    assert figure is not None
    assert (figure.value, figure.n) == (0.1, 1)
    line = row_line("a", "least served ÷ mean", 0.5, True, found(row, turns, HOW))
    assert line.split("|")[6].strip() == "no"


@pytest.mark.parametrize(
    ("goal", "at_least", "said"),
    [(1, True, "yes"), (1.5, True, "undecided"), (70, True, "no"), (0.5, False, "no"), (60, False, "yes")],
)
def test_a_goal_is_reached_where_the_whole_interval_says_so(goal: float, at_least: bool, said: str) -> None:
    """Else it is undecided; the interval here is from 1 to 60."""
    turns = [turn(*each) for place in range(6) for each in (("a", place, (1, 2, 3, 4, 5, 60)[place]), ("b", place, 1))]
    line = row_line("a ÷ b", "throughput", goal, at_least, found(ROW, turns, HOW))
    assert line.split("|")[6].strip() == said


def test_a_load_program_that_is_the_limit_is_marked() -> None:
    """From 80 % of its core on."""
    turns = [but(turn("a", 1, 2), load_share=0.79), but(turn("b", 1, 1), load_share=0.81, errors=3)]
    line = row_line("a ÷ b", "throughput", 2, True, found(ROW, turns, HOW))
    assert line == "| a ÷ b | throughput | ≥ 2.00 | 2.00 | – | yes | 79 % ÷ 81 % †; 3 errors |"


def test_a_server_that_is_not_here_is_named() -> None:
    """With what builds it."""
    how = but(HOW, left_out={"b": "run make peers"})
    line = row_line("a ÷ b", "throughput", 2, True, found(ROW, [turn("a", 1, 2)], how))
    assert line == "| a ÷ b | throughput | ≥ 2.00 | run make peers | | | |"
    beside = found(but(ROW, below=None), [], how)
    assert beside.absent == "run make peers", "its windows stand beside those of a server that is not here"


@dataclass
class Load:
    """A load program that answers from a list."""

    told: list[Reading]
    asked: list[Ask] = field(default_factory=list)

    def load(self, ask: Ask) -> Reading:
        """See ``LoadProgram``."""
        self.asked.append(ask)
        return self.told[len(self.asked) - 1]


def reading(hz: float) -> Reading:
    """A hundred requests of 50 µs each."""
    times = Times()
    times.record(np.full(100, 50_000, dtype=np.int64))
    return Reading(100, hz, 50.0, 50.0, times=times, all_requests=120, served=(5, 7))


@pytest.mark.slow
def test_a_section_is_measured_on_real_servers() -> None:
    """Every window of every turn is kept beside its arm."""
    (section,) = (each for each in SECTIONS if each.name == "sockets")
    left_out = {name: "left out" for name in section.arms if name not in ("sockets 16", "echo on sockets")}
    load = Load([reading(hz) for hz in (1, 2, 3, 4)])
    on = but(HOW.bench, load_programs={"c": load})
    turns = measure(section, Measuring(on, Plan(1, 2), left_out), lambda _: None)
    assert [each.throughput_hz for each in turns] == [1, 2, 3, 4]
    assert {each.least_share for each in turns} == {5 / (100 / 16)}
    assert load.asked[0].address != load.asked[1].address
    assert sorted(each.arm for each in turns) == 2 * ["echo on sockets"] + 2 * ["sockets 16"]
    assert [each.appearance for each in turns] == [0, 0, 1, 1]
    echoes = {
        load.asked[place].path.startswith("/experiments") for place, each in enumerate(turns) if "echo" in each.arm
    }
    assert echoes == {True}
