"""A run as files: for programs, for tables, and for HdrHistogram's tools."""

import csv
import io
import json
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]
from hdrh.log import HistogramLogReader  # type: ignore[import-untyped]

from clients.load.output import JSON_FORMAT, Measured, csv_text, hlog_text, is_stream, json_text, write
from clients.load.record.result import ALL, combine
from clients.load.run.floor import Floor
from tests.unit.clients.load.reports import OPEN, PLAN, WINDOW, closed_records, closed_run, open_run, report

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CLOSED_RUN = Measured(replace(PLAN, clients=1), closed_run(closed_records()), Floor(21.0, 60.0), AT)
OPEN_RUN = Measured(replace(OPEN, clients=1), open_run(times_us=(100, 900)), None, AT + timedelta(seconds=12.5))
NOTHING = Measured(PLAN, combine(PLAN, WINDOW, [report(0)]), None, AT)
RUNS = [CLOSED_RUN, OPEN_RUN, NOTHING]


def test_json_has_what_was_asked_for_and_every_number() -> None:
    """JSON has the plan and every number of each run; null where there is no number."""
    document = json.loads(json_text(RUNS))
    assert document["format"] == JSON_FORMAT
    one, other, nothing = document["results"]
    assert one["plan"]["mix"] == {"lookup": 1.0, "trade": 1.0}
    assert one["plan"]["address"] == ["127.0.0.1", 50052]
    assert (one["floor"], other["floor"]) == ({"floor_us_p50": 21.0, "floor_us_p99": 60.0}, None)
    assert one["started_at"] == "2026-01-02T03:04:05+00:00"
    assert (one["late_us"], other["late_us"]["p99_us"]) == (None, 3.0)
    assert (one["think_us"], other["little_ratio"]) == (50.0, None)
    assert nothing["requests"][ALL]["p50_us"] is None
    for run, written in zip(RUNS, document["results"], strict=True):
        for name, request in run.result.requests.items():
            for field in fields(request):
                if field.name not in ("response", "service"):
                    assert written["requests"][name][field.name] == getattr(request, field.name)


def test_csv_has_a_line_for_each_run_and_request_type() -> None:
    """CSV has a line for each run and request type, columns with units, and empty cells without a number."""
    rows = list(csv.DictReader(io.StringIO(csv_text(RUNS))))
    assert [row["request"] for row in rows] == ["lookup", "trade", "all"] * 3
    assert {row["rate_hz"] for row in rows} == {"", "1000.0"}
    closed, opened, nothing = rows[2], rows[5], rows[8]
    assert (closed["transport"], closed["client"], closed["clients"]) == ("sockets", "lean", "1")
    assert int(closed["count"]) == CLOSED_RUN.result.requests[ALL].count
    assert float(closed["throughput_hz"]) == CLOSED_RUN.result.throughput_hz
    assert float(closed["duration_s"]) == 2
    assert float(opened["response_us_mean"]) == pytest.approx(500)
    assert float(opened["service_us_mean"]) == pytest.approx(497)
    assert (nothing["response_us_p50"], nothing["response_us_max"], nothing["count"]) == ("", "", "0")
    assert all(None not in row and None not in row.values() for row in rows)
    assert [row["arrivals"] for row in rows[::3]] == ["", "constant", ""]


def test_csv_says_what_the_screen_says() -> None:
    """CSV has the screen's numbers: throughput of replies within the window, and no percentile with too few requests
    beyond it."""
    late = Measured(replace(OPEN, clients=1), open_run(times_us=(500_000,)), None, AT)
    lookup, _, every = csv.DictReader(io.StringIO(csv_text([late])))
    assert float(every["throughput_hz"]) == late.result.throughput_hz == late.result.completed / 2 < 1000
    assert float(lookup["throughput_hz"]) == late.result.answered_hz("lookup") < 500
    assert (every["response_us_p99"], every["response_us_p999"]) == (f"{late.result.requests[ALL].p99_us}", "")
    assert lookup["service_us_p99"] == every["service_us_p99"] != ""
    (*_, few) = csv.DictReader(io.StringIO(csv_text([replace(late, result=open_run(count=200))])))
    assert (few["response_us_p90"] != "", few["response_us_p99"], few["service_us_p99"]) == (True, "", "")


def test_the_log_is_read_by_the_histograms_own_tools(tmp_path: Path) -> None:
    """The log has one interval for each run and request type: counts, begin and length, in nanoseconds."""
    path = tmp_path / "runs.hlog"
    write(path, hlog_text(RUNS))
    with closing(HistogramLogReader(str(path), HdrHistogram(1, 60 * 10**9, 3))) as reader:
        seen = list(iter(reader.get_next_interval_histogram, None))
    assert [histogram.get_tag() for histogram in seen] == [
        f"{number}-{name}" for number in (1, 2, 3) for name in ("lookup", "trade", "all")
    ]
    assert reader.get_start_time_sec() == AT.timestamp()
    for histogram, run in zip(seen[2::3], RUNS, strict=True):
        every = run.result.requests[ALL]
        assert histogram.get_total_count() == every.count
        assert histogram.get_value_at_percentile(99) == every.response.get_value_at_percentile(99)
    began_ms = [histogram.get_start_time_stamp() for histogram in seen[2::3]]
    assert [began - began_ms[0] for began in began_ms] == [0, 12_500, 0]
    assert [histogram.get_end_time_stamp() - histogram.get_start_time_stamp() for histogram in seen[:3]] == [2000] * 3


# ---- where it is written


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """A file is replaced whole, without another file in its folder, and keeps its mode."""
    file = tmp_path / "results.json"
    file.write_text("before")
    file.chmod(0o640)
    write(file, "after")
    assert file.read_text() == "after"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [file]


def test_a_new_file_is_as_any_other(tmp_path: Path) -> None:
    """A new file has the mode that the user's mask leaves."""
    write(tmp_path / "new", "text")
    (tmp_path / "other").touch()
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_where_it_cannot_be_put_nothing_is_left(tmp_path: Path) -> None:
    """Where a file cannot be put, no temporary file is left, and the old file stays."""
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "file").touch()
    with pytest.raises(OSError, match="directory"):
        write(taken, "text")
    missing = tmp_path / "no" / "file"
    with pytest.raises(FileNotFoundError):
        write(missing, "text")
    with pytest.raises(UnicodeEncodeError):
        write(tmp_path / "new", "half of a sign: \udc80")
    assert list(tmp_path.iterdir()) == [taken]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link(tmp_path: Path, there: bool) -> None:
    """The target of a link is written, in any folder, and even if the target does not exist yet."""
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "target"
    if there:
        target.write_text("before")
    link = tmp_path / "link"
    link.symlink_to(target)
    write(link, "after")
    assert link.is_symlink()
    assert target.read_text() == "after"


@pytest.mark.usefixtures("no_leaks")
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """The pipe stays a pipe, and its reader gets the whole text."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reading = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reading.start()
    write(pipe, "x" * 100_000)
    reading.join()
    assert got == ["x" * 100_000]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.fixture
def redirected(tmp_path: Path) -> Iterator[int]:
    """A descriptor of an open file with some text, as a redirected standard output is."""
    descriptor = os.open(tmp_path / "output", os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"before\n")
    yield descriptor
    os.close(descriptor)


def test_a_descriptors_file_is_not_replaced(redirected: int, tmp_path: Path) -> None:
    """The earlier text of the file stays, and the new text follows."""
    write(Path(f"/dev/fd/{redirected}"), "after\n")
    assert (tmp_path / "output").read_text() == "before\nafter\n"


def test_what_is_no_ordinary_file_is_a_stream(tmp_path: Path) -> None:
    """Devices and descriptors are streams. An ordinary file is not a stream, existing or not, also in memory."""
    (tmp_path / "file").touch()
    for path in ("/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/null", "/proc/self/fd/1"):
        assert is_stream(Path(path))
    for path in ("file", "new", "/dev/shm/results.json"):
        assert not is_stream(tmp_path / path)
