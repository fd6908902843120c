"""The cold runs, as the study reads them: means by cell in two readings, the fit a + b ÷ N, and ratios of cells.

The original connected before its loop on net/rpc, and inside its first timed call on gRPC. So in the original's reading
the mean of a gRPC run includes connecting, and the mean of a net/rpc run does not. In the other reading both connect
before the loop. A ratio is computed from two means of a block; its interval is over the blocks. Pure.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.design.setting import Setting
from experiments.judge.cold import OneOff, cell_interval, one_off, paid_once
from experiments.judge.stats import Estimate, ratio_interval
from experiments.kinds.cold import ColdRow
from experiments.studies.sort.design import ALGORITHMS, CALLS, MECHANISMS, MERGE, QUICK, go

CONFIDENCE = 0.99
"""Confidence of the ratios that decide claims: several are asked of the same runs. Means and fits have 95 %, as
elsewhere."""

BLOCKS_MIN = 6
"""Least number of blocks that decides a claim, as in a sweep."""


@dataclass(frozen=True, slots=True)
class Paid:
    """Cost of a mechanism's calls with an algorithm, and the cost that a run pays once."""

    mechanism: str
    algorithm: str
    with_connect: bool
    fit: OneOff
    seen_us: Estimate
    """One-off cost of a run, as it was timed and not fitted."""


def as_original(mechanism: str) -> bool:
    """True where connecting is within the original's times."""
    return mechanism == "grpc"


def column(with_connect: bool) -> str:
    """Name of the column of a cell's mean, with connecting in it or without."""
    return "with_connect_us" if with_connect else "mean_us"


def mean(rows: Sequence[ColdRow], mechanism: str, algorithm: str, calls: int, with_connect: bool) -> Estimate | None:
    """The mean of a cell over the blocks, µs, in a reading; None where it was not measured."""
    cell = next((row.cell for row in rows if _is(row, go(mechanism, algorithm), calls)), None)
    return None if cell is None else cell_interval(rows, cell, column(with_connect))


def paid(rows: Sequence[ColdRow], mechanism: str, algorithm: str, with_connect: bool) -> Paid | None:
    """The fit, and the timed cost; None where too little was measured."""
    of = go(mechanism, algorithm)
    fit, seen_us = one_off(rows, of, with_connect), paid_once(rows, of, with_connect)
    if fit is None or seen_us is None:
        return None
    return Paid(mechanism, algorithm, with_connect, fit, seen_us)


def algorithms_ratio(rows: Sequence[ColdRow], mechanism: str, calls: int) -> Estimate | None:
    """Merge sort ÷ quicksort in runs of this number of calls, each on a connection of its own, in the original's
    reading."""
    name = column(as_original(mechanism))
    return _ratio(rows, (go(mechanism, MERGE), calls, name), (go(mechanism, QUICK), calls, name))


def mechanisms_ratio(rows: Sequence[ColdRow], algorithm: str, calls: int, connecting: bool) -> Estimate | None:
    """gRPC ÷ net/rpc in runs of this number of calls. With ``connecting`` gRPC's mean includes connecting, as the
    original's did."""
    above, below = (go(mechanism, algorithm) for mechanism in MECHANISMS)
    return _ratio(rows, (above, calls, column(connecting)), (below, calls, "mean_us"))


def calls_ratio(rows: Sequence[ColdRow], mechanism: str, algorithm: str, few: int, many: int) -> Estimate | None:
    """The mean of a few calls ÷ that of many, in the original's reading."""
    name, of = column(as_original(mechanism)), go(mechanism, algorithm)
    return _ratio(rows, (of, few, name), (of, many, name))


def first_over_rest(rows: Sequence[ColdRow], mechanism: str, algorithm: str) -> Estimate | None:
    """The first call ÷ the mean of the other calls of its run, on a connection that was made before. A block's value is
    over its N."""
    by_block: dict[int, list[float]] = {}
    for row in rows:
        if row.cell.setting == go(mechanism, algorithm) and row.rest_us_mean and row.first_call_us:
            by_block.setdefault(row.block, []).append(math.log(row.first_call_us / row.rest_us_mean))
    logs = [sum(each) / len(each) for each in by_block.values()]
    return ratio_interval(logs, CONFIDENCE) if logs else None


def first_pays(rows: Sequence[ColdRow], mechanism: str) -> Estimate | None:
    """The mean of a connection's first 100 calls ÷ the mean of its next 900, of both algorithms together. This is the
    cost of running first, beside running second on the same connection. The 900 calls are the difference between runs
    of 1,000 and of 100 calls in the same block."""
    few, more, _ = CALLS
    name = column(as_original(mechanism))
    by_block: dict[int, dict[tuple[Setting, int], float]] = {}
    for row in rows:
        if any(row.cell.setting == go(mechanism, each) for each in ALGORITHMS):
            by_block.setdefault(row.block, {})[row.cell.setting, row.cell.calls] = getattr(row, name)
    means = []
    for seen in by_block.values():
        logs = [
            math.log(first / later)
            for each in ALGORITHMS
            for first, all_ in ((seen.get((go(mechanism, each), few)), seen.get((go(mechanism, each), more))),)
            if first is not None and all_ is not None and (later := (more * all_ - few * first) / (more - few)) > 0
        ]
        means += [sum(logs) / len(logs)] if logs else []
    return ratio_interval(means, CONFIDENCE) if means else None


_Cell = tuple[Setting, int, str]


def _ratio(rows: Sequence[ColdRow], above: _Cell, below: _Cell) -> Estimate | None:
    """Ratio of two cells' means in the same blocks."""
    values = []
    for of, calls, name in (above, below):
        values.append({row.block: float(getattr(row, name)) for row in rows if _is(row, of, calls)})
    shared = sorted(values[0].keys() & values[1].keys())
    logs = [math.log(values[0][block] / values[1][block]) for block in shared]
    return ratio_interval(logs, CONFIDENCE) if logs else None


def _is(row: ColdRow, of: Setting, calls: int) -> bool:
    return row.cell.setting == of and row.cell.calls == calls
