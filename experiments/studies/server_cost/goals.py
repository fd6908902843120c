"""The goals of ``server_cost``, and the table that says how they are met: pure, from rows to lines of text.

Ratios are taken within blocks, with Student's t interval on their logarithms. A goal is held against the point
estimate, and it is said whether the interval beside it keeps or misses the goal as a whole. Nothing is concluded where
a gate forbids to speak of the processor time of any run that it would rest on: of failed requests, a lost count, stolen
time. A trend of the times forbids no such thing. Where the load was the limit of a throughput, the table says so: such
a throughput is the load's, not the server's.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.evidence import arm_evidence
from experiments.gates import refusals
from experiments.gates.refusal import Conclusion, Refusal, forbidding
from experiments.gates.run_gates import disturbed
from experiments.results import ALL, Row
from experiments.stats import Estimate, geometric_interval, log_ratios, mean_interval, ratio_interval

GRPC_OVER_SOCKETS_MIN = 8.0
ABOVE_ECHO_MAX = {"grpc": 1.10, "sockets": 1.50}
IDLE_SHARE_MAX = 0.001
IDLE_1000_MIB_MAX = 20.0


@dataclass(frozen=True, slots=True)
class Arm:
    """One setting of the study, as its rows name it."""

    part: str
    transport: str
    executor: str

    def __str__(self) -> str:
        return f"{self.part} on {self.transport}, {self.executor}"


GRPC = Arm("lookup", "grpc", "thread-pool")
GRPC_STATIC = Arm("lookup", "grpc", "static-pool")
SOCKETS = Arm("lookup", "sockets", "static-pool")
GRPC_ECHO = Arm("echo", "grpc", "thread-pool")
SOCKETS_ECHO = Arm("echo", "sockets", "static-pool")

GRPC_STAMPED = Arm("stamped", "grpc", "thread-pool")
SOCKETS_STAMPED = Arm("stamped", "sockets", "static-pool")

ARMS = (SOCKETS, GRPC, GRPC_STATIC, SOCKETS_ECHO, GRPC_ECHO, SOCKETS_STAMPED, GRPC_STAMPED)


def conclude(rows: Sequence[Row]) -> str:
    """The table: cost and throughput of every arm, the ratios, and the idle servers, each against its goal."""
    lines = ["CPU per request and throughput, geometric mean over runs with 95 % interval:"]
    lines += [line for arm in ARMS if (line := _arm_line(rows, arm))]
    lines += ["", "Ratios of CPU per request, within blocks, with 95 % interval:"]
    lines += _ratio_lines(rows)
    lines += _timeline_lines(rows)
    lines += ["", "Idle:"]
    lines += _idle_lines([row for row in rows if row.part == "idle" and row.request == ALL])
    return "\n".join(lines)


def cost_by_block(rows: Iterable[Row], arm: Arm) -> dict[int, float]:
    """CPU per request in µs of that arm in every block that has it."""
    return {row.block: row.server_cpu_us_per_request for row in _of(rows, arm) if row.server_cpu_us_per_request}


def cost_ratio(rows: Sequence[Row], above: Arm, below: Arm) -> Estimate | None:
    """CPU per request of one arm over another's; None where no block has both."""
    values = log_ratios(cost_by_block(rows, above), cost_by_block(rows, below))
    return ratio_interval(values) if values else None


def refused(rows: Sequence[Row], *arms: Arm) -> str:
    """What the first gate has against concluding on the processor time of these arms; empty where none has."""
    found: list[Refusal] = []
    for arm in arms:
        for run in arm_evidence(_of(rows, arm)):
            found += forbidding(refusals(run), Conclusion("cpu", run.run_id))
    return _first(found)


def _first(found: Sequence[Refusal]) -> str:
    return f"not concluded (gate {found[0].gate}: {found[0].what})" if found else ""


def _of(rows: Iterable[Row], arm: Arm) -> list[Row]:
    return [row for row in rows if Arm(row.part, row.transport, row.executor) == arm and row.request == ALL]


def _arm_line(rows: Sequence[Row], arm: Arm) -> str | None:
    runs = _of(rows, arm)
    cost = list(cost_by_block(rows, arm).values())
    rates = [row.throughput_all_hz for row in runs if row.throughput_all_hz > 0]
    if not cost or not rates:
        return None
    shares = [row.client_cpu_share for row in runs if row.client_cpu_share is not None]
    limited = sum(row.load_limited for row in runs)
    load = f"load at {max(shares):.0%} of its core at most" if shares else "load not measured"
    limit = f", the limit in {limited} of {len(runs)} runs" if limited else ""
    silent = len(runs) - len(rates)
    left_out = f", no reply in {silent} of {len(runs)} runs, left out" if silent else ""
    cpu, rate = geometric_interval(cost), geometric_interval(rates)
    wrong = refused(rows, arm)
    return (
        f"  {arm!s:34} {_estimate(cpu, 'µs', 1)}  {_estimate(rate, '/s', 0)}  {load}{limit}{left_out}"
        f"{wrong and f', {wrong}'}"
    )


def _ratio_lines(rows: Sequence[Row]) -> list[str]:
    lines = [
        _ratio_line(rows, "gRPC ÷ sockets, Lookup", (GRPC, SOCKETS), at_least=GRPC_OVER_SOCKETS_MIN),
        _ratio_line(rows, "Lookup ÷ echo, sockets", (SOCKETS, SOCKETS_ECHO), at_most=ABOVE_ECHO_MAX["sockets"]),
        _ratio_line(rows, "Lookup ÷ echo, grpc", (GRPC, GRPC_ECHO), at_most=ABOVE_ECHO_MAX["grpc"]),
        _ratio_line(rows, "gRPC: static-pool ÷ thread-pool", (GRPC_STATIC, GRPC)),
    ]
    return [line for line in lines if line]


def _ratio_line(
    rows: Sequence[Row], name: str, arms: tuple[Arm, Arm], at_least: float = 0.0, at_most: float = math.inf
) -> str:
    """A ratio and its goal, if it has one; nothing where no block has both arms."""
    ratio = cost_ratio(rows, *arms)
    if ratio is None:
        return ""
    goal = f"goal at least {at_least:g}: " if at_least else f"goal at most {at_most:g}: " if at_most < math.inf else ""
    told = refused(rows, *arms) or (_told(ratio, at_least, at_most) if goal else "")
    return f"  {name:34} {_estimate(ratio, '', 3)}  {goal}{told}".rstrip()


def _told(ratio: Estimate, at_least: float, at_most: float) -> str:
    """``met`` or ``MISSED``, and whether that holds for the whole interval."""
    met, low, high = (at_least <= value <= at_most for value in (ratio.value, ratio.low, ratio.high))
    word = "met" if met else "MISSED"
    if ratio.n < 2:
        return f"{word}, by one run"
    return f"{word}, by the whole interval" if low == high == met else f"{word}, but the interval reaches past the goal"


def _timeline_lines(rows: Sequence[Row]) -> list[str]:
    """What stamping every request costs, in µs: a difference within blocks, since it is the same whatever is served."""
    lines: list[str] = []
    for transport, stamped, plain in (("sockets", SOCKETS_STAMPED, SOCKETS), ("grpc", GRPC_STAMPED, GRPC)):
        with_it, without = cost_by_block(rows, stamped), cost_by_block(rows, plain)
        costs = [with_it[block] - without[block] for block in sorted(with_it.keys() & without.keys())]
        if costs:
            line = f"  {f'The timeline, {transport}':34} {_estimate(mean_interval(costs), 'µs more', 2)}"
            lines.append(f"{line}  {refused(rows, stamped, plain)}".rstrip())
    return lines


def _idle_lines(rows: Sequence[Row]) -> list[str]:
    """Nobody sends, so that of the gates on runs only that on the surroundings has anything to look at."""
    lines: list[str] = []
    for row in rows:
        if row.server_cpu_s is None or row.server_memory_mib is None:
            continue
        share = row.server_cpu_s / row.duration_s
        (run,) = arm_evidence([row])
        wrong = _first(list(disturbed(run)))
        met = wrong or ("met" if share < IDLE_SHARE_MAX else "MISSED")
        name = f"{row.transport}, {row.connections} connections"
        lines.append(
            f"  {name:34} {share:.4%} of a core over {row.duration_s:.0f} s, {row.server_memory_mib:.1f} MiB"
            f"  goal under {IDLE_SHARE_MAX:.1%}: {met}"
        )
    growth = idle_growth_mib(rows)
    if growth is not None:
        met = "met" if growth < IDLE_1000_MIB_MAX else "MISSED"
        name = "sockets, per 1,000 connections"
        lines.append(f"  {name:34} {growth:.1f} MiB  goal under {IDLE_1000_MIB_MAX:g} MiB: {met}")
    return lines


def idle_growth_mib(rows: Iterable[Row]) -> float | None:
    """MiB that 1,000 idle connections add to the socket server; None where it was not measured both ways."""
    memory = {row.connections: row.server_memory_mib for row in rows if row.transport == "sockets"}
    empty, most = memory.get(0), max(memory, default=0)
    full = memory.get(most)
    if not most or empty is None or full is None:
        return None
    return (full - empty) * 1000 / most


def _estimate(estimate: Estimate, unit: str, digits: int) -> str:
    """``12.3 µs (12.1 to 12.5)``; one value has no interval."""
    low, value, high = (f"{number:,.{digits}f}" for number in (estimate.low, estimate.value, estimate.high))
    interval = f"{low} to {high}" if estimate.n > 1 else "one run, no interval"
    return f"{value}{unit and ' ' + unit} ({interval})"
