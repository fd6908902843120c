"""Stress: a kind is measured over its own time, the total over all time. Errors and wrong keys are counted."""

from dataclasses import replace

import pytest

from experiments.judge.stress import TOTAL, judged
from experiments.kinds.stress import KindSeen, StressSeen
from tests.unit.experiments.apart_seen import block_of
from tests.unit.experiments.known import known
from tests.unit.experiments.stress_seen import PLAN, SERVER, repetition


def test_rows_and_total() -> None:
    """A KB has 1024 bytes. The total is from the first request of any kind to the last one."""
    found = judged(PLAN, [repetition(1)])
    rows = {row.kind: row for row in found.rows}
    assert list(rows) == ["new", "update", TOTAL]
    assert (rows["new"].throughput_hz.value, rows["update"].throughput_hz.value) == (20, 20)
    total = rows[TOTAL]
    assert (total.samples, total.errors) == (60, 0)
    assert (total.throughput_hz.value, total.received_kb_s.value, total.sent_kb_s.value) == pytest.approx((30, 3, 6))
    assert (found.right[SERVER], found.wrong[SERVER]) == (40, 0)


def test_errors_and_wrong_keys_add_up_over_repetitions() -> None:
    """Errors and wrong keys add up over repetitions, and an error is a sample."""
    found = judged(PLAN, [repetition(1, errors=3), repetition(2, wrong=2)])
    total = known(found.row(SERVER, TOTAL))
    assert (total.samples, total.errors) == (120, 3)
    assert (found.right[SERVER], found.wrong[SERVER]) == (78, 2)
    assert total.throughput_hz.n == 2


def test_a_kind_without_an_answer_has_no_time() -> None:
    """A kind without an answer does not make the total longer. The errors count."""
    seen = repetition(1)
    server = seen.runs[0].seen
    late = replace(server.kinds[0], began_ns=5_000_000_000, ended_ns=6_000_000_000)
    none = KindSeen(0, 40, 0, 0, 0, 0)
    found = judged(PLAN, [block_of(1, (StressSeen((late, none), server.final),))])
    total, update = (known(found.row(SERVER, kind)) for kind in (TOTAL, "update"))
    assert total.throughput_hz.value == pytest.approx(20)
    assert (total.errors, update.throughput_hz.value) == (40, 0)
