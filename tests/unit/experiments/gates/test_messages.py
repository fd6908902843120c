"""What refusals say: the numbers that show the fault, and what would mend it."""

from dataclasses import replace

import pytest

from experiments.gates import refusals
from experiments.gates.evidence import AARecord, Evidence, IntervalEvidence, Percentile
from experiments.gates.machine_gates import AA_MIN
from experiments.gates.predicates import strong_words
from experiments.gates.refusal import Refusal, Scope
from experiments.stats import Verdict
from tests.unit.experiments.gates.adjusted_evidence import (
    around,
    arrivals,
    blocks,
    failing,
    first,
    load,
    round_of,
    sent,
    starts,
    times,
    told_apart,
)
from tests.unit.experiments.gates.fixtures import paced, tail
from tests.unit.experiments.gates.planted_evidence import AA, MACHINE, closed_run, open_run, transports

ELSEWHERE = AARecord("another machine", "closed, 5 connections", 40, 0, 1.02)


def lines(evidence: Evidence) -> list[str]:
    """Its refusals, each without its number and place."""
    return [f"{refusal.what}. {refusal.do}" for refusal in refusals(evidence)]


@pytest.mark.parametrize(
    ("evidence", "beginning"),
    [
        (times(closed_run(), idle_us_mean=49.0), "49 of 245 µs are idle waiting"),
        (
            replace(paced(900.0, None), times=replace(paced(900.0, None).times, start="before receive")),
            "the timer starts before the request is there: 900 µs with the idle wait in it, near the 33,333 µs between",
        ),
        (failing(800), "800 of 400,000 requests failed (0.20%, at most 0.1%): timeout 800. remove the cause"),
        (failing(4, timed=False), "4 failed requests (timeout 4) are left out of the latency"),
        (
            replace(closed_run(), replies=replace(closed_run().replies, steady=False)),
            "the window of 20 s after 2 s of warm-up has a trend. warm up for longer",
        ),
        (
            load(open_run(), late_us_p99=250.0),
            "p99 of late sends is 250 µs (allowed 138, with a median response of 2,770",
        ),
        (
            times(load(open_run(), late_us_p99=250.0), percentiles=()),
            "p99 of late sends is 250 µs (allowed 100). lower the rate",
        ),
        (sent(20_000), "20,000 requests were sent, 20.0% under the 25,000 due"),
        (sent(30_000), "30,000 requests were sent, 20.0% over the 25,000 due"),
        (arrivals(open_run(), gap_us_mean=5000.0), "the mean gap is 5,000 µs, and the declared one 4,000 µs"),
        (blocks(4, 12), "4 blocks, and a comparison that is one of a family of 12 needs 9. run 9 blocks"),
        (starts(1), "9 blocks from 1 process start per arm"),
        (starts(2), "9 blocks from 2 process starts per arm"),
        (first(0, 9), "the arm below the line came first in 9 of 9 blocks"),
        (first(9, 9), "the arm above the line came first in 9 of 9 blocks"),
        (tail(99.9), "p99.9 has 1 of 1,000 independent samples beyond it. measure 10,000 of them"),
        (
            times(closed_run(), percentiles=(Percentile(99, 610.0, 500.0),)),
            "p99 has 5 of 500 independent samples beyond it. measure 1,000 of them",
        ),
        (
            around(calibration_us_before=1000.0, calibration_us_after=1200.0),
            "the calibration took 1000 µs before and 1200 µs after (20.0% apart)",
        ),
        (times(closed_run(), clock="time.time"), "time.time is not known to run evenly. use one of CLOCK_MONOTONIC"),
        (
            times(closed_run(), clock="process_time_ns"),
            "process_time_ns counts processor time, and is published as elapsed time. call it processor time",
        ),
        (replace(MACHINE, aa=()), "no A/A run on this machine under closed, 5 connections. run two or more blocks"),
        (
            round_of(2, 0),
            f"A/A found 0 false differences in 2 (allowed 1, of {AA_MIN} at least). run with two or more numbers",
        ),
        (
            round_of(8, 4),
            "A/A found 4 false differences in 8 (allowed 2, of 4 at least). find what tells equal arms apart",
        ),
        (
            replace(MACHINE, aa=(ELSEWHERE,)),
            "no A/A run on this machine under closed, 5 connections; there is one for another machine under closed, 5",
        ),
        (
            replace(MACHINE, aa=(replace(AA, false_differences=12), replace(AA, comparisons=20, false_differences=8))),
            f"A/A found 12 false differences in 40 (allowed 6, of {AA_MIN} at least)",
        ),
        (told_apart(1.2, 1.1, Verdict.SLOWER), "SLOWER by 10.0%, where the instrument tells apart no less than 20.0%"),
        (
            told_apart(1.2, 1.0, Verdict.EQUIVALENT),
            "a ratio within 5% of 1, where the instrument tells apart no less than 20.0%",
        ),
    ],
)
def test_a_refusal_gives_its_numbers(evidence: Evidence, beginning: str) -> None:
    """One line for one fault; and what is wrong can be quoted in a sentence, which is then not taken at its word."""
    assert [line[: len(beginning)] for line in lines(evidence)] == [beginning]
    assert [word for refusal in refusals(evidence) for word in strong_words(refusal.what)] == []


def test_the_best_of_several_aa_rounds_counts() -> None:
    """One that passes is enough, and the smallest effect told apart; what fails or is elsewhere is not used."""
    rounds = (replace(AA, effect_min=1.5), AA, replace(AA, false_differences=20, effect_min=1.001), ELSEWHERE)
    machine = replace(MACHINE, aa=rounds)
    assert refusals(machine) == []
    assert refusals(replace(told_apart(1.04, 1.041, Verdict.SLOWER), machine=machine)) == []
    assert [r.gate for r in refusals(replace(told_apart(1.04, 1.039, Verdict.SLOWER), machine=machine))] == [20]


def test_a_refusal_reads_as_one_line() -> None:
    """Gate, place, fault, remedy."""
    refusal = Refusal(14, "001-002", "the hypervisor took 5.0% of the cores' time", "repeat", Scope.RUN)
    assert str(refusal) == "gate 14, 001-002: the hypervisor took 5.0% of the cores' time. Repeat."


def test_one_slice_has_no_dispersion() -> None:
    """Nor is it asked for without slices."""
    for slices in (0, 1):
        assert refusals(arrivals(open_run(), dispersion=3.0, slices=slices)) == []
    assert [r.gate for r in refusals(arrivals(open_run(), dispersion=6.0, slices=2))] == [8]


@pytest.mark.parametrize(
    ("interval", "what"),
    [
        (IntervalEvidence("ratio", 0.65, 0.75, 9, "block", "standard deviation"), "is a standard deviation"),
        (IntervalEvidence("ratio", 0.65, 0.75, 9, "block", "standard error"), "is a standard error"),
        (IntervalEvidence("ratio", 0.65, 0.75, 9, "block", "bootstrap"), "is a percentile bootstrap over 9 values"),
        (IntervalEvidence("ratio", -0.1, 0.75, 9, "block", "t"), "-0.1 to 0.75 crosses zero"),
    ],
)
def test_a_comparisons_own_interval_is_looked_at(interval: IntervalEvidence, what: str) -> None:
    """Its verdict falls with it."""
    comparison = replace(transports(), interval=interval)
    (refusal,) = refusals(comparison)
    assert (refusal.gate, refusal.where, refusal.scope) == (12, comparison.name, Scope.VERDICT)
    assert what in refusal.what


def test_requests_counted_as_independent_say_how_alike_they_are() -> None:
    """The autocorrelation, where it was seen."""
    interval = IntervalEvidence("ratio", 0.69, 0.71, 3600, "request", "t")
    (refusal,) = refusals(replace(transports(), interval=interval))
    assert refusal.what.endswith("3,600 requests of 18 runs as independent (autocorrelation up to 0.30)")
