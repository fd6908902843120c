"""Receivers' reports over blocks: means, ratios of the same blocks, and their files."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.design.setting import setting
from experiments.judge.delivery import interval, judged, ratios
from experiments.kinds import KINDS
from experiments.kinds.block import Block
from experiments.kinds.delivery import Delivered, DeliveryCell, DeliveryPlan, DeliveryRow
from experiments.results.observed import RoundSeen
from tests.unit.experiments.apart_seen import block_of, keep
from tests.unit.experiments.known import known

ONE, OTHER = (setting(service="echo", language="c", transport=each, client="peer") for each in ("nng", "zeromq"))
PLAN = DeliveryPlan("study", "part", (DeliveryCell(ONE, 2), DeliveryCell(OTHER, 2)), 8)


def block(number: int, messages: tuple[int, int], stolen: int = 0) -> Block[Delivered]:
    """Block in which two receivers get this number of messages a second. The first run lost this number of ticks."""
    told = [Delivered((each, each), 10, 50_000, 330_000, 10, 100_000) for each in messages]
    found = block_of(number, told)
    first, *others = found.runs
    return replace(found, runs=(replace(first, machine=RoundSeen(1.0, stolen)), *others))


def hz(row: DeliveryRow) -> float:
    """Messages a second."""
    return row.received_hz


def test_a_row_has_the_receivers_times_and_the_senders() -> None:
    """A row has means over the messages, in µs, of the receiver and of the sender."""
    row = judged(PLAN, [block(1, (200, 100))]).rows[0]
    assert (row.received_hz, row.seconds) == (200, (200, 200))
    assert (row.answer_us, row.cycle_us, row.response_us) == (5, 33, 10)


def test_a_ratio_is_of_the_same_blocks() -> None:
    """A ratio is of the same blocks. A run that was robbed of time is in no ratio."""
    blocks = [block(number, (200 + number, 100), stolen=100 if number == 8 else 0) for number in range(1, 9)]
    rows = judged(PLAN, blocks).rows
    (ratio,) = ratios(rows, [(ONE, OTHER)], hz)
    assert ratio.ratio.n == 7
    assert ratio.ratio.value == pytest.approx(math.exp(sum(math.log(2 + n / 100) for n in range(1, 8)) / 7))
    assert ratio.differs
    (of_two,) = ratios(rows, [(ONE, OTHER), (ONE, ONE.but(size=100))], hz)
    assert (of_two.p_holm, of_two.together.n) == (2 * ratio.p_holm, 7), "a pair without a block is in the family"
    assert of_two.together.high > of_two.ratio.high == ratio.ratio.high == ratio.together.high
    alone = known(interval(rows, OTHER, hz))
    assert alone.value == pytest.approx(100)
    assert alone.n == 8


def test_equal_ones_do_not_differ() -> None:
    """Blocks that point either way show no difference."""
    rows = judged(PLAN, [block(number, (100 + 5 * (-1) ** number, 100)) for number in range(1, 9)]).rows
    assert not ratios(rows, [(ONE, OTHER)], hz)[0].differs
    assert ratios(rows, [(ONE, ONE.but(size=100))], hz) == ()
    assert interval(rows, ONE.but(size=100), hz) is None


def test_blocks_are_kept_as_they_were(tmp_path: Path) -> None:
    """Blocks are read as they were written, with their plan."""
    seen = (block(1, (200, 100)), block(2, (201, 99)))
    keep(tmp_path, PLAN, seen)
    assert KINDS["delivery"].load(tmp_path) == (PLAN, seen)
