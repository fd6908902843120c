"""Measurements of the study by name: comparisons and points of its sweeps, ratios and costs from its cold runs.

A cold run is a fresh client that makes N calls on a fresh connection. The original connected before its loop on
net/rpc, and inside its first timed call on gRPC. So the mean of a cold run has two readings: with the time of
connecting, and without this time. In the original's reading a mean on gRPC includes connecting, and a mean on net/rpc
does not. A cell is a mechanism, an algorithm and an N. A ratio is computed from the means of two cells in one block;
the interval of the ratio is over the blocks. The functions are pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from experiments.design.setting import Setting
from experiments.judge.cold import ColdJudged, OneOff, cell_interval, one_off, paid_once
from experiments.judge.points import Point, points
from experiments.judge.stats import Estimate, geometric_interval
from experiments.judge.verdicts import Judged, Judgement
from experiments.kinds.cold import ColdRow
from experiments.results.observed import ALL
from experiments.show.content import Seen
from experiments.show.sentences import listed, ratio_sentence
from experiments.studies.sort.design import ALGORITHMS, CALLS, MECHANISMS, MERGE, QUICK, go

NO_GO = "Go's servers were not measured here: `make peers` builds them."

CONFIDENCE = 0.99
"""Confidence level of the ratios of cold runs. The level is high, since several ratios of the same runs decide claims.
The intervals of means and fits have 95 %, as elsewhere."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of a part: its sweeps, and the rows of its cold runs."""

    parts: Mapping[str, Judgement]
    """Judgements of the part's sweep and of the sweeps that were measured after this sweep, by the parts' names."""
    judged: Mapping[str, Judged]
    """Comparisons that have a value, of all sweeps, by name."""
    points: Mapping[Setting, Point]
    """Points of all sweeps, by setting. The second server of an A/A pair has no point."""
    cold: tuple[ColdRow, ...]
    """Rows of the cold runs."""
    cold_whole: bool
    """True where all planned blocks of the cold runs were measured."""

    @property
    def has_go(self) -> bool:
        """True where servers in Go were measured."""
        return any(arm.setting["language"] == "go" for each in self.parts.values() for arm in each.sweep.arms)

    def found(self, *names: str) -> tuple[Judged, ...]:
        """Comparisons with these names that have a value."""
        return tuple(self.judged[name] for name in names if name in self.judged)

    def told(self, name: str, above: str, below: str) -> str:
        """Sentence on a comparison; the verdict decides the words. ``above`` and ``below``: words for
        the two arms in the sentence."""
        judged = self.judged.get(name)
        return f"Not known: {above}, compared with {below}." if judged is None else ratio_sentence(judged, above, below)

    def brief(self, *names: str) -> str:
        """Text that lists comparisons: title, numbers and verdict of each comparison that has a value. Without any such
        comparison, the text says why."""
        return (
            " ".join(map(listed, self.found(*names))) or "No two neighbouring windows of this comparison have replies."
        )


def measured(seen: Seen) -> Measured:
    """Measurements of a part and of the parts measured after it."""
    parts = {seen.main.sweep.part: seen.main, **seen.after}
    judged = {name: each for judgement in parts.values() for name, each in judgement.judged.items()}
    cold = seen.of(ColdJudged) or ColdJudged()
    found = (each for judgement in parts.values() for each in points(judgement.sweep, judgement.blocks).items())
    of_all = {arm.setting: point for (arm, request), point in found if request == ALL and not arm.copy}
    return Measured(parts, judged, of_all, tuple(cold.rows), cold.is_whole)


@dataclass(frozen=True, slots=True)
class Paid:
    """One-off cost of a cold run on a mechanism with an algorithm: from a fit, and measured directly."""

    fit: OneOff
    """Fit mean(N) = a + b ÷ N. Here a is the cost of a call, and b is the one-off cost of a run."""
    seen_us: Estimate
    """One-off cost of a run in µs, measured directly instead of fitted."""


def as_original(mechanism: str) -> bool:
    """True where the original's times on this mechanism include connecting."""
    return mechanism == "grpc"


def _column(with_connect: bool) -> str:
    """Name of the column of ``ColdRow`` that has the mean, with connecting or without connecting."""
    return "with_connect_us" if with_connect else "mean_us"


def mean(rows: Sequence[ColdRow], mechanism: str, algorithm: str, calls: int, with_connect: bool) -> Estimate | None:
    """Mean time of a call in a cell over the blocks, in µs. None where the cell was not measured. ``with_connect``:
    True where the mean includes the time of connecting."""
    of = go(mechanism, algorithm)
    cell = next((row.cell for row in rows if row.cell.setting == of and row.cell.calls == calls), None)
    return None if cell is None else cell_interval(rows, cell, _column(with_connect))


def paid(rows: Sequence[ColdRow], mechanism: str, algorithm: str, with_connect: bool) -> Paid | None:
    """One-off cost of a mechanism with an algorithm: from the fit a + b ÷ N, and measured directly. None where too
    little was measured. ``with_connect``: True where the means include the time of connecting."""
    of = go(mechanism, algorithm)
    fit, seen_us = one_off(rows, of, with_connect), paid_once(rows, of, with_connect)
    return None if fit is None or seen_us is None else Paid(fit, seen_us)


def algorithms_ratio(rows: Sequence[ColdRow], mechanism: str, calls: int) -> Estimate | None:
    """Ratio of means, merge sort ÷ quicksort, in cold runs of ``calls`` calls. The means include connecting where the
    original's times do. Each run has its own connection."""
    column = _column(as_original(mechanism))
    return _ratio(*(_by_block(rows, go(mechanism, each), calls, column) for each in (MERGE, QUICK)))


def mechanisms_ratio(rows: Sequence[ColdRow], algorithm: str, calls: int, connecting: bool) -> Estimate | None:
    """Ratio of means, gRPC ÷ net/rpc, in cold runs of ``calls`` calls. With ``connecting`` gRPC's mean includes
    connecting, as the original's mean did. The mean on net/rpc never includes connecting."""
    above, below = (go(mechanism, algorithm) for mechanism in MECHANISMS)
    return _ratio(_by_block(rows, above, calls, _column(connecting)), _by_block(rows, below, calls, _column(False)))


def calls_ratio(rows: Sequence[ColdRow], mechanism: str, algorithm: str, few: int, many: int) -> Estimate | None:
    """Mean in runs of ``few`` calls ÷ mean in runs of ``many`` calls. The means include connecting where the original's
    times do."""
    column = _column(as_original(mechanism))
    return _ratio(*(_by_block(rows, go(mechanism, algorithm), calls, column) for calls in (few, many)))


def first_over_rest(rows: Sequence[ColdRow], mechanism: str, algorithm: str) -> Estimate | None:
    """Ratio of the first call's time to the mean time of the other calls of a run, without the time of connecting. The
    value of a block is the geometric mean over all runs."""
    by_block: dict[int, list[float]] = {}
    for row in rows:
        if row.cell.setting == go(mechanism, algorithm) and row.rest_us_mean and row.first_call_us:
            by_block.setdefault(row.block, []).append(row.first_call_us / row.rest_us_mean)
    return geometric_interval(map(geometric_mean, by_block.values()), CONFIDENCE)


def first_pays(rows: Sequence[ColdRow], mechanism: str) -> Estimate | None:
    """Ratio: mean time of a connection's first 100 calls ÷ mean time of its next 900 calls. The value of a block is the
    geometric mean over both algorithms.

    The ratio shows the disadvantage of the algorithm that runs first on a connection. The time of the 900 calls is the
    difference between the runs of 1,000 calls and of 100 calls in one block.
    """
    few, more, _ = CALLS
    column, by_block = _column(as_original(mechanism)), dict[int, list[float]]()
    for algorithm in ALGORITHMS:
        first, all_ = (_by_block(rows, go(mechanism, algorithm), calls, column) for calls in (few, more))
        for block in sorted(first.keys() & all_.keys()):
            later_us = (more * all_[block] - few * first[block]) / (more - few)
            if later_us > 0:
                by_block.setdefault(block, []).append(first[block] / later_us)
    return geometric_interval(map(geometric_mean, by_block.values()), CONFIDENCE)


def _by_block(rows: Sequence[ColdRow], of: Setting, calls: int, column: str) -> dict[int, float]:
    """Values of a column of ``ColdRow`` for a cell, by the number of the block."""
    return {row.block: getattr(row, column) for row in rows if row.cell.setting == of and row.cell.calls == calls}


def _ratio(above: Mapping[int, float], below: Mapping[int, float]) -> Estimate | None:
    """Ratio of two means, above ÷ below, over the blocks that have both means. None without such a block."""
    return geometric_interval((above[at] / below[at] for at in sorted(above.keys() & below.keys())), CONFIDENCE)
