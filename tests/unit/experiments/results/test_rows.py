"""Rows: one row for each block, arm and request type, with the values of the block."""

import csv
import io
from dataclasses import replace

import pytest

from experiments.design.factors import FACTORS
from experiments.design.setting import read
from experiments.results.observed import ANSWERED_LATE, SILENT, Window
from experiments.results.rows import rows, table
from tests.unit.experiments.judge.synthetic_blocks import GRPC, SOCKETS, block, sweep, with_arm, with_slices

OF = sweep()
MEANS = {SOCKETS: 100.0, GRPC: 400.0}


def test_every_arm_and_request_type_of_every_block_has_a_row() -> None:
    """Every block, arm and request type has a row with every column. The row of ``all`` is the arm's last row."""
    read_back = list(csv.DictReader(io.StringIO(table(OF, [block(OF, MEANS, 1), block(OF, MEANS, 2)]))))
    assert [(row["block"], row["arm"], row["request"]) for row in read_back] == [
        (number, arm, request) for number in "12" for arm in ("sockets", "grpc") for request in ("lookup", "all")
    ]
    columns = list(read_back[0])
    assert columns == list(next(rows(OF, block(OF, MEANS, 1))))
    assert columns[6 : 6 + len(FACTORS)] == list(FACTORS)


def test_a_rows_factors_read_back_as_its_setting() -> None:
    """The factors of a row give the setting of its arm."""
    for row, arm in zip(list(rows(OF, block(OF, MEANS)))[::2], OF.arms, strict=True):
        assert read(" ".join(f"{name}={row[name]}" for name in FACTORS)) == arm.setting


def test_a_row_says_what_was_seen() -> None:
    """A row has values of requests, slices, server and machine."""
    own = next(rows(OF, block(OF, MEANS)))
    assert own["count"] == 15 * 200
    assert own["response_us_mean"] == pytest.approx(100)
    assert own["response_us_p50"] == pytest.approx(100, rel=1e-3)
    assert own["throughput_hz"] == pytest.approx(10_000)
    assert own["server_cpu_us"] == pytest.approx(40)
    assert own["wire_bytes"] == pytest.approx(200)
    assert own["client_cpu_share"] == pytest.approx(0.25)
    assert (own["slices_kept"], own["slices_lost"], own["server_threads"], own["pinned"]) == (15, "", 20, 1)


def test_n_over_x_is_of_all_requests() -> None:
    """``n_over_x_us`` is connections ÷ throughput (Little's law), for all requests together."""
    by_request = {row["request"]: row["n_over_x_us"] for row in rows(OF, block(OF, MEANS)) if row["arm"] == "sockets"}
    assert by_request == {"lookup": None, "all": pytest.approx(100)}


def test_lost_slices_are_counted_by_their_fate_and_have_no_time() -> None:
    """Lost slices are counted by their fate. The throughput is over the kept slices."""
    one = block(OF, MEANS)
    own = [place for place, arm in enumerate(one.slices.arm) if arm == 0]
    fate = list(one.slices.fate)
    fate[own[0]], fate[own[3]], fate[own[5]] = ANSWERED_LATE, SILENT, ANSWERED_LATE
    row = next(rows(OF, with_slices(one, fate=fate)))
    assert (row["slices_kept"], row["slices_lost"]) == (12, "answered late:2 silent:1")
    assert row["throughput_hz"] == pytest.approx(3000 / (12 * 0.02))


def test_what_was_not_measured_is_an_empty_cell() -> None:
    """A value that was not measured is an empty cell. Values of windows are their maximum or their sum."""
    one = replace(block(OF, MEANS), servers=[])
    line = next(csv.DictReader(io.StringIO(table(OF, [one]))))
    assert (line["server_threads"], line["late_us_p99"]) == ("", "")
    zeros = [0] * len(one.slices.arm)
    unread = next(rows(OF, with_slices(one, client_cpu_ns=zeros, server_cpu_ns=zeros, wire_bytes=zeros)))
    assert [unread[name] for name in ("client_cpu_share", "server_cpu_us", "wire_bytes")] == [None] * 3
    late = [Window(10.0, 10.0, 10.0, 2, 0, 7.0), Window(10.0, 10.0, 10.0, 1, 0, 9.0)]
    row = next(rows(OF, with_arm(one, 0, windows=late)))
    assert (row["late_us_p99"], row["starved_clients"]) == (9.0, 3)
