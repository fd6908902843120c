"""Figures whose x axis is the number of clients: one panel per statistic, and per facet where there are several.

Rules: y starts at 0; panels of one statistic share their scale; a bar is the 95 % interval over runs; a hollow marker
means that the load side was the limit, so the latency is that of client and server together, or that a gate refuses
the runs; grey ticks are N ÷ throughput; a dotted line marks the pool where clients go past it. A bar wider than its
panel is cut at the panel's edge rather than allowed to flatten the lines. Left out: what is compared, which the table
in ``figures`` says.
"""

import math
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, Locator, MaxNLocator

from experiments.figures.captions import caption_lines, draw_caption, draw_title, legend_above
from experiments.figures.series import MEAN, MEDIAN, N_OVER_X, P99, P99_COUNT_MIN, Facet, Series, Statistic, by_clients
from experiments.figures.style import LINES, QUIET, WIDTH_INCHES, look
from experiments.results import Row

PANEL_INCHES = 1.75
"""The height of one row of panels in a grid; a single row is a little higher."""
HEAD_INCHES = 0.82
"""Room for title and legend."""
SHIFT = 0.09
"""Between lines, in clients, so that bars at the same number of clients stand side by side."""
CUT_AT = 2.0
"""A panel ends at this many times its highest point, however far the bars reach."""
TICKS_MAX = 10


def draw_single(title: str, facet: Facet) -> Figure:
    """One figure of the original: its axes on the left, the median and the 99th percentile beside it."""
    caption = caption_lines([facet], _without_p99([facet]))
    foot_inches = 0.52 + 0.155 * len(caption)
    figure, height = _canvas(HEAD_INCHES + 2.15 + foot_inches)
    grid = figure.add_gridspec(
        1,
        3,
        width_ratios=(1.7, 1, 1),
        left=0.09,
        right=0.985,
        top=1 - (HEAD_INCHES) / height,
        bottom=foot_inches / height,
        wspace=0.3,
    )
    mean, median, p99 = (figure.add_subplot(grid[0, column]) for column in range(3))
    for axes, statistic in ((mean, MEAN), (median, MEDIAN), (p99, P99)):
        _draw_panel(axes, facet, statistic)
        axes.set_title(statistic.title)
        axes.set_xlabel("Clients")
    mean.set_ylabel(MEAN.axis)
    top = max(mean.get_ylim()[1], median.get_ylim()[1])
    mean.set_ylim(0, top)
    median.set_ylim(0, top)
    if not by_clients(facet.rows, P99.of):
        p99.set_yticks([])  # a scale of nothing
    _finish(figure, title, facet.rows, caption)
    return figure


def draw_grid(title: str, facets: Sequence[Facet], statistics: Sequence[Statistic]) -> Figure:
    """A grid of panels: a column per facet, a row per statistic."""
    rows = [row for facet in facets for row in facet.rows]
    caption = caption_lines(facets, _without_p99(facets))
    foot_inches = 0.52 + 0.155 * len(caption)
    figure, height = _canvas(HEAD_INCHES + PANEL_INCHES * len(statistics) + foot_inches)
    grid = figure.add_gridspec(
        len(statistics),
        len(facets),
        left=0.105,
        right=0.985,
        top=1 - (HEAD_INCHES) / height,
        bottom=foot_inches / height,
        wspace=0.12,
        hspace=0.15,
    )
    for line, statistic in enumerate(statistics):
        panels = [figure.add_subplot(grid[line, column]) for column in range(len(facets))]
        for axes, facet in zip(panels, facets, strict=True):
            _draw_panel(axes, facet, statistic)
            if line == 0:
                axes.set_title(facet.title)
            if line == len(statistics) - 1:
                axes.set_xlabel("Clients")
            else:
                axes.tick_params(labelbottom=False)
        top = max(axes.get_ylim()[1] for axes in panels)
        for axes in panels:
            axes.set_ylim(0, top)
            axes.tick_params(labelleft=axes is panels[0])
        panels[0].set_ylabel(_row_label(statistic))
    _finish(figure, title, rows, caption)
    return figure


def _without_p99(facets: Sequence[Facet]) -> Iterator[str]:
    """Why some points of the 99th percentile are not there, where some are: a panel without any says it itself."""
    counts = [[sum(len(line.points) for line in by_clients(at.rows, each.of)) for each in (MEAN, P99)] for at in facets]
    if any(0 < found < means for means, found in counts):
        yield f"No point of the 99th percentile: under {P99_COUNT_MIN:,} independent replies in some run."


def _canvas(height_inches: float) -> tuple[Figure, float]:
    return Figure(figsize=(WIDTH_INCHES, height_inches)), height_inches


def _row_label(statistic: Statistic) -> str:
    if statistic.axis.startswith("Latency"):
        return f"{statistic.title.capitalize()}\n{statistic.axis.replace('Latency', 'latency')}"
    return statistic.axis


def _draw_panel(axes: Axes, facet: Facet, statistic: Statistic) -> None:
    rows = facet.rows
    lines = by_clients(rows, statistic.of, facet.refused)
    clients = sorted({row.clients for row in rows})
    shifts = [SHIFT * (index - (len(lines) - 1) / 2) for index in range(len(lines))]
    for line, shift in zip(lines, shifts, strict=True):
        _draw_line(axes, line, shift, clients)
    if statistic is MEAN:
        laws = by_clients(rows, N_OVER_X.of)
        for law, shift in zip(laws, shifts, strict=False):
            _draw_law(axes, law, shift)
        _limit(axes, lines, max((point.value for law in laws for point in law.points), default=0.0))
    else:
        _limit(axes, lines)
    if not lines and statistic is P99:
        note = f"under {P99_COUNT_MIN:,} independent\nreplies in some run"
        under = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        axes.text(0.5, 0.5, note, transform=axes.transAxes, color=QUIET, fontsize=7, ha="center", bbox=under)
    axes.set_xlim(clients[0] - 0.5, clients[-1] + 0.5)
    axes.xaxis.set_major_locator(_ticks(clients))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, min_n_ticks=2, steps=[1, 2, 2.5, 5, 10]))
    for workers in _pools_passed(rows):
        axes.axvline(workers, color=QUIET, linewidth=1, linestyle=(0, (1, 2)), zorder=1)


def _ticks(clients: list[int]) -> Locator:
    """Where something was measured, as far as numbers have room beside each other."""
    span = clients[-1] - clients[0]
    if span == len(clients) - 1:  # each number in turn
        return MaxNLocator(nbins=TICKS_MAX, integer=True, min_n_ticks=1)
    shown = clients[:1]
    for number in clients[1:]:
        if number - shown[-1] >= span / TICKS_MAX:
            shown.append(number)
    return FixedLocator(shown)


def _draw_line(axes: Axes, line: Series, shift: float, clients: Sequence[int]) -> None:
    """From point to point, but not across a number of ``clients`` where a point is missing."""
    style = look(line.transport)
    values = {point.x: point.value for point in line.points}
    xs, ys = [number + shift for number in clients], [values.get(number, math.nan) for number in clients]
    axes.plot(xs, ys, color=style.colour, linestyle=LINES.get(line.request, "-"), zorder=3)
    for point in line.points:
        x = point.x + shift
        if point.low is not None and point.high is not None:
            axes.vlines(x, max(point.low, 0), point.high, color=style.colour, linewidth=1, alpha=0.75, zorder=2)
        face = "white" if point.hollow else style.colour
        axes.plot([x], [point.value], linestyle="", marker=style.marker, color=style.colour, mfc=face, zorder=4)


def _draw_law(axes: Axes, law: Series, shift: float) -> None:
    xs, ys = [point.x + shift for point in law.points], [point.value for point in law.points]
    axes.plot(xs, ys, linestyle="", marker="_", markersize=13, markeredgewidth=1.1, color=QUIET, zorder=1.5)


def _limit(axes: Axes, lines: Sequence[Series], other: float = 0.0) -> None:
    """From 0 to a little over the highest point, mark (``other``) and bar."""
    points = [point for line in lines for point in line.points]
    highest = max((point.value for point in points), default=0.0)
    highest = max(highest, other)
    reach = max(other, *(point.high or point.value for point in points), 0.0)
    axes.set_ylim(0, 1.08 * min(reach, CUT_AT * highest) or 1.0)


def _pools_passed(rows: Sequence[Row]) -> list[int]:
    """The pools that the panel's clients outnumber."""
    most = max(row.clients for row in rows)
    return sorted({row.workers for row in rows if row.workers < most})


def _finish(figure: Figure, title: str, rows: Sequence[Row], caption: Sequence[str]) -> None:
    draw_title(figure, title)
    legend_above(figure, _legend(rows))
    draw_caption(figure, caption)


def _legend(rows: Sequence[Row]) -> list[Line2D]:
    entries = []
    for line in by_clients(rows, MEAN.of):
        style = look(line.transport)
        entries.append(
            Line2D(
                [],
                [],
                color=style.colour,
                marker=style.marker,
                linestyle=LINES.get(line.request, "-"),
                label=f"{style.label}, {line.request.capitalize()}",
            )
        )
    entries.append(Line2D([], [], color=QUIET, marker="_", linestyle="", markersize=11, label="N ÷ throughput"))
    pools = _pools_passed(rows)
    if pools:
        label = f"pool of {pools[0]}" if len(pools) == 1 else "size of the pool"
        entries.append(Line2D([], [], color=QUIET, linewidth=1, linestyle=(0, (1, 2)), label=label))
    return entries
