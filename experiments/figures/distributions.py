"""How response times are distributed: percentiles towards the tail, and the share answered within a time beside them.

Rules: a line is the percentiles of all its runs' responses together, from merged counts, never a mean of percentiles;
it is drawn only where in every run ``BEYOND`` effective responses lie on either side of a percentile, since fewer carry
none, and what no table gives of the runs is not to be had by pooling them; the band reaches from the lowest run to the
highest. For a continuous quantity the extremes of n independent runs hold the median run with a confidence of
1 − 2^(1−n), whatever the distribution (David and Nagaraja, "Order Statistics", 7.1).
Percentiles are spaced by 1 ÷ (1 − p), so that every further nine takes as much room. Left out: counting, merging of
one run's clients, and how many of autocorrelated responses are effective.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import NDArray

from experiments.figures.captions import framed
from experiments.figures.style import (
    FAINT,
    QUIET,
    REFUSED_MARK,
    Stroke,
    log_ticks,
    set_log_ticks,
    span_unit,
    strokes,
    three_digits,
    time_unit,
)

BEYOND = 10
"""So many effective responses must lie beyond a percentile; the 99th needs 1,000 for it, as everywhere here."""

LABELLED = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
"""The percentiles that are marked and labelled, as shares."""

_BODY_INCHES = 2.45
_PER_DECADE = 60
"""Points drawn for each factor of ten in 1 ÷ (1 − p)."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run's responses, counted, of all its clients together."""

    value_us: tuple[float, ...]
    """Response times, over 0, ascending: where the count rises."""
    count: tuple[int, ...]
    """How many responses took at most so long; the last is how many there are."""
    effective_n: float
    """Independent responses that the run is worth: at most its count, fewer where they are autocorrelated."""


@dataclass(frozen=True, slots=True)
class Line:
    """One setting of one server, over all its runs."""

    label: str
    """For the legend, such as ``gRPC, Lookup``."""
    transport: str
    request: str
    runs: tuple[Run, ...]
    """At least one."""
    refused: bool = False
    """Any of the runs, by a gate."""

    @property
    def name(self) -> str:
        """The label, with the mark of what gates refuse."""
        return f"{self.label} {REFUSED_MARK}" if self.refused else self.label


Shares = NDArray[np.float64]


def percentiles_us(runs: Sequence[Run], shares: Shares) -> Shares:
    """For each share (0 to 1) the time in µs that it of the runs' responses, taken together, stayed within."""
    values = np.unique(np.concatenate([run.value_us for run in runs]))
    counts = np.zeros(len(values))
    for run in runs:
        upto = np.searchsorted(np.asarray(run.value_us), values, side="right")
        counts += np.concatenate(([0], run.count))[upto]
    # A share of the total is a product of floats, and must not slip past a count that it equals.
    wanted = shares * counts[-1] * (1 - 1e-12)
    return np.asarray(values[np.searchsorted(counts, wanted).clip(max=len(values) - 1)])


def carried(effective_n: float) -> tuple[float, float] | None:
    """The lowest and the highest share that a sample carries; None if not even the median."""
    edge = BEYOND / effective_n if effective_n > 0 else 1.0
    return (edge, 1 - edge) if edge <= 0.5 else None


def draw_distributions(title: str, lines: Sequence[Line]) -> Figure:
    """The percentile curves on the left, the share answered within a time on the right."""
    looks = strokes([(line.transport, line.request) for line in lines])
    drawn = [(line, stroke) for line, stroke in zip(lines, looks, strict=True) if _carried(line.runs)]
    frame = framed(title, _BODY_INCHES, _sentences(lines), [_entry(line, stroke) for line, stroke in drawn])
    grid = frame.figure.add_gridspec(
        1, 2, width_ratios=(1.7, 1), left=0.085, right=0.985, top=frame.top, bottom=frame.bottom, wspace=0.16
    )
    curve, ecdf = frame.figure.add_subplot(grid[0, 0]), frame.figure.add_subplot(grid[0, 1])
    curves = [_curve(line.runs) for line, _ in drawn]
    unit, unit_us = span_unit([float(time) for _, times in curves for time in times])
    for (line, stroke), (shares, times) in zip(drawn, curves, strict=True):
        _draw_line(curve, stroke, shares, times / unit_us)
        _draw_band(curve, line, stroke, unit_us)
        ecdf.plot(times / unit_us, 100 * shares, color=stroke.colour, linestyle=stroke.dashes, zorder=3)
        median = float(percentiles_us(line.runs, np.array([0.5]))[0])
        ecdf.plot([median / unit_us], [50], marker=stroke.marker, color=stroke.colour, linestyle="", zorder=4)
    _set_curve_axes(curve, unit, [shares[-1] for shares, _ in curves])
    _set_ecdf_axes(ecdf, unit)
    if not drawn:
        _say_empty(curve)
        _say_empty(ecdf)
    return frame.figure


def _carried(runs: Sequence[Run]) -> tuple[float, float] | None:
    """As far as the smallest run carries, as in the tables."""
    return carried(min(run.effective_n for run in runs))


def _shares(edges: tuple[float, float]) -> Shares:
    low, high = edges
    ends = -np.log10(1 - np.array([low, high]))
    steps = np.linspace(ends[0], ends[1], max(2, int(_PER_DECADE * (ends[1] - ends[0]))))
    evenly = np.linspace(low, high, _PER_DECADE)  # for the lower half, which takes little of the percentiles' axis
    marked = [share for share in LABELLED if low < share < high]
    return np.unique(np.concatenate((1 - 10.0**-steps, evenly, marked)))


def _curve(runs: Sequence[Run]) -> tuple[Shares, Shares]:
    edges = _carried(runs)
    assert edges is not None, "only lines that carry a percentile are drawn"
    shares = _shares(edges)
    return shares, percentiles_us(runs, shares)


def _draw_line(axes: Axes, stroke: Stroke, shares: Shares, times: Shares) -> None:
    axes.plot(1 / (1 - shares), times, color=stroke.colour, linestyle=stroke.dashes, zorder=3)
    for share in LABELLED:
        if shares[0] <= share <= shares[-1]:
            at = int(np.searchsorted(shares, share))
            axes.plot([1 / (1 - share)], [times[at]], marker=stroke.marker, color=stroke.colour, linestyle="", zorder=4)


def _draw_band(axes: Axes, line: Line, stroke: Stroke, unit_us: float) -> None:
    edges = _carried(line.runs)
    if len(line.runs) < 2 or edges is None:
        return
    shares = _shares(edges)
    each = np.array([percentiles_us([run], shares) for run in line.runs]) / unit_us
    low, high = each.min(axis=0), each.max(axis=0)
    axes.fill_between(1 / (1 - shares), low, high, color=stroke.colour, alpha=0.17, linewidth=0, zorder=2)


def _set_curve_axes(axes: Axes, unit: str, reached: Sequence[float]) -> None:
    farthest = max([1 / (1 - share) for share in reached] + [100.0])
    axes.set_xscale("log")
    axes.set_xlim(1, farthest * 1.25)
    marked = [share for share in LABELLED if 1 / (1 - share) <= farthest * 1.01]
    axes.xaxis.set_major_locator(FixedLocator([1 / (1 - share) for share in marked]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{100 * share:.6g}" for share in marked])
    axes.grid(visible=True, axis="both", color=FAINT)
    axes.set_xlabel("Percentile, %")
    axes.set_ylabel(f"Response time, {unit}")
    axes.set_title("percentiles")
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    set_log_ticks(axes.yaxis, log_ticks(low, high, _BODY_INCHES, 0.22))


def _set_ecdf_axes(axes: Axes, unit: str) -> None:
    axes.set_xscale("log")
    axes.set_ylim(0, 102)
    axes.yaxis.set_major_locator(FixedLocator([0, 25, 50, 75, 100]))
    low, high = axes.get_xlim()
    set_log_ticks(axes.xaxis, log_ticks(low, high, 2.2, 0.36))
    axes.set_xlabel(f"Response time, {unit}")
    axes.set_title("answered within, %")


def _say_empty(axes: Axes) -> None:
    axes.grid(visible=False)
    axes.set_xticks([])
    axes.set_yticks([])
    note = f"no line with {2 * BEYOND} effective responses"
    axes.text(0.5, 0.5, note, transform=axes.transAxes, color=QUIET, fontsize=7, ha="center")


def _entry(line: Line, stroke: Stroke) -> Line2D:
    return Line2D([], [], color=stroke.colour, marker=stroke.marker, linestyle=stroke.dashes, label=line.name)


def _sentences(lines: Sequence[Line]) -> Iterator[str]:
    yield (
        "Lines: percentiles of all runs’ responses taken together, drawn where in every run at least "
        f"{BEYOND} effective (independent) responses lie on either side."
    )
    numbers = sorted({len(line.runs) for line in lines if _carried(line.runs)})
    if numbers and numbers[-1] > 1:
        fewest = next(number for number in numbers if number > 1)
        runs = f"{fewest} runs" if fewest == numbers[-1] else f"{fewest} to {numbers[-1]} runs"
        sure = 100 * (1 - 2.0 ** (1 - fewest))
        yield (
            f"Bands: from the lowest of {runs} to the highest; at each percentile "
            f"that range holds the median run with {sure:.3g} % confidence{' or more' if fewest < numbers[-1] else ''}."
        )
    if numbers and numbers[0] == 1:
        yield "No band: a single run."
    if any(line.refused for line in lines):
        yield f"{REFUSED_MARK} Refused by a gate, for some run or the whole sweep."
    missing = [line.label for line in lines if not _carried(line.runs)]
    if missing:
        yield f"Not drawn, a run of under {2 * BEYOND} effective responses: {'; '.join(missing)}."


def text_alternative(title: str, lines: Sequence[Line]) -> str:
    """What the picture shows: for every line its labelled percentiles, as far as they are carried."""
    return f"{title}. " + " ".join(_spoken(line) for line in lines)


def _spoken(line: Line) -> str:
    edges = _carried(line.runs)
    if edges is None:
        return f"{line.name}: a run of under {2 * BEYOND} effective responses, not drawn."
    shares = np.array([share for share in LABELLED if share <= edges[1]])
    texts = []
    for share, time_us in zip(shares, percentiles_us(line.runs, shares), strict=True):
        unit, unit_us = time_unit(float(time_us))
        texts.append(f"{100 * share:.6g} % within {three_digits(float(time_us) / unit_us)} {unit}")
    fewest = min(run.effective_n for run in line.runs)
    of_run = "" if len(line.runs) == 1 else " of the smallest run"
    return (
        f"{line.name}: {', '.join(texts)}; the {fewest:,.0f} effective responses{of_run} carry no further percentile."
    )
