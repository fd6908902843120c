"""Two fixtures for each gate: one that it must refuse, one that it must accept. Real numbers where a study has them."""

from dataclasses import dataclass, replace

from experiments.gates.evidence import (
    Arrivals,
    Evidence,
    FamilyEvidence,
    IntervalEvidence,
    Load,
    Percentile,
    Replies,
    RunEvidence,
    SentenceEvidence,
    Server,
    Surroundings,
    Times,
)
from experiments.gates.predicates import AlwaysBelow, BecauseOf, Cell, NoDifference, Shows
from experiments.stats import Verdict, holm
from tests.unit.experiments.gates.planted_evidence import (
    MACHINE,
    SEEN,
    closed_run,
    compared,
    open_run,
    transports,
)
from tests.unit.experiments.gates.seed_numbers import (
    GREETER_HZ,
    LOOKUP_MS,
    MESSAGES_HZ,
    MISPRINTED,
    REQUESTS,
    SORT_US,
    TABLE,
    Printed,
)


@dataclass(frozen=True, slots=True)
class Fixture:
    """What a gate must refuse, and what it must accept."""

    gate: int
    bad: Evidence
    good: Evidence
    also: frozenset[int] = frozenset()
    """Other gates that rightly refuse the bad one."""


def single(calls: int, mean_us: float) -> RunEvidence:
    """One connection that makes so many calls, one after another."""
    return replace(
        closed_run(connections=1),
        seen=SEEN | {"connections": 1},
        load=Load("closed", connections=1, duration_s=calls * mean_us / 1e6),
        replies=Replies(sent=calls, answered=calls, validated=True),
        times=Times("perf_counter_ns", mean_us, think_us_mean=0.0),
        server=Server(cores=8),
        throughput_hz=None,
    )


def printed_run(cell: Printed, mean_ms: float) -> RunEvidence:
    """A cell of seed 003 as a run: a new connection for each request, the load tool never idle."""
    return replace(
        closed_run(language=cell.language, pool=cell.pool, connections=cell.connections),
        load=Load("closed", connections=cell.connections, duration_s=cell.total_s, policy="per-request"),
        replies=Replies(sent=REQUESTS, answered=REQUESTS, validated=True),
        times=Times("Go time.Since", mean_ms * 1000, think_us_mean=0.0),
        server=Server(cores=8),
        throughput_hz=None,
    )


def paced(mean_us: float, idle_us_mean: float | None) -> RunEvidence:
    """Seed 001's run: an hour of messages at a constant rate on one connection."""
    messages = 3600 * MESSAGES_HZ
    load = Load("open", connections=1, duration_s=3600.0, rate_hz=float(MESSAGES_HZ), process="constant")
    return replace(
        single(messages, mean_us),
        load=replace(load, scheduled=messages, late_us_p99=20.0),
        times=Times("perf_counter_ns", mean_us, idle_us_mean=idle_us_mean),
    )


def echo(reply_bytes: int, nodelay: bool, interface: str) -> RunEvidence:
    """Seed 001's servers: Berkeley answers 18 bytes to 10 KB, the others send them back."""
    found = {"request_bytes": 10_240, "reply_bytes": reply_bytes, "tcp_nodelay": nodelay}
    return replace(closed_run(interface=interface), seen=SEEN | found)


def sorting(array_len: int, request_bytes: int) -> RunEvidence:
    """Seed 000's call, as claimed: an array of that length."""
    found = {"request_bytes": request_bytes, "reply_bytes": request_bytes}
    return replace(closed_run(array_len=array_len), seen=SEEN | found)


def arriving(variation: float, ks_distance: float, dispersion: float) -> RunEvidence:
    """An open run declared to be Poisson, its arrivals found so."""
    run = open_run()
    seen = Arrivals(250.0, 24_999, 4000.0, variation, ks_distance, dispersion, slices=100)
    return replace(run, load=replace(run.load, arrivals=seen))


def late(late_us_p99: float) -> RunEvidence:
    """An open run so late, its median response 2.77 ms."""
    run = open_run()
    return replace(run, load=replace(run.load, late_us_p99=late_us_p99))


def ordered(merge_first: bool) -> Evidence:
    """Seed 000's two algorithms: merge before quick on every connection, or in random order."""
    comparison = compared(closed_run(algorithm="merge"), closed_run(algorithm="quick"), "algorithm")
    if not merge_first:
        return comparison
    return replace(
        comparison,
        above=tuple(replace(run, order=1) for run in comparison.above),
        below=tuple(replace(run, order=2) for run in comparison.below),
    )


def always_faster(method: str) -> SentenceEvidence:
    """Seed 003's sixth conclusion, on its own table, the misprinted means corrected."""
    cells = tuple(
        Cell({"language": c.language, "pool": c.pool, "connections": c.connections}, c.corrected_ms)
        for c in TABLE
        if c.method == method
    )
    text = f"In every case Rust has the lower mean response time ({method})."
    return SentenceEvidence(text, (AlwaysBelow("language", "rust", "go"),), cells)


def alike(verdict: Verdict) -> SentenceEvidence:
    """Seed 004's third answer: two similar means."""
    trade, lookup = closed_run(request="trade"), closed_run(request="lookup")
    comparison = replace(compared(trade, lookup, "request", effect=1.01), verdict=verdict)
    text = "There is no difference between Trade and Lookup."
    return SentenceEvidence(text, (NoDifference(),), comparisons=(comparison,))


def the_lock(transport: str) -> SentenceEvidence:
    """Seed 004's first answer: gRPC with a lock against what has none, and the lock named as the reason."""
    locked, free = closed_run(transport=transport, locking="mutex"), closed_run(transport="sockets", locking="none")
    effect = LOOKUP_MS["grpc"] / LOOKUP_MS["sockets"]
    comparison = replace(compared(locked, free, "locking", effect), verdict=Verdict.SLOWER)
    if transport != "sockets":
        comparison = replace(comparison, declared=frozenset({"locking", "transport"}))
    text = "Lookup takes longer because of the lock."
    return SentenceEvidence(text, (Shows(Verdict.SLOWER), BecauseOf("locking")), comparisons=(comparison,))


def cold(inside: int) -> RunEvidence:
    """Seed 000: 100 calls over gRPC, connected within the first; or ten thousand, connected before."""
    calls = 100 if inside else 10_000
    run = single(calls, SORT_US["gRPC", "merge"][calls])
    return replace(run, replies=replace(run.replies, connects_inside=inside, first_calls_inside=inside))


def tail(rank: float) -> RunEvidence:
    """Seed 002's thousand calls, and a percentile of them."""
    run = single(1000, 1e6 / GREETER_HZ)
    return replace(run, times=replace(run.times, percentiles=(Percentile(rank, 900.0),)))


def stolen(share: float) -> RunEvidence:
    """A run from whose cores the hypervisor took that share."""
    return replace(closed_run(), surroundings=Surroundings(steal_share=share))


CHANCES = tuple(0.04 - 0.001 * place for place in range(36))
"""The p of 36 comparisons, as many as seed 003 has of Rust with Go."""

FIXTURES: tuple[Fixture, ...] = (
    Fixture(1, paced(33_410.0, None), paced(820.0, 0.0)),
    Fixture(
        2,
        compared(echo(18, False, "berkeley"), echo(10_240, True, "nanomsg"), "interface"),
        compared(echo(10_240, True, "berkeley"), echo(10_240, True, "nanomsg"), "interface"),
    ),
    Fixture(
        3,
        compared(sorting(1000, 28), sorting(100, 28), "array_len"),
        compared(sorting(1000, 4000), sorting(100, 400), "array_len"),
    ),
    Fixture(4, replace(closed_run(), replies=Replies(sent=400_000, answered=400_000)), closed_run()),
    Fixture(5, cold(1), cold(0)),
    Fixture(
        6,
        printed_run(MISPRINTED[0], MISPRINTED[0].mean_ms),
        printed_run(MISPRINTED[0], MISPRINTED[0].corrected_ms),
    ),
    Fixture(7, late(310.0), late(60.0)),
    Fixture(8, arriving(0.0, 0.63, 0.0), arriving(1.004, 0.006, 1.05)),
    Fixture(9, replace(transports(), log_ratios=transports().log_ratios[:5]), transports()),
    Fixture(10, ordered(merge_first=True), ordered(merge_first=False)),
    Fixture(
        11,
        replace(transports(), interval=IntervalEvidence("ratio", 0.69, 0.71, 3600.0, "request", "t")),
        replace(transports(), interval=IntervalEvidence("ratio", 0.65, 0.75, 9.0, "block", "t")),
    ),
    Fixture(
        12,
        IntervalEvidence("response time, ZeroMQ, 10 KB", -4.0, 9.0, 3600.0, "run", "standard deviation"),
        IntervalEvidence("response time, ZeroMQ, 10 KB", 2.4, 2.6, 12.0, "run", "t"),
    ),
    Fixture(13, tail(99.9), tail(99.0)),
    Fixture(14, stolen(0.05), stolen(0.004)),
    Fixture(
        15,
        FamilyEvidence("Rust against Go", 36, CHANCES, None),
        FamilyEvidence("Rust against Go", 36, CHANCES, tuple(holm(CHANCES))),
    ),
    Fixture(16, always_faster("PUT"), always_faster("GET")),
    Fixture(17, alike(Verdict.INCONCLUSIVE), alike(Verdict.EQUIVALENT)),
    Fixture(18, the_lock("grpc"), the_lock("sockets")),
    Fixture(
        19,
        replace(tail(99.0), times=replace(tail(99.0).times, clock="high_resolution_clock", called="processor")),
        tail(99.0),
    ),
    Fixture(20, replace(MACHINE, load="open, 250/s"), MACHINE),
)
