"""Results: one tidy row per run × request type, and the CSV file that holds them.

A ``Row`` is everything that is known of one request type in one run: the run's factors, what the client saw, what the
server spent. Its fields are the file's columns, in this order and by these names. A run's rows are written together,
the row of request ``all`` last: a run that has no such row was cut off by a crash, and does not count.

Empty cells are None: not measured (the lock wait of a run that was not timed), or not there (the latency of a request
that no client completed). Left out: anything computed over runs; that is ``stats``.
"""

import csv
import io
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Self

from stock_service.rpc.errors import UsageError

RESULTS_FILE = "results.csv"

ALL = "all"
"""The request type of the row that sums up a run."""


@dataclass(frozen=True, slots=True)
class Row:
    """One request type in one run."""

    study: str
    part: str
    """The figure or extension that the run belongs to, such as ``figure_1`` or ``locks``."""
    block: int
    """From 1. Every setting is run once in every block."""
    order: int
    """The run's place within its block, from 1; drawn at random."""
    run_id: str
    """Unique in the file."""
    service: str
    """What was served: ``stock``, or one of the studies' own services."""
    transport: str
    executor: str
    dispatch: str
    """``request`` or ``connection``; on transports that have no choice, ``request``."""
    workers: int
    locking: str
    clients: int
    """Client processes."""
    connections: int
    """Connections of each client."""
    connection: str
    """``kept-alive`` or ``per-request``."""
    mix: str
    """Weights of the requests, such as ``lookup=0.5,trade=0.5``."""
    updater: bool
    """Whether a price updater ran beside the clients; its requests are in no row."""
    client: str
    """``lean``, or the transport's own ``library``."""
    loop: str
    """``closed`` or ``open``."""
    rate_hz: float | None
    """Requests due a second, in an open loop, as declared."""
    arrivals: str
    """``poisson`` or ``constant``; nothing in a closed loop."""
    timeline: bool
    """Whether the server stamped every request's stages."""
    request: str
    """``lookup``, ``trade``, ``update``, ``echo``, or ``all`` of them."""
    count: int
    """Requests answered within the window."""
    errors: int
    error_kinds: str
    """``KIND:COUNT``, separated by blanks; see ``parse_counts``."""
    starved_clients: int
    """Clients that got no reply in the window; they are in no latency."""
    outcomes: str
    """As ``error_kinds``: how the answered requests ended, such as ``OK:1020 SUSPENDED:3``."""
    warm_up_s: float
    """Before the window; its requests are in no latency."""
    duration_s: float
    """The measured window."""
    throughput_hz: float
    """Answers a second of this request type."""
    throughput_all_hz: float
    """Answers a second of all types."""
    lost: int
    """Requests of the whole run that were begun and never recorded: anything but 0 is a fault of the client."""
    response_us_mean: float | None
    """From when a request was due to its reply; in a closed loop it is due when it is sent."""
    response_us_p50: float | None
    response_us_p90: float | None
    response_us_p99: float | None
    response_us_p999: float | None
    response_us_max: float | None
    response_us_stddev: float | None
    """Over the run's requests; says nothing of how sure the mean is."""
    effective_count: float | None
    """How many independent requests these are worth for the 99th percentile, in all types of the run together."""
    service_us_mean: float | None
    """From when a request was sent to its reply, as are the two that follow."""
    service_us_p50: float | None
    service_us_p99: float | None
    late_us_p99: float | None
    """In an open loop: from when a request was due to when it was sent."""
    arrival_rate_ratio: float | None
    """In an open loop: the rate at which requests were sent ÷ the declared one, as are the gaps' numbers that follow,
    of the client process whose gaps are farthest from the declared process."""
    arrival_variation: float | None
    """Standard deviation of the gaps ÷ their mean: 1 for Poisson, 0 for constant."""
    arrival_ks_distance: float | None
    """Kolmogorov and Smirnov's distance of the gaps from those of the declared process."""
    arrival_dispersion: float | None
    """Variance ÷ mean of the counts in a hundred parts of the window: 1 for Poisson."""
    think_us_mean: float | None
    """In a closed loop: from a reply to the next request of the same connection."""
    steady: bool | None
    """Whether this run's times show no trend; None: too few to tell. The gates judge an arm, from ``tenths``."""
    tenths: str
    """Mean response of each tenth of the window ÷ that of the window, separated by blanks; empty: too few to tell."""
    floor_us_p50: float | None
    """What the same kind of client reads of a server that does nothing, in the same block."""
    connect_us_mean: float | None
    """Making a connection, before the window."""
    first_call_us_mean: float | None
    """The first request on a connection, before the window."""
    n_over_x_us: float | None
    """Connections that send ÷ throughput of all: what a closed loop's latency must be. Starved clients do not send."""
    little_ratio: float | None
    """Throughput × (mean latency + think time) ÷ connections that send: 1 where clock and counting are right."""
    server_cpu_s: float | None
    """Processor time of the server process in the window, user and system; None where the window was missed."""
    server_cpu_us_per_request: float | None
    """None beside an updater too: its requests cost the server time, and are in no count."""
    client_cpu_share: float | None
    """Processor time of the client processes in the window ÷ the window: of one core. Pinned, with the updater's, which
    shares that core."""
    load_limited: bool
    """The clients took over 80 % of their core: the latency is that of client and server together."""
    lock_wait_us_mean: float | None
    """From asking for the catalog's lock to having it: for lookup a reader's, for trade and update a writer's."""
    lock_wait_us_p99: float | None
    stage_queue_us_mean: float | None
    """From the timeline: a request is read, a worker begins on it."""
    stage_preparation_us_mean: float | None
    """… then it asks for the lock …"""
    stage_lock_us_mean: float | None
    """… has it …"""
    stage_service_us_mean: float | None
    """… has the answer …"""
    stage_reply_us_mean: float | None
    """… and has given the reply to the kernel."""
    stage_total_us_mean: float | None
    """All of it."""
    stage_total_us_p50: float | None
    stage_total_us_p99: float | None
    stage_violation_share: float | None
    """Of the stamped requests: those whose stages do not add up to the total."""
    server_threads: int | None
    """Threads of the server process, the most that were seen in the warm-up."""
    server_connections: int | None
    """Connections of the clients open at the server, likewise; None where the warm-up was too short to count them."""
    calibration_us: float | None
    """What a fixed piece of work took on the server's core, before the run."""
    steal_share: float | None
    """Of the cores that were used, from the server's start to its end: what the hypervisor gave to others."""
    attempt: int
    """Which attempt of the run this is, from 1: the last one counts, and only that has rows. See ``repetition``."""
    server_memory_mib: float | None
    """The server's proportional set size at the end of the window."""
    pinned: bool
    """Server and clients had a core each."""
    started_at: str
    """When the run began, ISO 8601 in UTC: a label, no measurement."""
    seed: int


COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(Row))


def counts_text(counts: Mapping[str, int]) -> str:
    """``{"OK": 3, "SUSPENDED": 1}`` → ``OK:3 SUSPENDED:1``; names without colons or blanks."""
    return " ".join(f"{name}:{count}" for name, count in sorted(counts.items()))


def parse_counts(text: str) -> dict[str, int]:
    """The reverse of ``counts_text``. ValueError for anything else."""
    counts: dict[str, int] = {}
    for word in text.split():
        name, colon, count = word.rpartition(":")
        if not colon or not name:
            raise ValueError(f"no NAME:COUNT: {word!r}")
        counts[name] = int(count)
    return counts


def load_rows(path: Path) -> list[Row]:
    """Every row of a results file, or of the ``results.csv`` of a folder. UsageError names the line and the column."""
    return parse_rows(_read(path), str(path))


def load_whole_runs(path: Path) -> list[Row]:
    """As ``load_rows``, leaving out what a crash cut off: a torn last line, and a run without its row of ``all``."""
    text = _read(path)
    whole_lines = text[: text.rfind("\n") + 1]
    if not whole_lines:  # not even the header
        return []
    rows = parse_rows(whole_lines, str(path))
    complete = {row.run_id for row in rows if row.request == ALL}
    return [row for row in rows if row.run_id in complete]


def parse_rows(text: str, source: str) -> list[Row]:
    """The rows of a CSV text; ``source`` names it in the UsageError."""
    reader = csv.reader(io.StringIO(text))
    header = next(reader, [])
    if tuple(header) != COLUMNS:
        missing = [name for name in COLUMNS if name not in header]
        raise UsageError(f"{source}: header", ",".join(header), f"the columns of results.Row (missing: {missing})")
    return [_parse_row(cells, f"{source} line {reader.line_num}") for cells in reader]


class ResultsWriter:
    """Appends runs to a results file: each is on the disk when ``append`` returns. One thread's; close it."""

    def __init__(self, path: Path) -> None:
        """Opens the file at ``path``, with a header where it is new or empty. Raises OSError."""
        self._file = path.open("a", encoding="utf-8", newline="")
        if self._file.tell() == 0:
            self._write([COLUMNS])

    def append(self, rows: Iterable[Row]) -> None:
        """Adds one run, its row of ``all`` last. Blocks until the disk has it."""
        self._write([_cells(row) for row in rows])

    def close(self) -> None:
        """Closes the file. May be repeated."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _write(self, lines: Iterable[Iterable[str]]) -> None:
        self._file.write(_text(lines))
        self._file.flush()
        os.fsync(self._file.fileno())


def _read(path: Path) -> str:
    file = path / RESULTS_FILE if path.is_dir() else path
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(str(file), type(error).__name__, "a results.csv, or a folder that has one") from error


def _parse_row(cells: list[str], where: str) -> Row:
    if len(cells) != len(COLUMNS):
        raise UsageError(where, f"{len(cells)} cells", f"{len(COLUMNS)} (a run cut off is repaired by --resume)")
    values: dict[str, object] = {}
    for field, cell in zip(fields(Row), cells, strict=True):
        try:
            values[field.name] = _PARSERS[field.type](cell)
        except ValueError as error:
            raise UsageError(f"{where}, {field.name}", cell, _ALLOWED[field.type]) from error
    return Row(**values)  # type: ignore[arg-type]  # each cell was parsed as its field's type


def rows_text(rows: Iterable[Row]) -> str:
    """The file that has these rows."""
    return _text([COLUMNS, *map(_cells, rows)])


def _text(lines: Iterable[Iterable[str]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(lines)
    return buffer.getvalue()


def _cells(row: Row) -> list[str]:
    return [_cell(value) for value in astuple(row)]


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.10g}"
        case _:
            return str(value)


def _parse_bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _parse_optional(text: str) -> float | None:
    return float(text) if text else None


_PARSERS: dict[object, Callable[[str], object]] = {
    str: str,
    int: int,
    float: float,
    bool: _parse_bool,
    float | None: _parse_optional,
    int | None: lambda text: int(text) if text else None,
    bool | None: lambda text: _parse_bool(text) if text else None,
}
_ALLOWED: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    float | None: "a number, or nothing",
    int | None: "a whole number, or nothing",
    bool | None: "true or false, or nothing",
}
