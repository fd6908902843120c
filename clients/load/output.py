"""A load run as a file: JSON with all results, CSV with a line for each request type, or ``.hlog`` for other tools.

JSON has the counts and times (``counted``), and the numbers computed from the counts and times. ``result.from_json``
reads ``counted``. ``throughput_hz`` of a run counts replies that came within the window. ``throughput_hz`` of a request
type counts answered requests that were due in the window. In an open loop, the number of a type also counts replies
that came after the window, and so may be larger. ``counted.parts`` also has, for each type, the number of replies
within the window (``completed``).

CSV has the numbers that the screen shows. Throughput in CSV counts replies within the window. The cell of a percentile
is empty if fewer than ten requests took longer than the percentile.

A file is written under a temporary name in its folder, and is then renamed. So a reader never sees a partly written
file. The program writes directly to a stream (``/dev/stdout``, a pipe).
"""

import csv
import dataclasses
import io
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from clients.load.hosts.merging import HostResult
from clients.load.plan.load_plan import LoadPlan
from clients.load.record.result import LoadResult, RequestResult, to_json
from clients.load.run.floor import Floor
from clients.load.summary import PERCENTILES, told

JSON_FORMAT = 2
"""Version of the JSON format. A change in a field's meaning increases the version."""

_MS_NS = 1e6


@dataclass(frozen=True, slots=True)
class Measured:
    """A finished run: its plan and its result, with the floor (the client's times on a server that does nothing)."""

    plan: LoadPlan
    result: LoadResult
    floor: Floor | None
    started_at: datetime
    """Time of day at the run's start, in UTC."""
    hosts: tuple[HostResult, ...] = ()
    """Each host's result. Empty for a load from one machine."""


def json_text(runs: Sequence[Measured]) -> str:
    """JSON of all runs."""
    document = {"format": JSON_FORMAT, "results": [_document(run) for run in runs]}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def csv_text(runs: Sequence[Measured]) -> str:
    """CSV of all runs: a line for each request type of each run, and a line for ``all`` of each run."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for run in runs:
        writer.writerows(_line(run, name) for name in run.result.requests)
    return buffer.getvalue()


def _line(run: Measured, name: str) -> dict[str, object]:
    """Row of CSV for one request type of a run. If a number is None, its cell is empty."""
    request = run.result.requests[name]
    plan = {column: getattr(run.plan, column) for column in _OF_PLAN}
    numbers = {number: getattr(request, number) for number in _NUMBERS}
    numbers |= {number: told(numbers[number], request.count, beyond) for number, beyond in _BEYOND.items()}
    numbers["throughput_hz"] = run.result.answered_hz(name)
    return {
        **plan,
        "started_at": run.started_at.isoformat(),
        "duration_s": run.result.duration_s,
        "arrivals": None if run.plan.rate_hz is None else run.plan.arrivals,
        "request": name,
        "errors": sum(request.errors.values()),
        **{_column(number): value for number, value in numbers.items()},
    }


def hlog_text(runs: Sequence[Measured]) -> str:
    """HdrHistogram's interval log: response times in nanoseconds. The tag of an interval has the run's number and the
    request type.

    Only the greatest value of an interval is in milliseconds, as is usual in such logs.
    """
    lines = ["#[Histogram log format version 1.3]"]
    if runs:
        began_s = runs[0].started_at.timestamp()
        lines.append(f"#[StartTime: {began_s:.3f} (seconds since epoch), {runs[0].started_at.isoformat()}]")
    lines.append('"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"')
    for number, run in enumerate(runs, start=1):
        since_s = (run.started_at - runs[0].started_at).total_seconds()
        for name, request in run.result.requests.items():
            response: HdrHistogram = request.response
            encoded = str(response.encode(), "ascii")
            greatest_ms = (request.max_us or 0.0) * 1000 / _MS_NS
            lines.append(f"Tag={number}-{name},{since_s:.3f},{run.result.duration_s:.3f},{greatest_ms:.3f},{encoded}")
    return "\n".join(lines) + "\n"


def is_stream(path: Path) -> bool:
    """True for a pipe or a device, and for a path that names an open file descriptor (``/dev/fd/3``). The program
    writes to such a path directly, and only once."""
    return str(path).startswith(("/dev/std", "/dev/fd/", "/proc/")) or (path.exists() and not path.is_file())


def write(path: Path, text: str) -> None:
    """Writes a file, by the rules in the module's docstring. Blocks while a pipe has no reader. Raises OSError."""
    if is_stream(path):
        with path.open("a", encoding="utf-8") as stream:  # append: the file may be this program's own output
            stream.write(text)
        return
    place = path.resolve()  # the target of a link
    mode = place.stat().st_mode & 0o777 if place.exists() else None
    file = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
    file.touch(0o666 if mode is None else 0o600, exist_ok=False)
    try:
        file.write_text(text, encoding="utf-8")
        if mode is not None:
            file.chmod(mode)
        file.replace(place)
    except BaseException:
        file.unlink(missing_ok=True)
        raise


_BEYOND = dict(PERCENTILES.values()) | {"service_us_p50": 0.5, "service_us_p99": 0.01}
"""Share of requests that take longer than a percentile, by the percentile's name."""


def _column(name: str) -> str:
    """Name of a number's column: ``response_us_mean`` for ``mean_us``. The column's name includes the quantity."""
    statistic, _, unit = name.partition("_")
    return f"response_us_{statistic}" if unit == "us" else name


_OF_PLAN = ["transport", "client", "clients", "connections_per_client", "connection", "rate_hz", "arrivals", "seed"]

_OF_REQUEST = [field.name for field in dataclasses.fields(RequestResult) if field.name not in ("response", "service")]
_NUMBERS = [name for name in _OF_REQUEST if name not in ("outcomes", "errors")]

_COLUMNS = ("started_at", "duration_s", *_OF_PLAN, "request", "errors", *map(_column, _NUMBERS))

_COMPUTED = (
    "throughput_hz",
    "duration_s",
    "errors",
    "starved_clients",
    "starved_connections",
    "n_over_x_us",
    "think_us",
    "little_ratio",
    "late_us",
    "connect_us",
    "first_call_us",
    "client_cpu_s",
    "client_cpu_share",
    "load_limited",
    "interrupted",
    "unanswered",
)
"""Numbers computed from a run's counts. Each number is a property or field of the run's result."""

_UNSAID = ("request_types", "credentials")
"""Fields of a plan that the output leaves out. ``request_types`` has other names in the output, and ``credentials`` are
secret."""


def _document(run: Measured) -> dict[str, object]:
    plan, result = run.plan, run.result
    asked = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan) if field.name not in _UNSAID}
    asked["calls"] = {each.name: each.path for each in plan.request_types}
    asked["metadata"] = ["=".join(sent) for sent in plan.credentials.metadata]
    return {
        "started_at": run.started_at.isoformat(),
        "plan": asked,
        "floor": run.floor,
        **_counted(result),
        "hosts": [
            {"name": host.name, "began_within_s": host.began_within_s, **_counted(host.result)} for host in run.hosts
        ],
    }


def _counted(result: LoadResult) -> dict[str, object]:
    """Counts of the result of a run, or of the result of one host's share of a run."""
    return {
        "requests": {
            name: {field: getattr(request, field) for field in _OF_REQUEST} for name, request in result.requests.items()
        },
        **{name: getattr(result, name) for name in _COMPUTED},
        "counted": to_json(result),
    }
