"""What the original studies published, and the gates refuse; and what in them stands."""

from dataclasses import replace

import pytest

from experiments.gates import refusals, verdict_refused
from experiments.gates.evidence import Evidence, Load, Replies, RunEvidence, SentenceEvidence, Times
from experiments.gates.predicates import AlwaysBelow, BelowIn, Cell, GrowsWith
from experiments.gates.refusal import Scope
from experiments.gates.sentence import Sentence
from experiments.stats import Verdict
from tests.unit.experiments.gates.fixtures import always_faster, printed_run, single
from tests.unit.experiments.gates.planted_evidence import closed_run, compared, transports
from tests.unit.experiments.gates.seed_numbers import GREETER_HZ, MISPRINTED, SORT_US, TABLE, Printed


def gates(evidence: Evidence) -> set[int]:
    """By which gates it is refused."""
    return {refusal.gate for refusal in refusals(evidence)}


@pytest.mark.parametrize(
    "cell", TABLE, ids=lambda cell: f"{cell.method}-{cell.language}-{cell.pool}-{cell.connections}"
)
def test_littles_law_finds_the_five_misprinted_means_among_seventy_two(cell: Printed) -> None:
    """Seed 003: 0.877 for 8.877 ms, and so on; every other cell obeys."""
    assert gates(printed_run(cell, cell.mean_ms)) == ({6} if cell in MISPRINTED else set())
    assert gates(printed_run(cell, cell.corrected_ms)) == set()


def test_the_misprinted_means_lost_their_first_digit() -> None:
    """Seed 003: 8 ms are missing from each, and nothing else."""
    assert [round(cell.corrected_ms - cell.mean_ms, 3) for cell in MISPRINTED] == [8.0] * 5


def greeter(calls: int) -> RunEvidence:
    """Seed 002 with two clients: so many calls in the time in which one client makes 1000."""
    run = single(1000, 1e6 / GREETER_HZ)
    load = Load("closed", connections=2, duration_s=1000 / GREETER_HZ)
    replies = Replies(sent=calls, answered=calls, validated=True)
    return replace(run, load=load, replies=replies, seen={"connections": 2})


def test_one_clients_rate_is_not_the_servers() -> None:
    """Seed 002: with two clients 3297/s × 0.303 ms is one connection; counting both clients' calls it is two."""
    assert gates(greeter(1000)) == {6}
    assert gates(greeter(2000)) == set()


def test_a_cold_call_is_not_the_latency() -> None:
    """Seed 002: 1 to 2 ms is the first call's, on a connection made for it, where a warm one takes 0.28 ms."""
    run = single(1, 1500.0)
    cold = replace(run, replies=replace(run.replies, connects_inside=1, first_calls_inside=1))
    assert gates(cold) == {5}


@pytest.mark.parametrize("clock", ["gettimeofday", "time.time", "std::chrono::high_resolution_clock"])
def test_a_calendars_clock_times_nothing(clock: str) -> None:
    """Seeds 001 and 002."""
    assert gates(replace(closed_run(), times=replace(closed_run().times, clock=clock))) == {19}


def test_elapsed_time_is_not_processor_time() -> None:
    """Seed 002: "I believe this is a method of CPU clock"."""
    assert gates(replace(closed_run(), times=replace(closed_run().times, called="processor"))) == {19}


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1e3, 1e6])
def test_a_time_in_another_unit_is_recognised(factor: float) -> None:
    """Little's law is off by a power of a thousand: gate 6 sees that, and 19 says what it is."""
    times = Times("perf_counter_ns", 245.0 * factor, think_us_mean=5.0 * factor, idle_us_mean=0.0)
    server = replace(closed_run().server, demand_us=None, demand_us_max=None)
    assert gates(replace(closed_run(), times=times, server=server)) == {6, 19}


def test_a_load_tool_at_its_limit_leaves_the_latency_and_spoils_the_capacity() -> None:
    """Seed 003: ``ab`` on one thread was the limit in all cells."""
    busy = [replace(run, load=replace(run.load, cpu_share=0.99)) for run in (closed_run(), closed_run(language="go"))]
    comparison = compared(replace(busy[0], factors={**busy[0].factors, "language": "rust"}), busy[1], "language")
    assert gates(comparison) == {7}
    assert verdict_refused(comparison) == []
    assert {refusal.gate for refusal in verdict_refused(replace(comparison, measure="capacity"))} == {7}


def test_a_debug_build_is_no_language() -> None:
    """Seed 003: the Rust server was built for debugging, the Go server as always."""
    rust, go = closed_run(language="rust", build="debug"), closed_run(language="go", build="release")
    assert gates(compared(rust, go, "language")) == {2}


def test_one_run_for_each_cell_decides_nothing() -> None:
    """Seeds 000, 002, 003 and 004."""
    assert gates(replace(transports(), log_ratios=transports().log_ratios[:1])) == {9}


def test_both_arms_on_one_connection_are_one_start() -> None:
    """Seed 000: merge and quick on the same connection of one server."""
    shared = [
        tuple(replace(run, process="the server") for run in arm) for arm in (transports().above, transports().below)
    ]
    assert gates(replace(transports(), above=shared[0], below=shared[1])) == {9}


def test_two_requests_of_the_same_runs_have_no_order() -> None:
    """Lookup and Trade mixed in one run come neither first nor second."""
    comparison = compared(closed_run(request="trade"), closed_run(request="lookup"), "request")
    below = tuple(
        replace(run, run_id=a.run_id, order=a.order) for run, a in zip(comparison.below, comparison.above, strict=True)
    )
    assert gates(replace(comparison, below=below)) == set()


def test_always_faster_is_refused_and_in_15_of_18_is_said() -> None:
    """Seed 003's sixth conclusion: fails in 3 of 18 comparisons under PUT, holds under GET."""
    put = always_faster("PUT")
    assert gates(put) == {16}
    with pytest.raises(ValueError, match=r"rust 9\.751, go 9\.229"):
        Sentence(put)
    counted = SentenceEvidence(
        "Rust has the lower mean in 15 of 18 settings.", (BelowIn("language", "rust", "go", 15, 18),), put.cells
    )
    assert str(Sentence(counted)) == counted.text
    assert str(Sentence(always_faster("GET"))) == always_faster("GET").text


def test_better_as_the_input_grows_is_contradicted_by_its_table() -> None:
    """Seed 000: net/rpc is always ahead, as it says; but by 1.5, 2.4 and 1.6, not by ever more as N grows."""
    cells = tuple(
        Cell({"mechanism": mechanism, "algorithm": algorithm, "N": calls}, us)
        for (mechanism, algorithm), by_calls in SORT_US.items()
        for calls, us in by_calls.items()
    )
    assert gates(SentenceEvidence("Always lower.", (AlwaysBelow("mechanism", "net/rpc", "gRPC"),), cells)) == set()
    ratios = tuple(
        Cell({"algorithm": algorithm, "N": calls}, SORT_US["gRPC", algorithm][calls] / us)
        for algorithm in ("merge", "quick")
        for calls, us in SORT_US["net/rpc", algorithm].items()
    )
    assert gates(SentenceEvidence("The lead grows with N.", (GrowsWith("N"),), ratios)) == {16}


def test_two_similar_means_are_not_no_difference() -> None:
    """Seed 001: "the three can have the same performance" at 100 KB; seed 004: Trade and Lookup "similar"."""
    undecided = replace(transports(), verdict=Verdict.INCONCLUSIVE)
    sentence = SentenceEvidence("At 100 KB all three perform equally.", (), comparisons=(undecided,))
    (refusal,) = [refusal for refusal in refusals(sentence) if refusal.gate == 17]
    assert refusal.scope is Scope.SENTENCE
    assert "equally" in refusal.what
