"""Measures a section: its servers by turns, in windows, each loaded by a program in C.

A turn is one window of each arm of a group, side by side. A row's figure is the median over turns of the ratio within a
turn, with the interval of that median. Processor time of a load program is that of its process from start to end, so it
holds its start of some 20 ms, over the window with its warm-up.
"""

import resource
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from experiments.design.sweep import Sweep, Windows
from experiments.judge.stats import Estimate, median_interval
from experiments.measure import windows
from experiments.measure.bench import Bench
from experiments.measure.load_programs import Ask, LoadProgram, Reading
from experiments.performance.table import Metric, Row, Section
from experiments.results.observed import KEPT

CONFIDENCE = 0.95

LIMITED_SHARE = 0.8
"""Of its core, from which on a load program is said to be what limits."""

WORST: Metric = "least served ÷ mean"
"""Its figure is that of the worst turn: a client that is starved in one turn is in no median."""

WINDOWS = Windows()


@dataclass(frozen=True, slots=True)
class Turn:
    """One window of an arm."""

    arm: str
    block: int
    appearance: int
    """Windows with the same, of one block, stood side by side."""
    throughput_hz: float
    cpu_us: float
    """The server's processor time for each request."""
    p50_us: float
    p99_us: float
    p999_us: float
    load_share: float
    """Of a core, that the load program took."""
    errors: int
    least_share: float | None = None
    """Requests of the connection that was served least, of the mean of all; None where the load does not say it."""

    def value(self, metric: Metric) -> float:
        """One of its numbers."""
        match metric:
            case "throughput":
                return self.throughput_hz
            case "CPU a request":
                return self.cpu_us
            case "median":
                return self.p50_us
            case "p99.9 ÷ median":
                return self.p999_us / self.p50_us
            case "least served ÷ mean":  # WORST
                assert self.least_share is not None, "load.c says it"
                return self.least_share


@dataclass(slots=True)
class Noted:
    """A load program whose readings are kept, each with the processor time that it took. One thread's."""

    program: LoadProgram
    readings: list[Reading]
    """Of every program of the run, in order."""

    def load(self, ask: Ask) -> Reading:
        """See ``LoadProgram``."""
        before_s = _children_s()
        seen = self.program.load(ask)
        share = (_children_s() - before_s) / (ask.warm_up_s + ask.duration_s)
        self.readings.append(replace(seen, cpu_share=share))
        return self.readings[-1]


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for a row."""

    figure: Estimate | None
    """None: nothing was measured."""
    load_shares: tuple[float, ...] = ()
    """Of the arm above, and of the one below."""
    errors: int = 0
    absent: str = ""
    """Why nothing was measured."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long a section is measured."""

    blocks: int
    """Fresh starts of all its servers."""
    turns: int
    """In a block."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """Where a section is measured, and with what."""

    bench: Bench
    plan: Plan
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Arms that cannot be measured, each with why."""


def measure(section: Section, how: Measuring, watch: Callable[[float], None]) -> list[Turn]:
    """Every turn of a section. Blocks. Raises ProgramFailed where a server or a load program fails."""
    groups = section.grouped(frozenset(how.left_out))
    names = {setting: name for name, setting in section.arms.items()}
    sweep = Sweep("performance", section.name, groups, (), how.plan.turns, (how.plan.blocks,), turns=WINDOWS)
    found: list[Turn] = []
    for block in range(1, how.plan.blocks + 1):
        readings: list[Reading] = []
        noted = {name: Noted(program, readings) for name, program in how.bench.load_programs.items()}

        def within(share: float, done: int = block - 1) -> None:
            watch((done + share) / how.plan.blocks)

        seen = windows.measure(sweep, block, 1, replace(how.bench, load_programs=noted), within).slices
        for place, reading in enumerate(readings):
            if seen.fate[place] == KEPT:
                of = sweep.arms[seen.arm[place]].setting
                cpu_us = seen.server_cpu_ns[place] / seen.requests[place] / 1000
                turn = turn_of(names[of], (block, seen.appearance[place]), cpu_us, reading)
                found.append(replace(turn, least_share=_least_share(reading, of.whole("connections"))))
    return found


def turn_of(arm: str, beside: tuple[int, int], cpu_us: float, reading: Reading) -> Turn:
    """What a load program read, as a turn; ``beside``: its block and its appearance there."""
    assert reading.times is not None, "a program that says no single time"
    assert reading.cpu_share is not None, "noted"
    told = reading.times.distribution()
    assert told.p50_us is not None, "a window that was kept has requests"
    assert told.p99_us is not None
    assert told.p999_us is not None
    hz, share = reading.throughput_hz, reading.cpu_share
    return Turn(arm, *beside, hz, cpu_us, told.p50_us, told.p99_us, told.p999_us, share, reading.errors)


def _least_share(reading: Reading, connections: int) -> float | None:
    """What the connection that was served least got of the mean."""
    return None if reading.served is None else reading.served[0] * connections / reading.requests


def found(row: Row, turns: list[Turn], how: Measuring) -> Found:
    """What the turns say for a row."""
    wanted = [name for name in (row.above, row.below) if name is not None]
    absent = [how.left_out[name] for name in wanted if name in how.left_out]
    if absent:
        return Found(None, absent=absent[0])
    values = list(_values(row, turns))
    if not values:
        return Found(None, absent=next(iter(how.left_out.values()), "no request was answered in both"))
    if row.metric == WORST:
        values = [min(values)]
    own = [[turn for turn in turns if turn.arm == name] for name in wanted]
    shares = tuple(median_interval([turn.load_share for turn in each], CONFIDENCE).value for each in own)
    return Found(median_interval(values, CONFIDENCE), shares, sum(turn.errors for each in own for turn in each))


def _values(row: Row, turns: list[Turn]) -> Iterator[float]:
    above = {(turn.block, turn.appearance): turn.value(row.metric) for turn in turns if turn.arm == row.above}
    if row.below is None:
        yield from above.values()
        return
    for turn in turns:
        if turn.arm == row.below and (turn.block, turn.appearance) in above:
            yield above[turn.block, turn.appearance] / turn.value(row.metric)


def _children_s() -> float:
    """Processor time of the programs that this process has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
