"""Cells: quantities are what their names say; verdicts need clear blocks, all of them, and none that was robbed."""

import math
import random
from dataclasses import replace
from functools import partial

import pytest

from experiments.design.cells import Cell, CellRatio
from experiments.judge.cells import QUANTITIES, judge_cells
from experiments.results.cells import CellSeen
from experiments.results.observed import RoundSeen
from tests.unit.experiments.cells_seen import FEW, MANY, RATIO, SEEN, block, plan, slower


def test_quantities() -> None:
    """Of one cell, each in its unit."""
    of = plan()
    found = {name: quantity(block(1, of), SEEN) for name, quantity in QUANTITIES.items()}
    assert found == pytest.approx(
        {
            "cpu_percent": 30.0,
            "cpu_percent_max": 50.0,
            "memory_percent": 2.0,
            "memory_percent_max": 3.0,
            "memory_mib": 20.0,
            "total_s": 0.5,
            "response_ms": 1.0,
            "received_kb_s": 20.0,
            "sent_kb_s": 10.0,
            "connect_ms": 0.4,
            "processing_ms": 0.6,
            "cpu_us": 2000.0,
            "client_percent": 20.0,
            "throughput_hz": 200.0,
        }
    )


@pytest.mark.parametrize(("factor", "verdict"), [(2.0, "MORE"), (0.5, "LESS"), (1.0, "SAME")])
def test_a_verdict_is_of_the_blocks(factor: float, verdict: str, rng: random.Random) -> None:
    """Ten that agree to a per cent."""
    of = plan(10)
    noisy = [factor * math.exp(rng.gauss(0, 0.01)) for _ in range(10)]
    blocks = [block(number, of, partial(slower, by=by)) for number, by in enumerate(noisy, 1)]
    one = judge_cells(of, blocks).judged["pool"]
    assert one.verdict == verdict
    assert one.seen.low < factor * 1.02
    assert one.seen.high > factor * 0.98
    assert one.seen.n == 10


def test_too_few_blocks_have_no_verdict() -> None:
    """Not all that were planned, or fewer than a test can decide by; the ratio is shown."""
    of = plan(7)
    blocks = [block(number, of, lambda cell: slower(cell, 2.0)) for number in range(1, 7)]
    assert judge_cells(of, blocks).judged["pool"].verdict is None
    assert judge_cells(plan(5), blocks[:5]).judged["pool"].verdict is None
    assert judge_cells(plan(6), blocks).judged["pool"].verdict == "MORE"
    assert judge_cells(of, []).judged == {}


def test_a_family_is_corrected_together() -> None:
    """Six blocks decide one test, and no test of a family of two."""
    other = CellRatio("other", "the other way", (FEW,), (MANY,), "response_ms")
    of = plan(6, (RATIO, other))
    blocks = [block(number, of, lambda cell: slower(cell, 2.0)) for number in range(1, 7)]
    assert {each.verdict for each in judge_cells(of, blocks).judged.values()} == {"INCONCLUSIVE"}
    apart = plan(6, (RATIO, replace(other, family="apart")))
    assert [each.verdict for each in judge_cells(apart, blocks).judged.values()] == ["MORE", "LESS"]


def test_a_robbed_cell_is_left_out() -> None:
    """Of its means and of its pairs, whatever it says."""
    of = plan(6)

    def seen(cell: Cell, number: int) -> CellSeen:
        return replace(slower(cell, 2.0), machine=RoundSeen(1.0, 100 if number == 3 else 0))

    blocks = [block(number, of, partial(seen, number=number)) for number in range(1, 7)]
    judged = judge_cells(of, blocks)
    assert list(judged.judged["pool"].log_ratios) == [1, 2, 4, 5, 6]
    assert len(judged.values(MANY, "response_ms")) == 5
