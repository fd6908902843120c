"""Promise: bounded under overload. A service that computes for 0.5 ms is offered 2, 5 and 10 times its capacity.

The check needs a machine with two free cores. The load comes in blocks. A second server with the same work is never
overloaded. Before and after each block, 16 connections to it have one request under way each: a closed loop.

The host's speed changes by the second, by a factor of two on some hosts. So rates are not compared. The server says how
much processor time its handlers took. A rate times the mean time of a handler is the handlers' share of a core, which a
slower host does not change. The peak is the mean share of the two closed loops. A share does not show an overload that
makes the handlers themselves compute longer. So a row also has the goodput by rates, which is as noisy as the host.

A block's goodput is the handlers' share of requests that were answered within the deadline, divided by the peak. After
the block a closed loop runs on the overloaded server. The second half of this loop ÷ the next peak shows if the server
has recovered. A row has the median and the range of its blocks. grpcio's server is a control: its rows have no goal.
``overload_lookups.py`` tries Lookups.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from stock_service.rpc.transports import Address, load
from tests.end_to_end.process import WAIT_S, Server
from tests.more_methods import DEADLINE, PROGRAM, RAN, SPIN, SPIN_S, turns_of
from tests.reliability.fair_calls import called
from tests.reliability.open_loop import Offered, offer
from tests.reliability.rows import Row
from tests.reliability.serving import LEADING, memory_mib

DEADLINE_S = 0.1
P99_S = 0.05

GOALS: Mapping[str, Mapping[int, float]] = MappingProxyType(
    {"sockets": {2: 0.95, 5: 0.85, 10: 0.75}, "grpc_static": {2: 0.9, 5: 0.7, 10: 0.5}}
)
"""Goodput by the multiple of capacity that is offered."""

CONTROL = "grpc"

BACK_S = 1.0
BACK = 0.9
"""Time after an overload, in a run of minutes, and the share of the peak that a closed loop must get by then."""

MEMORY_MIB = 64

CLOSED = 16
"""Connections of a closed loop."""

NEVER = DEADLINE.pack(2**62)
"""The deadline that a client sends if it never gives up."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """The number and length of a load's blocks."""

    blocks: int
    block_s: float
    closed_s: float = BACK_S


@dataclass(frozen=True, slots=True)
class Block:
    """One block between two closed loops."""

    offered: Offered
    goodput: float
    back: float
    """The handlers' share of a core in the second half of the closed loop after the block, ÷ the peak right after."""
    goodput_by_rates: float | None = None
    """Goodput by rates; None if ``goodput`` itself is by rates."""


@dataclass(frozen=True, slots=True)
class Ran:
    """Handlers that ran on a spinning server since it started."""

    handlers: int
    late: int
    """Handlers that began after their client had given up."""
    cpu_ns: int

    def mean_s(self, before: "Ran") -> float:
        """Mean processor time of a handler since ``before``, in seconds; 0 where none ran."""
        return (self.cpu_ns - before.cpu_ns) / 1e9 / max(1, self.handlers - before.handlers)


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of a core that handlers took in both halves of a closed loop, and the mean time of a handler."""

    first: float
    second: float
    handler_s: float

    @property
    def mean(self) -> float:
        """Share of a core in the whole loop."""
        return (self.first + self.second) / 2

    @property
    def mean_hz(self) -> float:
        """Answers a second in the whole loop."""
        return self.mean / self.handler_s


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Runs for a third of a minute; with ``minutes`` for two minutes."""
    lengths = Lengths(4, 1.6) if minutes else Lengths(1, 1.0, 0.6)
    beside = Lengths(1, 1.0, 0.6) if minutes else Lengths(1, 0.5, 0.3)
    rows = [row for transport, goals in GOALS.items() for row in overloaded(transport, goals, lengths)]
    rows += overloaded("sockets", GOALS["sockets"], lengths, LEADING)
    return rows + overloaded(CONTROL, dict.fromkeys(GOALS["sockets"]), beside)


def overloaded(
    transport: str, goals: Mapping[int, float | None], lengths: Lengths, options: Sequence[str] = ()
) -> list[Row]:
    """The rows of one transport. Without goals the rows only state figures."""
    name = f"{transport}, leader/followers" if options else transport
    rows: list[Row] = []
    has_goals = None not in goals.values()
    turns = str(turns_of(SPIN_S))
    program = (PROGRAM, "--transport", transport, "--turns", turns, *options)
    with Server(program) as server, Server(program) as rested:
        address = server.address
        closed_shares(transport, address, lengths.closed_s / 2)
        before_mib = memory_mib(server.pid, "VmHWM")
        peak = closed_shares(transport, rested.address, lengths.closed_s / 2)
        peaks, peaks_hz = [peak.mean], [peak.mean_hz]
        for times, goal in goals.items():
            blocks = []
            for _ in range(lengths.blocks):
                before = ran(transport, address)
                rate_hz = times * peaks_hz[-1]
                offered = offer(transport, address, SPIN, DEADLINE.pack, rate_hz, lengths.block_s, DEADLINE_S)
                handler_s = ran(transport, address).mean_s(before)
                back = closed_shares(transport, address, lengths.closed_s).second
                peak = closed_shares(transport, rested.address, lengths.closed_s / 2)
                peaks.append(peak.mean)
                peaks_hz.append(peak.mean_hz)
                block = block_of(offered, lengths.block_s, peaks[-2:], back, handler_s)
                by_rates = block_of(offered, lengths.block_s, peaks_hz[-2:], 0.0).goodput
                blocks.append(replace(block, goodput_by_rates=by_rates))
            rows += rows_of(f"{name} at {times} times its capacity", blocks, goal, lengths.closed_s)
            if times == min(goals):
                rows.append(refusals(f"{name} at {times} times its capacity", blocks, has_goals))
        grown_mib = memory_mib(server.pid, "VmHWM") - before_mib
        what, goal_text = f"{name}: memory over all of it", f"≤ {MEMORY_MIB} MiB more"
        rows.append(Row(what, goal_text, f"{grown_mib:.0f} MiB", grown_mib <= MEMORY_MIB).if_promised(has_goals))
        late = ran(transport, address).late
        what = f"{name}: handlers that began after their deadline"
        rows.append(Row(what, "0", f"{late:,}", late == 0, late).if_promised(has_goals))
    return rows


def block_of(offered: Offered, duration_s: float, peaks: Sequence[float], back: float, handler_s: float = 1.0) -> Block:
    """The block between the two ``peaks``. ``back`` is the value of the overloaded server right before the last peak.
    The values are shares of a core, and a handler took ``handler_s`` in the block. With a ``handler_s`` of 1 the values
    are rates.
    """
    return Block(offered, offered.good * handler_s / (statistics.fmean(peaks) * duration_s), back / peaks[-1])


def rows_of(what: str, blocks: Sequence[Block], goal: float | None, closed_s: float) -> list[Row]:
    """Rows of some blocks of the same load, with closed loops of ``closed_s``. Rows without a goal state figures."""
    goodput = statistics.median(block.goodput for block in blocks)
    p99_s = _p99_s(blocks, lambda offered: offered.answered_s)
    unheard = sum(block.offered.unanswered for block in blocks)
    given_up = sum(block.offered.given_up for block in blocks)
    never = f", and {given_up:,} never sent" if given_up else ""
    back = statistics.median(block.back for block in blocks)
    at_least, figure = goal or 0.0, _spread([block.goodput for block in blocks]) + _by_rates(blocks)
    heard = not unheard and not given_up
    returned = _spread([block.back for block in blocks])
    p99 = f"{what}: p99 of what is answered"
    rows = [
        Row(f"{what}: goodput", f"≥ {at_least:.0%} of the peak", figure, goodput >= at_least, goodput * 100),
        Row(p99, f"≤ {P99_S * 1000:g} ms", f"{p99_s * 1000:.0f} ms", p99_s <= P99_S, p99_s * 1000),
        Row(f"{what}: requests of which nothing is heard", "0", f"{unheard:,}{never}", heard),
        Row(f"{what}: back within {closed_s:g} s", f"≥ {BACK:.0%} of the peak", returned, back >= BACK),
    ]
    return [row.if_promised(goal is not None) for row in rows]


def refusals(what: str, blocks: Sequence[Block], has_goal: bool) -> Row:
    """The times until requests are refused."""
    p99_s = _p99_s(blocks, lambda offered: offered.refused_s)
    refused = sum(len(block.offered.refused_s) for block in blocks)
    figure = f"{p99_s * 1000:.0f} ms, of {refused:,}" if refused else "none is refused"
    row = Row(f"{what}: p99 of refusals", f"≤ {P99_S * 1000:g} ms", figure, p99_s <= P99_S, p99_s * 1000)
    return row.if_promised(has_goal)


def _spread(shares: Sequence[float]) -> str:
    median = f"{statistics.median(shares):.0%}"
    return median if len(shares) == 1 else f"{median}; {min(shares):.0%} to {max(shares):.0%} in {len(shares)} blocks"


def _by_rates(blocks: Sequence[Block]) -> str:
    """Text on the goodput by rates, if the blocks have one."""
    found = [block.goodput_by_rates for block in blocks if block.goodput_by_rates is not None]
    return f"; {statistics.median(found):.0%} by rates" if found else ""


def _p99_s(blocks: Sequence[Block], times: Callable[[Offered], list[float]]) -> float:
    """99th percentile over all blocks together; infinite without times."""
    took_s = sorted(each for block in blocks for each in times(block.offered))
    return took_s[int(0.99 * len(took_s))] if took_s else float("inf")


def closed_loop(
    transport: str, address: Address, path: str, payload: bytes, duration_s: float, calls: int = 1
) -> tuple[float, float]:
    """Answers a second that 16 connections get, each with ``calls`` calls open, in both halves of the time. A refusal
    is not an answer."""
    halves = []
    for _ in range(2):
        served = called(transport, address, CLOSED, calls, duration_s / 2, path, payload)
        halves.append(len(served.took_s) / (duration_s / 2))
    return halves[0], halves[1]


def closed_shares(transport: str, address: Address, duration_s: float) -> Shares:
    """The handlers' shares of a core in a closed loop on a spinning server."""
    before = ran(transport, address)
    first_hz, second_hz = closed_loop(transport, address, SPIN, NEVER, duration_s)
    handler_s = ran(transport, address).mean_s(before)
    return Shares(first_hz * handler_s, second_hz * handler_s, handler_s)


def ran(transport: str, address: Address) -> Ran:
    """The handlers that ran on a spinning server so far."""
    connection = load(transport).connect(address, WAIT_S)
    try:
        return Ran(*map(int, connection.call(RAN, b"", WAIT_S).split()))
    finally:
        connection.close()
