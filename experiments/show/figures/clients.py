"""Latency against the number of clients: a panel for each setting, a line for each request type or level.

Points are geometric means over blocks, with 95 % intervals. The median and the 99th percentile may have their own
panel. All panels of the compared figures share one scale from 0. So growth in proportion to the clients is a straight
line. A starved client is a client without any reply, and no latency includes this client. Each starved client is a
cross in a strip at the top of the panel, above the number of clients. Left out: N ÷ throughput, which for N clients in
a closed loop equals the mean latency.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, MaxNLocator

from experiments.judge.points import Point
from experiments.show.figures import style
from experiments.show.figures.panels import even_axis, highest, line, mark, pictured, say
from experiments.show.numbers import counted, has_interval, time_unit, value_words

TICKS_MAX = 12
"""Largest number of levels of clients that each have a tick. With more levels, a few round numbers have ticks."""

CROSS_STEP = 0.045
"""Distance between two crosses of starved clients, as a share of the panel's height."""

PERCENTILES: Mapping[int, Mapping[str, Any]] = {
    50: {"linestyle": style.DOTTED, "marker": "o"},
    99: {"linestyle": "-", "marker": "^"},
}
"""Line style and marker of each percentile. The percentiles have different markers, since a point may have no line."""

ROW_POINTS = 11
"""Height in points of a row of text below an axis."""


@dataclass(frozen=True, slots=True)
class Line:
    """Line: points of one setting at several numbers of clients."""

    label: str
    transport: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Panel:
    """Panel with the lines that a reader compares."""

    title: str
    lines: Sequence[Line]
    pool: int | None = None
    """Size of the thread pool: a vertical line marks the number of clients that equals this size. None for no line.
    """
    below: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Rows of words below the axis, by the row's name. A row has a word for each number of clients."""

    @property
    def points(self) -> Iterator[Point]:
        """Points of every line."""
        return (point for line in self.lines for point in line.points)


def picture(
    name: str, title: str, panels: Sequence[Panel], percentiles: bool = False, alike: Sequence[Panel] = ()
) -> style.Picture:
    """Picture of the panels side by side on one scale.

    ``percentiles``: add a panel with the percentiles of the first panel's lines. ``alike``: the panels of all figures
    that share the scale and the colours of lines, including the panels of this figure.
    """
    return pictured(name, title, _told(panels), lambda: _draw(title, panels, percentiles, alike))


def _draw(title: str, panels: Sequence[Panel], percentiles: bool, alike: Sequence[Panel]) -> Figure:
    shown, columns = _points([*panels, *alike]), len(panels) + percentiles
    height, widths = 3.4 + 0.35 * max(len(panel.below) for panel in panels), [1.4] * len(panels) + [1.0] * percentiles
    figure, ((*row,),) = style.grid(title, height, 1, columns, sharey=True, width_ratios=widths)
    every, own = (
        [(line.transport, line.label) for panel in of for line in panel.lines] for of in (alike or panels, panels)
    )
    drawn = {line: stroke for line, stroke in style.overlaid(style.strokes(every)).items() if line in own}
    unit, factor = time_unit(point.mean_us.value for point in shown if point.mean_us)
    tails = [tail for point in shown for tail in (point.percentile_us(99),) if percentiles and tail]
    top = max([1.06 * highest(point.mean_us for point in shown if point.mean_us), *(1.06 * each for each in tails)])
    strip = CROSS_STEP * (1 + max((_starved(point) for point in shown), default=0))
    strip = min(strip, 0.6) if strip > CROSS_STEP else 0.0
    for axes, panel in zip(row, panels, strict=False):
        _draw_means(axes, panel, drawn, factor, top)
        _crosses(axes, panel, strip)
        _rows_below(axes, panel)
    if percentiles:
        _draw_percentiles(row[-1], panels[0], drawn, factor)
        row[-1].set_ylabel(f"Latency, {unit}")
        row[-1].tick_params(labelleft=True)
    row[0].set_ylabel(f"Mean latency, {unit}")
    row[0].set_ylim(0, top / factor / (1 - strip) or 1.0)
    even_axis(row[0].yaxis, top / factor if strip else math.inf)
    style.legend(figure, _entries(panels, drawn, percentiles))
    return figure


def _points(panels: Iterable[Panel]) -> list[Point]:
    return [point for panel in panels for point in panel.points]


def _draw_means(axes: Axes, panel: Panel, drawn: style.Strokes, factor: float, top: float) -> None:
    axes.set_title(panel.title)
    _clients_axis(axes, panel)
    for each in panel.lines:
        stroke = drawn[each.transport, each.label]
        means = [(point, point.mean_us.over(factor) if point.mean_us else None) for point in each.points]
        line(axes, [(point.arm.connections, mean.value if mean else None) for point, mean in means], stroke)
        for point, mean in means:
            if mean:
                ends, refused, hollow = (0.0, top / factor), bool(point.refusals), point.load_limited
                mark(axes, point.arm.connections, mean, stroke, ends, refused=refused, hollow=hollow)
    if not any(point.mean_us for point in panel.points):
        say(axes, "Nothing was measured here.")


def _draw_percentiles(axes: Axes, panel: Panel, drawn: style.Strokes, factor: float) -> None:
    axes.set_title("Median and 99th percentile")
    _clients_axis(axes, panel)
    found = False
    for each in panel.lines:
        stroke = drawn[each.transport, each.label]
        for percent, look in PERCENTILES.items():
            us = [(point.arm.connections, point.percentile_us(percent)) for point in each.points]
            points = [(clients, value and value / factor) for clients, value in us]
            line(axes, points, stroke, **look, linewidth=1.1, markersize=0.8 * stroke.size)
            found = found or any(value for _, value in us)
    if not found:
        say(axes, "Too few requests for percentiles.", 26)


def _clients_axis(axes: Axes, panel: Panel) -> None:
    levels = sorted({point.arm.connections for point in panel.points})
    if panel.pool is not None:
        axes.axvline(panel.pool, color=style.QUIET, linewidth=1, linestyle=style.DOTTED)
    named = FixedLocator([float(each) for each in levels]) if len(levels) <= TICKS_MAX else MaxNLocator(8, integer=True)
    axes.xaxis.set_major_locator(named)
    axes.set_xlabel("Clients")
    if levels:
        room = 0.06 * (levels[-1] - levels[0]) or 0.5
        axes.set_xlim(levels[0] - room, levels[-1] + room)


def _rows_below(axes: Axes, panel: Panel) -> None:
    """Write the rows of words below the axis. The name of a row is under its words."""
    for place, (name, words) in enumerate(panel.below.items()):
        down = -ROW_POINTS * (3.2 + 2.3 * place)
        told = [(at, words.get(int(at), ""), down) for at in axes.get_xticks()]
        for x, text, y in (*told, (sum(axes.get_xlim()) / 2, f"({name})", down - ROW_POINTS)):
            where = axes.get_xaxis_transform()
            axes.annotate(
                text, (x, 0), (0, y), where, "offset points", ha="center", va="top", fontsize=8, annotation_clip=False
            )


def _starved(point: Point) -> int:
    """Number of crosses for a point: the mean number of starved clients in a window, rounded up."""
    return math.ceil(point.starved_each - 1e-9)


def _crosses(axes: Axes, panel: Panel, strip: float) -> None:
    """Draw a cross for each starved client, in a strip at the top of the panel."""
    if not any(map(_starved, panel.points)):
        return
    where = axes.transAxes
    axes.add_patch(Rectangle((0, 1 - strip), 1, strip, transform=where, facecolor=style.FAINT, linewidth=0, zorder=0))
    axes.text(0.02, 1 - strip / 2, "no reply", transform=axes.transAxes, va="center", color=style.QUIET)
    for point in panel.points:
        for place in range(_starved(point)):
            x, y = point.arm.connections, 1 - CROSS_STEP * (place + 1)
            where = axes.get_xaxis_transform()
            axes.plot([x], [y], transform=where, marker="x", markersize=5, mew=1.6, color=style.DIFFERENT, linestyle="")


def _entries(panels: Sequence[Panel], drawn: style.Strokes, percentiles: bool) -> Iterator[Artist]:
    points, names = _points(panels), [name for _, name in drawn]
    for (transport, name), stroke in drawn.items():
        lines = [line for panel in panels for line in panel.lines if (line.transport, line.label) == (transport, name)]
        measured = any(point.mean_us for line in lines for point in line.points)
        text = f"{name}, {style.label(transport)}" if names.count(name) > 1 else name
        yield style.key_of(stroke, text if measured else f"{text}: nothing was measured")
    if percentiles and names:
        lacks = any(point.percentile_us(99) is None for point in panels[0].points)
        alone = {} if _is_joined(panels[0], 99) else {"linestyle": ""}
        p99 = "99th percentile" + ", where there are enough requests" * lacks
        yield style.key(p99, **{**PERCENTILES[99], **alone}, linewidth=1.1)
        yield style.key("median", **PERCENTILES[50], linewidth=1.1)
    if any(point.mean_us and has_interval(point.mean_us) for point in points):
        yield style.interval_key()
    for pool in dict.fromkeys(panel.pool for panel in panels if panel.pool is not None):
        yield style.key(f"pool of {counted(pool, 'thread')}", marker=style.UPRIGHT, markersize=11, mew=1)
    if any(map(_starved, points)):
        yield style.key("a client without any reply", color=style.DIFFERENT, marker="x", mew=1.6)
    if any(point.load_limited and not point.refusals for point in points):
        yield style.key(style.LIMITED, marker="o", mfc="white")
    if any(point.refusals for point in points):
        yield style.refused_key()


def _is_joined(panel: Panel, percent: int) -> bool:
    """True if a line joins two points of a percentile: two neighbouring points have a value of the percentile."""
    known = [[point.percentile_us(percent) is not None for point in each.points] for each in panel.lines]
    return any(one and other for each in known for one, other in pairwise(each))


def _told(panels: Sequence[Panel]) -> Iterator[str]:
    """Sentences with the mean latencies and starved clients of each line, by the number of clients."""
    unit, factor = time_unit(point.mean_us.value for point in _points(panels) if point.mean_us)
    if panels:
        yield f"Mean latency in {unit} against clients."
    for panel in panels:
        for each in panel.lines:
            means = [
                f"{point.arm.connections}: {value_words(point.mean_us.over(factor))}"
                for point in each.points
                if point.mean_us
            ]
            where = f"{panel.title}, {each.label}" if panel.title else each.label
            yield f"{where}: {'; '.join(means) or 'nothing was measured'}."
            starving = [
                f"{point.starved_each:.3g} of {counted(point.arm.connections, 'client')}"
                for point in each.points
                if point.starved_clients
            ]
            if starving:
                yield f"Without any reply: {', '.join(starving)}."
        for name, row in panel.below.items():
            yield f"{name.capitalize()}: {'; '.join(f'{at}: {word}' for at, word in row.items())}."
        if panel.pool is not None:
            yield f"A line marks the pool of {counted(panel.pool, 'thread')}."
