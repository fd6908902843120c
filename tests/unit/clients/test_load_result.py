"""What is made of the clients' reports: the result, its JSON, and the summary for people."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]
from rich.console import Console

from clients.load.client_process import ClientReport
from clients.load.fleet import Progress
from clients.load.live import live
from clients.load.plan import LoadPlan
from clients.load.recorder import Recorded, RequestReport, Span, Times
from clients.load.records import Window
from clients.load.result import ALL, CLIENT_LOST, LoadResult, as_json, combine
from clients.load.summary import show, span
from stock_service.errors import Unavailable

PLAN = LoadPlan("sockets", ("127.0.0.1", 50052), 2, {"lookup": 1.0, "trade": 1.0}, ("GameStart",), 1.0, 2.0)
WINDOW = Window(0, 1_000_000_000, 3_000_000_000)


def times(*values_us: int) -> Times:
    """A distribution."""
    recorded = Times()
    recorded.record(np.array(values_us, dtype=np.int64) * 1000)
    return recorded


def busy(count: int, took_us: int = 100) -> ClientReport:
    """A client with one connection, busy from end to end of the window: half lookups, half trades, 0.5 s of CPU."""
    lookups = RequestReport({"OK": count}, {}, times(*[took_us] * count))
    trades = RequestReport({"OK": count - 1, "SUSPENDED": 1}, {}, times(*[3 * took_us] * count))
    spans = [Span(True, 2 * count, WINDOW.start_ns, WINDOW.end_ns)]
    recorded = Recorded({"lookup": lookups, "trade": trades}, times(50), times(900), spans, {})
    return ClientReport(0, recorded, 0.5)


def starved() -> ClientReport:
    """A client that connected and got nothing."""
    nothing = {name: RequestReport({}, {}, Times()) for name in PLAN.mix}
    return ClientReport(1, Recorded(nothing, times(50), Times(), [Span()], {}), 0.001)


def printed(result: LoadResult, width: int = 80) -> str:
    """The summary, as it is on something that is no terminal."""
    screen = io.StringIO()
    show(result, Console(file=screen, width=width))
    return screen.getvalue()


def test_two_clients_are_added_and_merged() -> None:
    """Counts and rates add up; percentiles are those of all requests, of which no average of two could be right."""
    result = combine(PLAN, WINDOW, [busy(1000), busy(3000, took_us=200)])
    lookups, every = result.requests["lookup"], result.requests[ALL]
    assert lookups.count == 4000
    assert (every.count, every.throughput_hz, result.throughput_hz) == (8000, 4000, 4000)
    assert every.outcomes == {"OK": 7998, "SUSPENDED": 2}
    assert lookups.p50_us == 200
    assert lookups.mean_us == pytest.approx(175)
    assert (lookups.min_us, lookups.max_us) == (100, 200)
    assert (result.client_cpu_s, result.client_cpu_share, result.client_cpu_share_mean) == (1.0, 0.25, 0.25)
    assert not result.load_limited


def test_little_holds_where_every_connection_sends_all_the_time() -> None:
    """N against X·(R+Z), Z being what of a connection's time is no response time."""
    result = combine(PLAN, WINDOW, [busy(1000), busy(3000)])
    assert result.little_ratio == pytest.approx(1.0)
    assert result.n_over_x_us == pytest.approx(2 / 4000 * 1e6)
    assert result.think_us == pytest.approx(500 - 200)


def test_little_fails_where_a_connection_was_idle() -> None:
    """One that sent in half of the window only."""
    idle = busy(1000)
    assert idle.recorded is not None
    idle = replace(idle, recorded=replace(idle.recorded, spans=[Span(True, 2000, 1, 1_000_000_001)]))
    result = combine(PLAN, WINDOW, [busy(1000), idle])
    assert result.little_ratio == pytest.approx(0.75)


def test_a_starved_client_is_counted_and_in_no_latency() -> None:
    """Nor is it one of those that send."""
    result = combine(PLAN, WINDOW, [busy(1000), starved()])
    assert (result.started_clients, result.starved_clients) == (2, 1)
    assert (result.sending_connections, result.starved_connections) == (1, 1)
    assert result.requests[ALL].mean_us == 200
    assert result.little_ratio == pytest.approx(1.0)
    assert result.errors == {}
    assert "starved: 1 of 2 clients" in printed(result)


def test_who_could_not_connect_and_who_was_lost_are_errors() -> None:
    """And started, and starved."""
    result = combine(PLAN, WINDOW, [busy(1000), ClientReport(1, fault=Unavailable("refused"))], lost=1)
    assert result.errors == {"unavailable": 1, CLIENT_LOST: 1}
    assert (result.started_clients, result.starved_clients) == (3, 2)
    assert "ERRORS" in printed(result)


def test_nothing_measured_has_no_times() -> None:
    """None in the result, null in JSON, a dash on the screen; also where the run was over before it began."""
    for window in (WINDOW, Window(0, 1000, 1000)):
        result = combine(PLAN, window, [starved()], interrupted=True)
        every = result.requests[ALL]
        assert (every.count, every.throughput_hz, every.mean_us, every.p99_us) == (0, 0.0, None, None)
        assert (result.little_ratio, result.n_over_x_us, result.think_us) == (None, None, None)
        assert json.loads(json.dumps(as_json(result), allow_nan=False))["requests"][ALL]["p50_us"] is None
        assert "–" in printed(result)
        assert "interrupted" in printed(result)


def test_json_has_all_of_it_histograms_too() -> None:
    """In values alone, and the histogram as HdrHistogram's tools read it."""
    document = json.loads(json.dumps(as_json(combine(PLAN, WINDOW, [busy(1000)])), allow_nan=False))
    assert document["format"] == 1
    assert document["plan"]["mix"] == {"lookup": 1.0, "trade": 1.0}
    assert document["plan"]["address"] == ["127.0.0.1", 50052]
    assert document["connect_us"]["mean_us"] == 50
    histogram = HdrHistogram.decode(document["requests"]["lookup"]["latency"])
    assert histogram.get_total_count() == document["requests"]["lookup"]["count"] == 1000
    assert histogram.get_value_at_percentile(50) == pytest.approx(100_000, rel=1e-3)


def test_the_summary_fits_a_screen() -> None:
    """80 columns and 24 lines, with large numbers and all that there is to warn of; no colour off a terminal."""
    report = busy(60_000, took_us=1_234_567)
    assert report.recorded is not None
    lookups = RequestReport({"UNKNOWN_STOCK": 9_000_000}, {"deadline_exceeded": 123_456}, times(*[9_999_999] * 10_000))
    recorded = replace(report.recorded, requests={**report.recorded.requests, "lookup": lookups})
    recorded = replace(recorded, errors={"deadline_exceeded": 123_456, "invalid_reply": 3})
    plan = replace(PLAN, clients=512, connections_per_client=8, connection="per-request")
    text = printed(combine(plan, WINDOW, [replace(report, recorded=recorded, cpu_s=1.9), starved()], lost=2))
    assert "\x1b" not in text
    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 80
    for part in (
        "UNKNOWN_STOCK 9,000,000",
        "deadline_exceeded 123,456",
        "client and server together",
        "include connecting",
    ):
        assert part in " ".join(text.split()), part


def test_a_percentile_needs_ten_requests_beyond_it() -> None:
    """p99.9 of a thousand requests is a dash; of ten thousand it is a number."""
    assert printed(combine(PLAN, WINDOW, [busy(500)])).count("–") >= 3
    assert "–" not in printed(combine(PLAN, WINDOW, [busy(10_000)]))


def test_a_busy_client_is_said_to_be_so() -> None:
    """Over 80 % of a core: the latency is not the server's alone."""
    result = combine(PLAN, WINDOW, [replace(busy(1000), cpu_s=1.7)])
    assert result.load_limited
    assert "latency is that of client and server together" in printed(result)


@pytest.mark.parametrize(
    ("time_us", "said"),
    [(None, "–"), (0.4, "0 µs"), (172.4, "172 µs"), (12_345, "12.3 ms"), (472_400, "472 ms"), (60e6, "60.0 s")],
)
def test_a_time_is_said_with_its_unit(time_us: float | None, said: str) -> None:
    """In the unit that keeps it short."""
    assert span(time_us) == said


PROGRESS = (
    Progress("starting", 0, 0.0, 30.0),
    Progress("warm-up", 0, 0.0, 30.0),
    Progress("measuring", 500, 5.0, 25.0),
    Progress("measuring", 800, 6.0, 24.0),
    Progress("measuring", 4000, 16.0, 14.0),
    Progress("finishing", 9000, 30.0, 0.0),
)


def test_off_a_terminal_progress_is_plain_lines_now_and_then() -> None:
    """When warm-up and window begin, and every ten seconds."""
    screen = io.StringIO()
    with live(Console(file=screen, width=80), PLAN) as watch:
        for progress in PROGRESS:
            watch(progress)
    assert screen.getvalue().splitlines() == [
        "2 clients: warm-up, 0 requests, 30 s left",
        "2 clients: measuring, 500 requests, 25 s left",
        "2 clients: measuring, 4,000 requests, 14 s left",
    ]


def test_on_a_terminal_progress_is_one_line_with_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewritten, and gone at the end; without colours where NO_COLOR asks for none."""
    monkeypatch.setenv("NO_COLOR", "1")
    screen = io.StringIO()
    with live(Console(file=screen, width=100, force_terminal=True), PLAN) as watch:
        for progress in PROGRESS:
            watch(progress)
    text = screen.getvalue()
    assert "4,000 requests, 14 s left" in text
    assert "\x1b[3" not in text  # no colour, though there are codes that move the cursor
    assert text.endswith("\x1b[2K")
