"""Evidence that every gate lets pass, to be spoiled by the tests: runs, comparisons, sentences. Nothing was measured.

The closed run obeys Little's law: 20,000 replies a second × (245 + 5 µs) are its 5 connections. The open one is M/M/1
at half load: 2 ms of service, 250 arrivals a second, 4.00 ms of mean and 2.77 ms of median response, 1 under way.
"""

import math
from dataclasses import replace

from experiments.gates.evidence import (
    AARecord,
    Arrivals,
    ComparisonEvidence,
    IntervalEvidence,
    Load,
    MachineEvidence,
    Percentile,
    Replies,
    RunEvidence,
    SentenceEvidence,
    Server,
    Surroundings,
    Times,
)
from experiments.gates.predicates import Level, Shows
from experiments.stats import Verdict, ratio_interval

AROUND = Surroundings(steal_share=0.002, calibration_us_before=1000.0, calibration_us_after=1010.0)
AA = AARecord("2 cores", "closed, 5 connections", comparisons=40, false_differences=2, effect_min=1.04)
MACHINE = MachineEvidence("2 cores", "closed, 5 connections", (AA,), AROUND)

FACTORS: dict[str, Level] = {"transport": "sockets", "locking": "mutex", "workers": 10, "connections": 5, "size": 100}
SEEN: dict[str, Level] = {
    "request_bytes": 100,
    "reply_bytes": 100,
    "pattern": "request-reply",
    "tcp_nodelay": True,
    "keep_alive": True,
    "tls": False,
    "threads": 10,
    "connections": 5,
}

FIRST_ABOVE = (True, False, False, True, True, False, True, False, True, True, False, True)
"""In which blocks the arm above came first: as a random order would have it."""

QUIET = (0.02, -0.015, 0.01, -0.005, -0.02, 0.015, 0.0, 0.012, -0.017, 0.005, -0.012, 0.007)
"""Noise of the blocks' log-ratios, neighbours unlike each other."""


def closed_run(run_id: str = "001-001", **factors: Level) -> RunEvidence:
    """A good run of a closed loop of 5 connections; keywords set factors."""
    return RunEvidence(
        run_id=run_id,
        block=1,
        order=1,
        process=f"server of {run_id}",
        factors=FACTORS | factors,
        seen=SEEN,
        load=Load("closed", connections=5, duration_s=20.0, warm_up_s=2.0, cpu_share=0.6),
        replies=Replies(sent=400_000, answered=400_000, validated=True, steady=True),
        times=Times(
            clock="perf_counter_ns",
            mean_us=245.0,
            percentiles=(Percentile(50, 230.0), Percentile(99, 610.0, 50_000.0), Percentile(99.9, 900.0, 30_000.0)),
            max_us=4000.0,
            think_us_mean=5.0,
            idle_us_mean=0.0,
            lag_1=0.3,
        ),
        server=Server(cores=1, cpu_us_per_request=36.0, demand_us=60.0, demand_us_max=36.0),
        surroundings=AROUND,
        throughput_hz=20_000.0,
    )


def open_run(run_id: str = "001-001") -> RunEvidence:
    """A good run of an open loop, Poisson at 250 a second for 100 s on 20 connections."""
    return RunEvidence(
        run_id=run_id,
        block=1,
        order=1,
        process=f"server of {run_id}",
        factors=FACTORS | {"rate": 250},
        seen=SEEN | {"connections": 20},
        load=Load(
            "open",
            connections=20,
            duration_s=100.0,
            warm_up_s=2.0,
            rate_hz=250.0,
            process="poisson",
            scheduled=25_000,
            late_us_p99=60.0,
            arrivals=Arrivals(250.0, 24_999, 4000.0, variation=1.0, ks_distance=0.004, dispersion=1.02, slices=100),
            cpu_share=1.0,
            spinning=True,
        ),
        replies=Replies(sent=25_000, answered=25_000, validated=True, steady=True),
        times=Times(
            clock="perf_counter_ns",
            mean_us=4000.0,
            start="due",
            percentiles=(Percentile(50, 2770.0), Percentile(90, 9210.0), Percentile(99, 18_420.0, 4000.0)),
            max_us=41_000.0,
            idle_us_mean=0.0,
            in_flight_mean=1.0,
        ),
        server=Server(cores=1, cpu_us_per_request=90.0, demand_us=2000.0, demand_us_max=2000.0),
        surroundings=AROUND,
    )


def compared(
    above: RunEvidence, below: RunEvidence, declared: str = "transport", effect: float = 0.7, blocks: int = 9
) -> ComparisonEvidence:
    """A good comparison of two settings over so many blocks, in random order, with that ratio."""
    logs = tuple(math.log(effect) + QUIET[block % len(QUIET)] for block in range(blocks))
    ratio = ratio_interval(logs)
    arms: tuple[list[RunEvidence], list[RunEvidence]] = ([], [])
    for block in range(1, blocks + 1):
        for arm, run, first in ((arms[0], above, True), (arms[1], below, False)):
            order = 1 if FIRST_ABOVE[(block - 1) % len(FIRST_ABOVE)] is first else 2
            run_id = f"{block:03d}-{order:03d}"
            arm.append(replace(run, run_id=run_id, block=block, order=order, process=f"server of {run_id}"))
    return ComparisonEvidence(
        name=f"{declared}, above ÷ below",
        declared=frozenset({declared}),
        above=tuple(arms[0]),
        below=tuple(arms[1]),
        log_ratios=logs,
        interval=IntervalEvidence("ratio", ratio.low, ratio.high, blocks, "block", "t"),
        verdict=Verdict.FASTER,
        p=2.0 ** (1 - blocks),
        p_holm=2.0 ** (1 - blocks),
        machine=MACHINE,
    )


def transports() -> ComparisonEvidence:
    """Sockets against gRPC, alike but for that."""
    return compared(closed_run(), closed_run(transport="grpc"))


def said(comparison: ComparisonEvidence, text: str = "Sockets answer in less time than gRPC.") -> SentenceEvidence:
    """A sentence that says what that comparison's verdict is."""
    return SentenceEvidence(text, (Shows(comparison.verdict),), comparisons=(comparison,))
