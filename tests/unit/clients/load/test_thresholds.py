"""Limits that a run must keep."""

from dataclasses import replace

import pytest

from clients.load.record.result import LoadResult, combine
from clients.load.thresholds import broken, parse, replies_needed
from tests.unit.clients.load.reports import PLAN, WINDOW, open_run, report


@pytest.mark.parametrize(
    "text",
    [
        "",
        "p99",
        "p99>20",
        "p99=20ms",
        "p99>-1ms",
        "p99>1e3ms",
        "p99>20%",
        "p95>20ms",
        "errors>3ms",
        "throughput<5000%",
        "throughput<5000ms",
        "starved>1%",
        "lookup.starved>0",
        ".p99>20ms",
        "a.b.p99>20ms",
        "p99>20ms p50>1ms",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    """Any other text is refused with the allowed conditions."""
    with pytest.raises(ValueError, match="then a time such as 20ms"):
        parse(text)


def said(result: LoadResult, text: str) -> list[str]:
    """The lines against a run."""
    return list(broken([parse(text)], result))


# 20,000 requests in 2 s, by turns lookups and trades; one in a hundred takes 5 ms, the others 200 µs
RUN = open_run(times_us=[5000] + [200] * 99, count=20_000)


@pytest.mark.parametrize(
    ("kept", "broken_by"),
    [
        ("p50>201us", "p50>199us"),
        ("p50>=201us", "p50>=200us"),
        ("all.p50 > 201 µs", "all.p50 > 199 µs"),
        ("p50<199us", "p50<201us"),
        ("p50<=199us", "p50<=201us"),
        ("p99>201us", "p99>199us"),
        ("p99.9>5.1ms", "p99.9>4.9ms"),
        (" max>0.0051s ", " max>0.0049s "),
        ("mean>249us", "mean>247us"),
        ("lookup.max>5001us", "lookup.max>4999us"),
        ("trade.max>201us", "trade.max>199us"),
        ("throughput<9999", "throughput<10001"),
        ("lookup.throughput<4999", "lookup.throughput<5000"),  # the last lookup comes after the window
        ("starved>0", "starved>=0"),
        ("errors>0", "errors>=0"),
        ("errors>0%", "errors>=0%"),
    ],
)
def test_each_limit_has_two_sides(kept: str, broken_by: str) -> None:
    """A run that keeps a limit has no line. One that breaks it has one line, with the condition."""
    assert said(RUN, kept) == []
    (line,) = said(RUN, broken_by)
    assert line.startswith(f"{broken_by.strip()}: ")


def test_throughput_is_what_came_within_the_window() -> None:
    """For a server that fell behind, throughput is the replies within the window, in all and for each request type."""
    behind = open_run(times_us=(1_000_000,), count=2000)  # each takes 1 s of a window of 2 s
    assert behind.requests["all"].count == 2000
    assert said(behind, "throughput<501") == ["throughput<501: it was 500.0 replies/s within the window"]
    assert said(behind, "throughput<500") == said(behind, "trade.throughput<250") == []
    assert said(behind, "trade.throughput<251") == ["trade.throughput<251: it was 250.0 replies/s within the window"]


def test_errors_are_a_number_or_a_share() -> None:
    """Errors of a request type are those in the window. Errors of all are those of the whole run."""
    run = open_run(count=20_000, failed=20)
    run = replace(run, errors={"invalid_reply": 20, "unavailable": 20})
    assert said(run, "errors>40") == []
    assert said(run, "errors>39") == ["errors>39: there were 40 errors and 20,000 requests"]
    assert said(run, "errors>0.2%") == []
    assert len(said(run, "errors>0.199%")) == 1
    assert said(run, "lookup.errors>10") == []
    unconnected = replace(run, errors={"unavailable": 60_000}, recorded=20_000)
    assert said(unconnected, "errors>300%") == []
    assert len(said(unconnected, "errors>299%")) == 1
    assert said(run, "lookup.errors>=0.1%") == ["lookup.errors>=0.1%: there were 10 errors and 10,000 requests"]


@pytest.mark.parametrize(
    ("text", "count"),
    [("p50>9s", 20), ("p90>9s", 100), ("p99>9s", 1000), ("p99.9>9s", 10_000), ("lookup.p99>9s", 2000)],
)
def test_a_percentile_beyond_the_sample_fails(text: str, count: int) -> None:
    """A percentile with fewer than ten replies beyond it fails. The line says how many replies are needed."""
    assert said(open_run(count=count), text) == []
    (line,) = said(open_run(count=count - 2), text)
    needed = count // 2 if text.startswith("lookup") else count  # the run has as many trades
    assert "cannot be told from" in line
    assert line.endswith(f" replies: {needed:,} are needed")


def test_of_nothing_nothing_can_be_told() -> None:
    """In a run without a reply every limit on a time or on throughput counts as broken, also if requests failed."""
    for nothing in (combine(PLAN, WINDOW, [report(0)]), open_run(count=2000, failed=2000)):
        for text in ("p50>1s", "mean>1s", "max>1s", "throughput<1"):
            assert len(said(nothing, text)) == 1


def test_every_condition_is_looked_at() -> None:
    """Every condition that holds has a line. A condition on a request type without requests fails: otherwise a misspelt
    name would never fail."""
    conditions = [parse(text) for text in ("p50>1us", "p50>1s", "update.p50>1s", "max>1us")]
    first, unsent, last = broken(conditions, RUN)
    assert (first.split(":")[0], last.split(":")[0]) == ("p50>1us", "max>1us")
    assert unsent == "update.p50>1s: the run has no update"


def test_how_many_replies_are_needed() -> None:
    """The highest percentile decides the number of needed replies."""
    assert replies_needed([parse(text) for text in ("errors>0", "p99>1s", "p50>1s", "max>1s")]) == 1000
    assert replies_needed([parse("errors>0")]) == replies_needed([]) == 1
