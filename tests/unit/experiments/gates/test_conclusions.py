"""How far each refusal reaches: what it forbids to be concluded, and what it leaves standing."""

from dataclasses import replace

import pytest

from experiments.gates import refusals, verdict_refused
from experiments.gates.evidence import ComparisonEvidence, MachineEvidence, Percentile, RunEvidence, Surroundings
from experiments.gates.refusal import FORBIDS, Conclusion, Kind, Refusal, Scope, forbidding
from experiments.gates.unchecked import unchecked
from tests.unit.experiments.gates.planted_evidence import MACHINE, closed_run, compared, open_run, said, transports

ALL_KINDS: tuple[Kind, ...] = (
    "latency",
    "percentile",
    "throughput",
    "capacity",
    "cpu",
    "interval",
    "verdict",
    "sentence",
)


def refused(scope: Scope, where: str = "run 1", rank: float | None = None) -> list[Refusal]:
    """One refusal of that scope."""
    return [Refusal(6, where, "wrong", "repeat", scope, rank)]


@pytest.mark.parametrize(
    ("scope", "kinds"),
    [
        (Scope.PERCENTILE, {"percentile"}),
        (Scope.LATENCY, {"latency", "percentile", "interval"}),
        (Scope.CAPACITY, {"capacity"}),
        (Scope.RUN, {"latency", "percentile", "throughput", "capacity", "cpu", "interval"}),
        (Scope.INTERVAL, {"interval", "verdict"}),
        (Scope.VERDICT, {"verdict"}),
        (Scope.SENTENCE, {"sentence"}),
        (Scope.ALL, set(ALL_KINDS)),
    ],
)
def test_a_scope_forbids_what_it_names_of_what_was_refused(scope: Scope, kinds: set[Kind]) -> None:
    """And of nothing else, but where it reaches all."""
    found = refused(scope)
    assert {kind for kind in ALL_KINDS if forbidding(found, Conclusion(kind, "run 1"))} == kinds
    elsewhere = {kind for kind in ALL_KINDS if forbidding(found, Conclusion(kind, "run 2"))}
    assert elsewhere == (set(ALL_KINDS) if scope is Scope.ALL else set())
    assert FORBIDS[scope] == kinds


@pytest.mark.parametrize(
    ("scope", "bases"),
    [
        (Scope.LATENCY, {"latency", "percentile"}),
        (Scope.CAPACITY, {"capacity"}),
        (Scope.RUN, {"latency", "percentile", "throughput", "capacity", "cpu"}),
        (Scope.VERDICT, {"latency", "percentile", "throughput", "capacity", "cpu"}),
    ],
)
def test_a_verdict_falls_with_what_it_is_about(scope: Scope, bases: set[Kind]) -> None:
    """A run without a latency still has its processor time."""
    found = refused(scope)
    all_bases: tuple[Kind, ...] = ("latency", "percentile", "throughput", "capacity", "cpu")
    about = {basis for basis in all_bases if forbidding(found, Conclusion("verdict", "a", frozenset({"run 1"}), basis))}
    assert about == bases


def test_one_percentile_spoils_itself_alone() -> None:
    """p99.9 of too few requests leaves p99, the mean, and comparisons of them."""
    found = refused(Scope.PERCENTILE, rank=99.9)
    assert forbidding(found, Conclusion("percentile", "run 1", rank=99.9))
    assert not forbidding(found, Conclusion("percentile", "run 1", rank=99.0))
    assert not forbidding(found, Conclusion("latency", "run 1"))
    rests_on = frozenset({"run 1"})
    assert forbidding(found, Conclusion("verdict", "a", rests_on, "percentile", 99.9))
    assert not forbidding(found, Conclusion("verdict", "a", rests_on, "percentile", 99.0))
    assert not forbidding(found, Conclusion("verdict", "a", rests_on))


def with_run(run: RunEvidence) -> ComparisonEvidence:
    """A comparison in which this run takes the place of the first."""
    comparison = transports()
    old = comparison.above[0]
    put_in = replace(run, run_id=old.run_id, block=old.block, order=old.order, process=old.process)
    return replace(comparison, above=(put_in, *comparison.above[1:]))


def test_a_comparison_falls_with_one_of_its_runs() -> None:
    """And a sentence with its comparison; both say by which run."""
    stolen = with_run(replace(closed_run(), surroundings=Surroundings(steal_share=0.3)))
    assert verdict_refused(stolen)
    assert [(refusal.gate, refusal.where) for refusal in verdict_refused(stolen)] == [(14, stolen.above[0].run_id)]
    assert [refusal.gate for refusal in refusals(said(stolen))] == [14]


def test_a_comparison_of_processor_time_does_not_need_the_latency() -> None:
    """A new connection in the window spoils the times, not the processor time per request."""
    run = closed_run()
    cold = with_run(replace(run, replies=replace(run.replies, connects_inside=1)))
    assert verdict_refused(cold)
    assert verdict_refused(replace(cold, measure="cpu")) == []


def test_a_percentile_beyond_the_sample_does_not_spoil_a_comparison_of_means() -> None:
    """It does one of that percentile."""
    run = closed_run()
    few = with_run(replace(run, times=replace(run.times, percentiles=(Percentile(99.9, 900.0, 500.0),))))
    assert verdict_refused(few) == []
    assert verdict_refused(replace(few, measure="percentile", rank=99.9))
    assert verdict_refused(replace(few, measure="percentile", rank=99.0)) == []


@pytest.mark.parametrize(
    "machine", [replace(MACHINE, aa=()), replace(MACHINE, surroundings=Surroundings(steal_share=0.2))]
)
def test_a_machine_that_is_refused_takes_every_verdict_with_it(machine: MachineEvidence) -> None:
    """Without A/A runs, or with stolen time, nothing is concluded there."""
    assert verdict_refused(replace(transports(), machine=machine))


def test_a_familys_refusal_reaches_its_comparisons() -> None:
    """Where the report hands it over with the comparison's own."""
    family = refused(Scope.VERDICT, "answers")
    assert verdict_refused(replace(transports(), family="answers"), family) == family
    assert verdict_refused(replace(transports(), family="others"), family) == []


def test_what_was_not_seen_is_named() -> None:
    """Silence is no pass: the gates that could not look are listed, those that do not apply are not."""
    assert [str(each) for each in unchecked(closed_run())] == ["gate 13, 001-001: effective samples was not seen"]
    closed = replace(closed_run(), times=replace(closed_run().times, think_us_mean=None, percentiles=()), seen={})
    assert [(each.gate, each.missing) for each in unchecked(closed)] == [
        (3, "sockets open at the server"),
        (6, "think time"),
    ]
    run = open_run()
    load = replace(run.load, arrivals=None, late_us_p99=None)
    opened = replace(run, load=load, times=replace(run.times, in_flight_mean=None, percentiles=()))
    assert [(each.gate, each.missing) for each in unchecked(opened)] == [
        (6, "requests under way"),
        (7, "late sends"),
        (7, "the median response"),
        (8, "arrivals"),
    ]


def test_what_a_comparison_and_a_sentence_could_not_see_is_named_too() -> None:
    """With what they rest on."""
    comparison = with_run(replace(closed_run(workers=5), seen={"connections": 5}))
    comparison = replace(comparison, declared=frozenset({"workers"}))
    missing = {(each.gate, each.missing) for each in unchecked(comparison) if each.where == comparison.name}
    assert (2, "reply bytes") in missing
    assert (3, "threads of both arms") in missing
    assert (2, "locking") not in missing
    assert unchecked(said(comparison)) == unchecked(comparison)
    bare = replace(MACHINE, surroundings=Surroundings())
    assert [each.missing for each in unchecked(bare)] == ["steal", "calibration"]


def test_where_all_was_seen_nothing_is_named() -> None:
    """Of a comparison, its runs and its machine; and each thing that is taken away is."""
    run = closed_run()
    whole = replace(run, times=replace(run.times, percentiles=(Percentile(99, 610.0, 9000.0),)))
    comparison = compared(whole, replace(whole, factors={**whole.factors, "workers": 5}), "workers")
    assert unchecked(comparison) == []
    bare = replace(MACHINE, surroundings=Surroundings(steal_share=0.0))
    assert [str(each) for each in unchecked(replace(comparison, machine=bare))] == [
        "gate 14, 2 cores: calibration was not seen"
    ]
    assert unchecked(replace(comparison, machine=None)) == []
    demands = replace(whole, server=replace(whole.server, demand_us=None))
    assert [each.missing for each in unchecked(demands)] == ["the demands of one request"]
    opened = open_run()
    assert [each.gate for each in unchecked(opened)] == [13]
    undeclared = replace(opened, load=replace(opened.load, process=None, rate_hz=None))
    assert [each.gate for each in unchecked(undeclared)] == [7, 8, 13]
