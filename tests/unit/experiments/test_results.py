"""Results: what is written is what is read, and a crash costs one run."""

import dataclasses
from pathlib import Path

import pytest

from experiments import results
from experiments.results import COLUMNS, ResultsWriter, Row
from stock_service.rpc.errors import UsageError

ALL = Row(
    study="stock",
    part="figure_1",
    block=1,
    order=3,
    run_id="001-003",
    service="stock",
    transport="grpc",
    executor="static-pool",
    dispatch="request",
    workers=10,
    locking="mutex",
    clients=2,
    connections=1,
    connection="kept-alive",
    mix="lookup=0.5,trade=0.5",
    updater=True,
    client="library",
    loop="open",
    rate_hz=1300.0,
    arrivals="poisson",
    timeline=True,
    request="all",
    count=1000,
    errors=1,
    error_kinds="DEADLINE_EXCEEDED:1",
    starved_clients=0,
    outcomes="OK:1000",
    warm_up_s=0.4,
    duration_s=0.8,
    throughput_hz=1250.0,
    throughput_all_hz=1250.0,
    lost=0,
    response_us_mean=1600.125,
    response_us_p50=1500.0,
    response_us_p90=1700.0,
    response_us_p99=1900.0,
    response_us_p999=None,
    response_us_max=2500.0,
    response_us_stddev=120.0,
    effective_count=812.5,
    service_us_mean=1590.0,
    service_us_p50=1490.0,
    service_us_p99=1890.0,
    late_us_p99=12.5,
    arrival_rate_ratio=1.001,
    arrival_variation=0.99,
    arrival_ks_distance=0.004,
    arrival_dispersion=1.02,
    think_us_mean=None,
    steady=None,
    tenths="",
    floor_us_p50=25.5,
    connect_us_mean=900.0,
    first_call_us_mean=2000.0,
    n_over_x_us=1600.0,
    little_ratio=1.0000781,
    server_cpu_s=0.2,
    server_cpu_us_per_request=200.0,
    client_cpu_share=0.31,
    load_limited=False,
    lock_wait_us_mean=None,
    lock_wait_us_p99=None,
    stage_queue_us_mean=1.5,
    stage_preparation_us_mean=2.5,
    stage_lock_us_mean=0.25,
    stage_service_us_mean=3.5,
    stage_reply_us_mean=4.5,
    stage_total_us_mean=12.25,
    stage_total_us_p50=11.5,
    stage_total_us_p99=None,
    stage_violation_share=0.0,
    server_threads=12,
    server_connections=None,
    calibration_us=2050.5,
    steal_share=0.001,
    attempt=2,
    server_memory_mib=31.5,
    pinned=True,
    started_at="2026-01-02T03:04:05+00:00",
    seed=12345,
)
LOOKUP = dataclasses.replace(ALL, request="lookup", count=600)


def write(path: Path, *runs: list[Row]) -> None:
    with ResultsWriter(path) as writer:
        for rows in runs:
            writer.append(rows)


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    """By the file or by its folder; empty cells as None."""
    write(tmp_path / "results.csv", [LOOKUP, ALL])
    assert results.load_rows(tmp_path / "results.csv") == [LOOKUP, ALL]
    assert results.load_rows(tmp_path) == [LOOKUP, ALL]


def test_a_file_is_added_to_and_has_one_header(tmp_path: Path) -> None:
    """However often it is opened."""
    path = tmp_path / "results.csv"
    write(path, [ALL])
    second = dataclasses.replace(ALL, run_id="001-004")
    write(path, [second])
    assert results.load_rows(path) == [ALL, second]
    assert path.read_text().splitlines()[0].split(",") == list(COLUMNS)


def test_a_run_is_on_the_disk_before_the_writer_is_closed(tmp_path: Path) -> None:
    """And closing twice is once."""
    writer = ResultsWriter(tmp_path / "results.csv")
    writer.append([LOOKUP, ALL])
    assert results.load_rows(tmp_path) == [LOOKUP, ALL]
    writer.close()
    writer.close()


def test_a_run_that_a_crash_cut_off_is_no_run(tmp_path: Path) -> None:
    """Torn within a line, or between two lines: what was whole before it stays."""
    path = tmp_path / "results.csv"
    write(path, [LOOKUP, ALL])
    whole = path.read_text()
    write(path, [dataclasses.replace(LOOKUP, run_id="001-004"), dataclasses.replace(ALL, run_id="001-004")])
    text = path.read_text()
    for length in range(len(whole), len(text)):
        path.write_text(text[:length])
        assert results.load_whole_runs(path) == [LOOKUP, ALL]


def test_a_crash_within_the_header_leaves_no_run(tmp_path: Path) -> None:
    """The file is empty, or has no whole line: nothing was measured, and nothing is wrong."""
    path = tmp_path / "results.csv"
    for text in ("", "study,part,blo"):
        path.write_text(text)
        assert results.load_whole_runs(path) == []


def test_a_torn_file_is_refused_by_whoever_needs_it_whole(tmp_path: Path) -> None:
    """With what repairs it."""
    path = tmp_path / "results.csv"
    write(path, [ALL])
    path.write_text(path.read_text()[:-60])
    with pytest.raises(UsageError, match=r"line 2.*--resume"):
        results.load_rows(path)


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("001-003,stock,grpc", "001-003,stock,grpc,extra", "line 2"),
        (",10,mutex", ",ten,mutex", "line 2, workers: got 'ten', allowed: a whole number"),
        (",true,library,", ",yes,library,", "line 2, updater: got 'yes', allowed: true or false"),
        (",12,,", ",twelve,,", "line 2, server_threads: got 'twelve', allowed: a whole number, or nothing"),
        (",,,25.5,", ",maybe,,25.5,", "line 2, steady: got 'maybe', allowed: true or false, or nothing"),
        (",1600.125,", ",fast,", "line 2, response_us_mean: got 'fast', allowed: a number, or nothing"),
        ("study,part", "study,figure", "header.*missing: .*part"),
    ],
)
def test_a_bad_cell_is_refused_with_its_line_and_column(tmp_path: Path, good: str, bad: str, message: str) -> None:
    """With what was given and what is allowed; a bad header too."""
    path = tmp_path / "results.csv"
    write(path, [ALL])
    path.write_text(path.read_text().replace(good, bad, 1))
    with pytest.raises(UsageError, match=message):
        results.load_rows(path)


def test_a_folder_without_results_is_refused_by_name(tmp_path: Path) -> None:
    """With the file that is missing."""
    with pytest.raises(UsageError, match=r"results\.csv"):
        results.load_rows(tmp_path)


def test_counts_are_compact_text_and_come_back() -> None:
    """Anything else is refused."""
    counts = {"OK": 10, "UNKNOWN_STOCK": 2}
    assert results.counts_text(counts) == "OK:10 UNKNOWN_STOCK:2"
    assert results.parse_counts(results.counts_text(counts)) == counts
    assert results.parse_counts("") == {}
    with pytest.raises(ValueError, match="NAME:COUNT"):
        results.parse_counts("OK")
