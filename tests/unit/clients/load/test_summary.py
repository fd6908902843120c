"""Texts on a run: the summary after the run, and the progress line during the run."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from clients.load.live import live
from clients.load.plan.load_plan import LoadPlan
from clients.load.record.result import LoadResult, combine
from clients.load.run.fleet import Progress
from clients.load.run.floor import Floor
from clients.load.summary import show, span, warnings
from tests.unit.clients.load.reports import (
    OPEN,
    PLAN,
    WINDOW,
    bad_arrivals,
    closed_records,
    closed_run,
    open_run,
    report,
)

FLOOR = Floor(21.4, 60.2)


def printed(result: LoadResult, plan: LoadPlan = PLAN, floor: Floor | None = None, width: int = 80) -> str:
    """The summary, off a terminal."""
    screen = io.StringIO()
    show(plan, result, floor, Console(file=screen, width=width))
    return screen.getvalue()


def one_line(text: str) -> str:
    """A text without its line breaks and indents."""
    return " ".join(text.split())


def test_a_closed_loop_says_what_little_makes_of_it() -> None:
    """The summary of a closed loop has N, N ÷ X, and the sum of mean response time and think time."""
    text = one_line(printed(closed_run(closed_records()), floor=FLOOR))
    assert "1 client" not in text  # the plan's number of clients is said, which here is two
    assert "2 clients · lean · closed loop · sockets 127.0.0.1:50052 · kept-alive · 2.00 s" in text
    assert "N/X 250 µs (N 1); mean response + think 250 µs: ratio 1.000" in text
    assert "client's floor (times on a server that does nothing): p50 21 µs, p99 60 µs" in text
    assert "sent late" not in text
    assert "do not trust" not in text


def test_an_open_loop_says_how_late_it_was() -> None:
    """An open loop's summary has its lateness, and the begin of its times. Its processor share contains the waits."""
    plan = replace(OPEN, clients=1, connections_per_client=4, client="library")
    text = one_line(printed(open_run(late_us=30), plan))
    assert "1 client × 4 connections · library · 1000/s constant · sockets" in text
    assert "a time begins when a request is due, a service time at its send: p50 170 µs" in text
    assert "sent late: p50 30 µs, p99 30 µs, max 30 µs" in text
    assert "busy waiting included" in text
    assert "N/X" not in text


def worst() -> LoadResult:
    """A run of two request types with large numbers and every warning."""
    base = combine(PLAN, WINDOW, [report(0, closed_records(took_us=1_234_567), cpu_s=1.9), report(1)], lost=2)
    lookups = replace(
        base.parts["lookup"], outcomes={"UNKNOWN_STOCK": 90_000_000}, errors={"deadline_exceeded": 123_456}
    )
    trades = replace(base.parts["trade"], outcomes={"OK": 9_000_000, "SUSPENDED": 8_000_000, "INVALID_QUANTITY": 7})
    return replace(
        base,
        parts={"lookup": lookups, "trade": trades},
        errors={"deadline_exceeded": 123_456, "invalid_reply": 3, "unavailable": 12_345_678},
        interrupted=True,
        arrivals=(bad_arrivals(),),
        began=base.began + 3,
    )


def test_the_summary_fits_a_screen() -> None:
    """The summary fits 80 columns and 24 lines, with large numbers and every warning. Off a terminal it has no
    colour."""
    plan = replace(PLAN, clients=512, connections_per_client=8, connection="per-request")
    text = printed(worst(), plan, FLOOR)
    assert "\x1b" not in text
    assert len(text.rstrip("\n").splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 80
    for part in ("UNKNOWN_STOCK 90,000,000", "deadline_exceeded 123,456", "include connecting", "starved"):
        assert part in one_line(text), part


def test_no_color_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal warnings are red, unless NO_COLOR is set."""
    for environment, coloured in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", environment)
        monkeypatch.setenv("TERM", "xterm-256color")
        screen = io.StringIO()
        show(PLAN, worst(), FLOOR, Console(file=screen, width=80, force_terminal=True))
        assert ("\x1b[1;31m" in screen.getvalue()) is coloured


def test_long_lines_are_broken_between_words_and_indented() -> None:
    """A long line is broken between words, never between a number and its unit."""
    text = printed(open_run(late_us=30), OPEN, FLOOR, width=50)
    lines = text.splitlines()
    assert any(line.startswith("  ") and line.strip() for line in lines)
    assert not any(line.strip().startswith(("µs", "ms", "s,")) for line in lines)
    assert not any(line.endswith(" ") for line in lines if not line.startswith(("lookup", "trade", "all", "request")))


def test_a_good_run_has_nothing_to_warn_of() -> None:
    """A good run has no warnings, in either loop."""
    assert list(warnings(closed_run(closed_records()))) == []
    assert list(warnings(open_run())) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"interrupted": True}, "interrupted"),
        ({"interrupted": True, "unanswered": 1234}, "1,234 requests were under way or due; no latency includes them"),
        ({"errors": {"unavailable": 3}}, "(the table has only errors of the window): unavailable 3"),
        ({"started_clients": 3}, "starved: 2 of 3 clients got no reply"),
        ({"connections_per_client": 2}, "starved: 1 of 2 connections got no reply"),
        ({"client_cpu_each_s": (1.7,)}, "a client used over 80% of a core"),
        ({"client_cpu_each_s": (0.85, 0.85), "cores": 1}, "the clients used over 80% of their core: the latency"),
        ({"client_cpu_each_s": (1.2, 1.1, 1.1), "cores": 2}, "the clients used over 80% of their 2 cores: the latency"),
        ({"began": 0}, "requests are not accounted for: do not trust this run"),
        ({"arrivals": (bad_arrivals(),)}, "the requested load: the sends did not follow the schedule (rate ÷ declared"),
        ({"arrivals": (bad_arrivals(),)}, "a core each; if the server is full, more --connections-per-client"),
    ],
)
def test_what_makes_a_number_doubtful_is_said(change: dict[str, object], said: str) -> None:
    """Each cause of doubtful numbers has one line."""
    (line,) = warnings(replace(closed_run(closed_records()), **change))  # type: ignore[arg-type]
    assert said in line


LACKS = "the server does not have these stocks; give its own with --stocks"


@pytest.mark.parametrize(
    ("lookup", "trade", "said"),
    [
        ({"OK": 5}, {"OK": 4, "SUSPENDED": 9}, []),
        ({"OK": 5}, {}, []),
        ({"UNKNOWN_STOCK": 1000}, {"UNKNOWN_STOCK": 234}, [f"all 1,234 replies were UNKNOWN_STOCK: {LACKS}"]),
        ({"UNKNOWN_STOCK": 1234}, {"OK": 9}, [f"all 1,234 replies to lookup were UNKNOWN_STOCK: {LACKS}"]),
        ({"UNKNOWN_STOCK": 1}, {"OK": 9}, [f"the only reply to lookup was UNKNOWN_STOCK: {LACKS}"]),
        ({"UNKNOWN_STOCK": 3, "OK": 1}, {"UNKNOWN_STOCK": 4, "OK": 1}, [f"UNKNOWN_STOCK 7 times: {LACKS}"]),
        (
            {"OK": 5},
            {"SUSPENDED": 20},
            [
                "all 20 replies to trade were SUSPENDED: no more shares fit under the volume limits; restart the "
                "server, or give it a --catalog of higher limits"
            ],
        ),
        ({"OK": 5}, {"INVALID_QUANTITY": 20}, ["all 20 replies to trade were INVALID_QUANTITY"]),
        ({"OK": 5}, {"SUSPENDED": 20, "UNKNOWN_STOCK": 3}, ["none of the 23 replies to trade was OK"]),
    ],
    ids=str,
)
def test_replies_of_which_none_is_ok_are_one_line(
    lookup: dict[str, int], trade: dict[str, int], said: list[str]
) -> None:
    """Replies without any OK are one line, for a request type or for all. Where some are OK, only missing stocks have a
    line."""
    base = closed_run(closed_records())
    parts = {
        "lookup": replace(base.parts["lookup"], outcomes=lookup),
        "trade": replace(base.parts["trade"], outcomes=trade),
    }
    assert list(warnings(replace(base, parts=parts))) == said


def test_a_percentile_needs_ten_requests_beyond_it() -> None:
    """p99.9 of 2,000 requests is a dash, and a line says how many requests are needed. p99.9 of 10,000 requests is a
    number."""
    text = printed(open_run(count=2000), OPEN)
    assert text.count("–") >= 3
    assert "–: too few replies for a percentile; needed: p99.9 10,000" in one_line(text)
    assert "–" not in printed(open_run(count=20_000), OPEN)


def test_a_percentile_below_the_table_needs_as_many() -> None:
    """A percentile below the table needs enough requests, too, for service times and late sends."""
    text = one_line(printed(open_run(count=990), OPEN))
    assert "at its send: p50 197 µs, p99 –" in text
    assert "sent late: p50 3 µs, p99 –, max 3 µs" in text
    text = one_line(printed(open_run(count=18), OPEN))
    assert "at its send: p50 –, p99 –" in text
    assert "sent late: p50 –, p99 –, max" in text


def row(result: LoadResult, name: str) -> list[str]:
    """A row of the table."""
    (line,) = [line for line in printed(result, OPEN).splitlines() if line.startswith(f"{name} ")]
    return line.split()


def test_the_table_and_a_threshold_have_one_throughput() -> None:
    """Throughput counts replies within the window. For a server that fell behind, this is less than all replies."""
    behind = open_run(times_us=(1_000_000,), count=2000)
    assert [row(behind, name)[3] for name in ("lookup", "trade", "all")] == ["250", "250", "500"]
    assert "per s: replies within the window" in one_line(printed(behind, OPEN))


def test_times_of_failed_requests_alone_are_withheld() -> None:
    """If all requests failed, no times are shown: a reader would take the times for the server's."""
    assert row(open_run(failed=2000), "all") == ["all", "0", "2000", "0", *["–"] * 6]


@pytest.mark.parametrize(
    ("time_us", "said"),
    [
        (None, "–"),
        (0.4, "0 µs"),
        (172.4, "172 µs"),
        (9_999.4, "9999 µs"),
        (9_999.6, "10.0 ms"),
        (12_345, "12.3 ms"),
        (99_949, "99.9 ms"),
        (99_951, "100 ms"),
        (472_400, "472 ms"),
        (9_999_600, "10.0 s"),
        (60e6, "60.0 s"),
    ],
)
def test_a_time_is_said_with_its_unit(time_us: float | None, said: str) -> None:
    """A time has the unit that keeps it short."""
    assert span(time_us) == said


PROGRESS = (
    Progress("starting", 0, 0.0, 30.0),
    Progress("warm-up", 0, 0.0, 30.0),
    Progress("measuring", 500, 5.0, 25.0),
    Progress("measuring", 800, 6.0, 24.0),
    Progress("measuring", 4000, 16.0, 14.0),
    Progress("finishing", 9000, 30.0, 0.0),
)


def watched(plan: LoadPlan, is_terminal: bool = False) -> str:
    """The text on the progress of a run."""
    screen = io.StringIO()
    with live(Console(file=screen, width=100, force_terminal=is_terminal), plan) as watch:
        for progress in PROGRESS:
            watch(progress)
    return screen.getvalue()


def test_off_a_terminal_progress_is_plain_lines_now_and_then() -> None:
    """Without a terminal, progress is a line at the start of warm-up and of the window, and every ten seconds."""
    assert watched(PLAN).splitlines() == [
        "2 clients: warm-up, 0 requests, 30 s left",
        "2 clients: measuring, 500 requests, 25 s left",
        "2 clients: measuring, 4,000 requests, 14 s left",
    ]


@pytest.mark.parametrize(
    ("clients", "rate_hz", "said"),
    [(1, 1000.0, "1 client at 1,000/s"), (2, 0.5, "2 clients at 0.5/s"), (2, 123_456.7, "2 clients at 123,456.7/s")],
)
def test_an_open_loops_rate_is_said(clients: int, rate_hz: float, said: str) -> None:
    """The progress line has the declared rate."""
    assert watched(replace(OPEN, clients=clients, rate_hz=rate_hz)).startswith(f"{said}: warm-up")


def test_on_a_terminal_progress_is_one_line_with_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the line is rewritten, and disappears at the end. With NO_COLOR the line has no colours."""
    monkeypatch.setenv("NO_COLOR", "1")
    text = watched(OPEN, is_terminal=True)
    assert "4,000 requests, 14 s left" in text
    assert "2 clients at 1,000/s, measuring" in text
    assert "\x1b[3" not in text  # no colour, though there are codes that move the cursor
    assert text.endswith("\x1b[2K")
