"""Cells: quantities in their units. Verdicts need all planned blocks, and cells that were not robbed."""

import math
import random
from dataclasses import replace
from functools import partial

import pytest

from experiments.judge.table import QUANTITIES, judged
from experiments.judge.verdicts import Verdict
from experiments.kinds.table import Cell, CellRatio, CellSeen
from experiments.results.observed import RoundSeen
from tests.unit.experiments.cells_seen import FEW, MANY, RATIO, SEEN, block, plan, slower


def test_quantities() -> None:
    """Quantities of one cell, each in its unit."""
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


@pytest.mark.parametrize(("factor", "verdict"), [(2.0, Verdict.MORE), (0.5, Verdict.LESS), (1.0, Verdict.EQUIVALENT)])
def test_a_verdict_is_of_the_blocks(factor: float, verdict: Verdict, rng: random.Random) -> None:
    """Ten blocks that agree to a per cent give a verdict. The noise is symmetric, so that equal cells are not different
    by chance."""
    of = plan(10)
    drawn = [rng.gauss(0, 0.01) for _ in range(5)]
    noisy = [factor * math.exp(sign * each) for each in drawn for sign in (1, -1)]
    blocks = [block(number, of, partial(slower, by=by)) for number, by in enumerate(noisy, 1)]
    one = judged(of, blocks).judged["pool"]
    assert one.verdict is verdict
    assert one.seen.low < factor * 1.02
    assert one.seen.high > factor * 0.98
    assert one.seen.n == 10


def test_too_few_blocks_have_no_verdict() -> None:
    """Fewer blocks than planned, or than a test needs, give no verdict. The ratio is shown."""
    of = plan(7)
    blocks = [block(number, of, lambda cell: slower(cell, 2.0)) for number in range(1, 7)]
    assert judged(of, blocks).judged["pool"].verdict is None
    assert judged(plan(5), blocks[:5]).judged["pool"].verdict is None
    assert judged(plan(6), blocks).judged["pool"].verdict is Verdict.MORE
    assert judged(of, []).judged == {}


def test_a_family_is_corrected_together() -> None:
    """Six blocks decide one test, and no test of a family of two."""
    other = CellRatio("other", "the other way", (0,), (1,), "response_ms")
    of = plan(6, (RATIO, other))
    blocks = [block(number, of, lambda cell: slower(cell, 2.0)) for number in range(1, 7)]
    assert {each.verdict for each in judged(of, blocks).judged.values()} == {Verdict.INCONCLUSIVE}
    apart = plan(6, (RATIO, replace(other, family="apart")))
    assert [each.verdict for each in judged(apart, blocks).judged.values()] == [Verdict.MORE, Verdict.LESS]


def test_a_robbed_cell_is_left_out() -> None:
    """A robbed cell is left out of its means and its pairs, for any value."""
    of, seen = plan(6), partial(slower, by=2.0)
    blocks = [block(number, of, seen, RoundSeen(1.0, 100 if number == 3 else 0)) for number in range(1, 7)]
    found = judged(of, blocks)
    assert found.judged["pool"].seen.n == 5
    assert found.judged["pool"].verdict is None, "five values are too few, though there are six blocks"
    assert len(found.values(MANY, "response_ms")) == 5


def test_a_cell_with_errors_is_left_out() -> None:
    """A cell is left out of its means and its pairs if over one in a thousand requests of the load failed."""
    of = plan(7)

    def seen(cell: Cell, number: int) -> CellSeen:
        errors = {2: 1, 3: 2}.get(number, 0) if cell == FEW else 0
        return replace(slower(cell, 2.0), load_requests=1000 - errors, errors=errors)

    found = judged(of, [block(number, of, partial(seen, number=number)) for number in range(1, 8)])
    assert found.judged["pool"].seen.n == 6
    assert len(found.values(FEW, "response_ms")) == 6
    assert found.errors(FEW) == 3


def test_times_of_a_load_near_its_limit_are_never_the_same() -> None:
    """Times under a load near its limit are never EQUIVALENT. Processor time a request can be EQUIVALENT."""
    of = plan(10, (RATIO, replace(RATIO, name="cpu", quantity="cpu_us", family="cpu")))

    def seen(cell: Cell, share: float) -> CellSeen:
        return replace(SEEN, client_cpu_s=SEEN.load_s * (share if cell == FEW else 0.5))

    for share, verdict in ((0.79, Verdict.EQUIVALENT), (0.81, Verdict.INCONCLUSIVE)):
        found = judged(of, [block(number, of, partial(seen, share=share)) for number in range(1, 11)])
        assert found.is_load_limited(FEW) == found.judged["pool"].load_limited == (share > 0.8)
        assert (found.judged["pool"].verdict, found.judged["cpu"].verdict) == (verdict, Verdict.EQUIVALENT)


def test_few_samples_have_no_maximum() -> None:
    """Too few samples have no maximum of processor and memory. One such block is enough."""
    of = plan(2)
    short = replace(SEEN, cpu_samples=SEEN.cpu_samples[:4], memory_samples_mib=SEEN.memory_samples_mib[:4])
    found = judged(of, [block(1, of), block(2, of, lambda cell: short if cell == FEW else SEEN)])
    for quantity in ("cpu_percent_max", "memory_percent_max"):
        assert found.estimate(FEW, quantity) is None
        assert len(found.values(MANY, quantity)) == 2
    assert len(found.values(FEW, "cpu_percent")) == 2
    none = replace(SEEN, sampled_s=0.0, sampled_cpu_s=0.0, cpu_samples=(), memory_samples_mib=())
    found = judged(of, [block(1, of, lambda _: none)])
    assert (found.estimate(FEW, "memory_mib"), found.values(FEW, "cpu_percent")) == (None, [30.0])
