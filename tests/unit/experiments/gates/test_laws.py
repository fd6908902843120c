"""Gate 6 law by law: each catches what no other does, says the numbers, and none stumbles over what is missing."""

from dataclasses import replace

import pytest

from experiments.gates import refusals
from experiments.gates.evidence import Evidence, Load, Replies, Surroundings
from experiments.gates.unchecked import unchecked
from tests.unit.experiments.gates.adjusted_evidence import around, load, server, times, under_way
from tests.unit.experiments.gates.fixtures import paced
from tests.unit.experiments.gates.planted_evidence import closed_run, open_run, transports


def said(evidence: Evidence) -> list[str]:
    """What gate 6 says of it."""
    return [refusal.what for refusal in refusals(evidence) if refusal.gate == 6]


@pytest.mark.parametrize(
    ("evidence", "what"),
    [
        (
            replace(closed_run(), replies=Replies(400_100, 399_950, {"timeout": 50}, True, True), throughput_hz=None),
            "400,100 requests were sent, and 399,950 answered and 50 failed: 100 lost",
        ),
        (
            replace(closed_run(), throughput_hz=40_000.0),
            "40,000/s is published, and 400,000 replies in 20 s are 20,000/s",
        ),
        (
            times(closed_run(), mean_us=345.0),
            "Little's law: 20,000/s × (0.345 + 0.005 ms) are 7 connections, and 5 send",
        ),
        (
            times(open_run(), in_flight_mean=2.0),
            "Little's law: 250/s × 4 ms are 1 requests under way, and 2 were",
        ),
        (
            server(closed_run(), cpu_us_per_request=100.0),
            "the utilisation law: 20,000/s × 100 µs keep 2 cores busy, and the server has 1",
        ),
        (
            server(open_run(), demand_us_max=5000.0),
            "a bound: 250/s, of which each takes 5000 µs that only one can have at a time",
        ),
        (
            server(open_run(), demand_us=5000.0),
            "a bound: answered in 4000 µs on average, and a request needs 5000 µs",
        ),
        (  # 1.5 % off Little's law, 1.1 % under the demand, and both together over 2 %
            server(times(closed_run(), mean_us=248.75), demand_us=251.5, demand_us_max=None),
            "a bound: 20,000/s from 5 connections, each of which needs 251.5 + 5 µs for one",
        ),
        (  # 1.5 % under Little's law, 1 % over the bottleneck's rate
            server(times(closed_run(), mean_us=241.25), demand_us=None, demand_us_max=50.5),
            "a bound: answered in 241.2 µs on average, and 5 connections queue for 50.5 µs each",
        ),
    ],
)
def test_each_law_says_which_numbers_break_it(evidence: Evidence, what: str) -> None:
    """One sentence for one fault."""
    assert said(evidence) == [what]


def test_starved_connections_do_not_send() -> None:
    """Seven declared, two starved: five send, and Little's law holds for five."""
    assert said(load(closed_run(), connections=7, starved=2)) == []
    assert said(load(closed_run(), connections=7)) != []


@pytest.mark.parametrize(
    "evidence",
    [
        times(closed_run(), think_us_mean=None),
        times(open_run(), in_flight_mean=None),
        server(closed_run(), cpu_us_per_request=None, demand_us=None, demand_us_max=None),
        server(closed_run(), demand_us=None),
        server(closed_run(), demand_us_max=None),
        load(closed_run(), cpu_share=None),
        load(open_run(), rate_hz=None),
        times(load(open_run(), rate_hz=None), idle_us_mean=None),
        times(load(closed_run(), rate_hz=250.0), idle_us_mean=None, mean_us=245.0),
        load(open_run(), late_us_p99=None, arrivals=None, scheduled=None),
        times(load(open_run(), late_us_p99=99.0), percentiles=()),
        replace(closed_run(), surroundings=Surroundings(), throughput_hz=None),
        around(calibration_us_before=1000.0),
        around(calibration_us_after=1000.0),
        replace(closed_run(), seen={}),
        replace(transports(), above=tuple(replace(run, seen={}) for run in transports().above)),
    ],
)
def test_what_was_not_seen_is_not_refused_but_named(evidence: Evidence) -> None:
    """A gate that cannot look says nothing; ``unchecked`` says that it could not."""
    assert refusals(evidence) == []
    assert unchecked(evidence)


def test_a_run_in_which_nothing_happened_is_refused_and_breaks_no_gate() -> None:
    """No reply, no window, nobody who sends, no schedule, a calibration that took no time."""
    nothing = replace(closed_run(), replies=Replies(5, 0, {"timeout": 5}, True, True), throughput_hz=None)
    assert {refusal.gate for refusal in refusals(nothing)} == {4, 13}
    silent = replace(nothing, replies=Replies(0, 0, {}, True))
    assert {refusal.gate for refusal in refusals(silent)} == {4, 13}
    starved = load(nothing, starved=5)
    assert {refusal.gate for refusal in refusals(starved)} == {4, 13}
    no_window = load(closed_run(), duration_s=0.0)
    assert {refusal.gate for refusal in refusals(no_window)} == {6}
    assert {refusal.gate for refusal in refusals(load(open_run(), scheduled=0))} == {7}
    assert {refusal.gate for refusal in refusals(load(open_run(), connections=0))} == set()
    zero = around(calibration_us_before=0.0, calibration_us_after=1000.0)
    assert {refusal.gate for refusal in refusals(zero)} == {14}
    empty = replace(transports(), above=(), below=(), log_ratios=())
    assert {9, 10} <= {refusal.gate for refusal in refusals(empty)}


def test_a_paced_run_on_many_connections_fills_each_ones_gap() -> None:
    """Ten connections at 30 a second in all: 333 ms between two requests of one."""
    run = paced(333_000.0, None)
    load = Load("open", connections=10, duration_s=3600.0, rate_hz=30.0, process="constant", scheduled=108_000)
    ten = replace(run, load=load, seen={"connections": 10})
    assert {refusal.gate for refusal in refusals(ten)} == {1}
    assert refusals(replace(ten, times=replace(ten.times, mean_us=33_300.0))) == []


def test_requests_under_way_are_counted_apart_from_the_times() -> None:
    """An open loop without think time has its own Little's law."""
    assert said(under_way(1.0)) == []
    assert said(under_way(1.5)) == ["Little's law: 250/s × 4 ms are 1 requests under way, and 0.6667 were"]
