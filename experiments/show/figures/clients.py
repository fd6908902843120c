"""Latency against the number of clients: a panel for each setting, a line for each request type or level.

Points are means over blocks, bars their 95 % intervals; median and 99th percentile stand beside where asked. Both axes
are linear and begin at 0, so that growth in proportion to the clients is a straight line. A bar much longer than the
highest mean is cut at the panel's edge. Clients that got no reply are in no latency: a cross for each hangs from the
panel's top, over its number of clients. Left out: N ÷ throughput, which in a closed loop is the latency itself.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator

from experiments.judge.points import Point
from experiments.show.figures.style import (
    DIFFERENT,
    QUIET,
    Picture,
    Stroke,
    canvas,
    even_axis,
    hollow,
    house,
    label,
    legend,
    say,
    strokes,
)
from experiments.show.numbers import counted, has_interval, number, time_unit, times_between

Beside = Literal["median", "p99"]

PERCENT: dict[Beside, float] = {"median": 50, "p99": 99}

CUT = 2.0
"""A panel ends at this many times its highest mean or median, however far the bars reach."""

TICKS_MAX = 12
"""Numbers of clients that are all named on the axis."""

CROSS_TOP, CROSS_STEP, CROSS_ROOM = 0.965, 0.045, 0.04
"""Places as shares of a panel's height: the first cross of a starved client, the step to the next one, and the room
below the last one."""


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one setting at several numbers of clients."""

    label: str
    transport: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines that are compared. ``pool``: the number of clients at which a vertical line is drawn."""

    title: str
    lines: Sequence[Line]
    pool: int | None = None
    below: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Further rows below the numbers of clients: a word for each number, by the row's name."""


def picture(name: str, title: str, panels: Sequence[Panel], beside: Collection[Beside] = ()) -> Picture:
    """The figure with its words, to be drawn when it is wanted."""
    return Picture(name, title, alternative(title, panels), lambda: draw(title, panels, beside))


@house()
def draw(title: str, panels: Sequence[Panel], beside: Collection[Beside] = ()) -> Figure:
    """Means, and medians as thin lines among them; the 99th percentile in panels of its own, on its own scale."""
    drawn = strokes((line.transport, line.label) for panel in panels for line in panel.lines)
    columns, tall = max(1, len(panels)), "p99" in beside
    figure = canvas(title, 3.4 if not tall or columns == 1 else 5.2)
    unit, factor = time_unit(_means(panels))
    if tall and columns == 1:
        pairs = figure.subplots(1, 2, width_ratios=(1.5, 1), squeeze=False).T
    else:
        pairs = figure.subplots(2 if tall else 1, columns, sharey="row", squeeze=False)
    for place, panel in enumerate(panels):
        _draw_means(pairs[0][place], panel, drawn, factor, "median" in beside)
        if tall:
            _draw_p99(pairs[1][place], panel, drawn, factor)
    if not panels:
        say(pairs[0][0], "Nothing was measured for this figure.")
    for axes in pairs[:, 0]:
        axes.set_ylabel(f"{'99th percentile' if axes in pairs[1:] else 'Latency'}, {unit}")
    for axes in figure.axes:
        axes.set_ylim(bottom=0)
        even_axis(axes.yaxis)
    for axes in figure.axes if columns == 1 else pairs[-1]:
        axes.set_xlabel("Clients")
    for axes, panel in zip(pairs[0], panels, strict=False):
        _rows_below(axes, panel)
    _scale(pairs[0], panels, factor)
    for axes, panel in zip(pairs[0], panels, strict=False):
        _crosses(axes, panel)
    legend(figure, list(_entries(panels, drawn, "median" in beside)))
    return figure


def _draw_means(axes: Axes, panel: Panel, drawn: dict[tuple[str, str], Stroke], factor: float, median: bool) -> None:
    axes.set_title(panel.title)
    _clients_axis(axes, panel)
    for line in panel.lines:
        stroke = drawn[line.transport, line.label]
        found = [point for point in line.points if point.mean_us is not None]
        means = [point.mean_us.value / factor for point in found if point.mean_us]
        clients = list(map(_clients, found))
        axes.plot(clients, means, color=stroke.colour, linestyle=stroke.dashes)
        for point, x in zip(found, clients, strict=True):
            assert point.mean_us is not None
            mean = point.mean_us
            colour = QUIET if point.refusals else stroke.colour
            if has_interval(mean):
                axes.vlines(x, max(0, mean.low) / factor, mean.high / factor, color=colour, linewidth=1.1)
            face = "white" if point.refusals or point.load_limited else colour
            axes.plot([x], [mean.value / factor], marker=stroke.marker, color=colour, mfc=face, linestyle="")
        if median:
            _thin(axes, line, stroke, factor, 50)
    if not any(point.mean_us for line in panel.lines for point in line.points):
        say(axes, "Nothing was measured here.")


def _draw_p99(axes: Axes, panel: Panel, drawn: dict[tuple[str, str], Stroke], factor: float) -> None:
    _clients_axis(axes, panel)
    shown = [_thin(axes, line, drawn[line.transport, line.label], factor, 99) for line in panel.lines]
    if not any(shown):
        say(axes, "Too few requests for a 99th percentile.", 26)


def _thin(axes: Axes, line: Line, stroke: Stroke, factor: float, percent: float) -> bool:
    """Draws a percentile as a thin line with small markers; True where there is any value."""
    found = [(_clients(point), value) for point in line.points if (value := point.percentile_us(percent)) is not None]
    x, y = [clients for clients, _ in found], [value / factor for _, value in found]
    marker = stroke.marker if percent > 50 else "_"
    axes.plot(x, y, color=stroke.colour, linestyle=stroke.dashes, linewidth=0.8, marker=marker, markersize=3.5)
    return bool(found)


def _clients_axis(axes: Axes, panel: Panel) -> None:
    levels = sorted({_clients(point) for line in panel.lines for point in line.points})
    if panel.pool is not None:
        axes.axvline(panel.pool, color=QUIET, linewidth=1, linestyle=(0, (1, 2)))
    named = FixedLocator([float(each) for each in levels]) if len(levels) <= TICKS_MAX else MaxNLocator(8, integer=True)
    axes.xaxis.set_major_locator(named)
    if levels:
        room = 0.06 * (levels[-1] - levels[0]) or 0.5
        axes.set_xlim(levels[0] - room, levels[-1] + room)


def _rows_below(axes: Axes, panel: Panel) -> None:
    """Text below each number of clients, and the rows' names below the axis's."""
    if not panel.below:
        return
    named = [int(each) for each in axes.get_xticks()]
    rows = [[str(each) for each in named], *([row.get(each, "") for each in named] for row in panel.below.values())]
    axes.xaxis.set_major_locator(FixedLocator([float(each) for each in named]))
    axes.xaxis.set_major_formatter(FixedFormatter(["\n".join(cells) for cells in zip(*rows, strict=True)]))
    axes.set_xlabel("\n".join(("Clients; below each number:", *panel.below)))


def _scale(row: Sequence[Axes], panels: Sequence[Panel], factor: float) -> None:
    """One scale for the panels of a row, that no single bar flattens; room for the crosses of starved clients."""
    points = [point for panel in panels for line in panel.lines for point in line.points if point.mean_us]
    if points:
        highest = max(_means(panels))
        ends = [point.mean_us.high for point in points if point.mean_us and has_interval(point.mean_us)]
        top = 1.06 * max(highest, min(max(ends, default=0), CUT * highest)) / factor
        crosses = max((_starved(point) for panel in panels for line in panel.lines for point in line.points), default=0)
        room = 1 - CROSS_TOP + CROSS_STEP * (crosses - 1) + CROSS_ROOM if crosses else 0.0
        row[0].set_ylim(0, top / (1 - min(room, 0.6)))


def _starved(point: Point) -> int:
    """Crosses of a point: clients that got no reply in a window, on average; one at least where there was any."""
    return math.ceil(point.starved_each - 1e-9)


def _crosses(axes: Axes, panel: Panel) -> None:
    """A cross for each client that got no reply."""
    for line in panel.lines:
        for point in line.points:
            for place in range(_starved(point)):
                axes.plot(
                    [_clients(point)],
                    [CROSS_TOP - CROSS_STEP * place],
                    transform=axes.get_xaxis_transform(),
                    marker="x",
                    markersize=5,
                    mew=1.6,
                    color=DIFFERENT,
                    linestyle="",
                )


def _means(panels: Sequence[Panel]) -> list[float]:
    return [p.mean_us.value for panel in panels for line in panel.lines for p in line.points if p.mean_us]


def _clients(point: Point) -> int:
    return point.arm.connections


def _entries(panels: Sequence[Panel], drawn: dict[tuple[str, str], Stroke], median: bool) -> Iterator[Artist]:
    points = [point for panel in panels for line in panel.lines for point in line.points]
    names = [name for _, name in drawn]
    for (transport, name), stroke in drawn.items():
        lines = [line for panel in panels for line in panel.lines if (line.transport, line.label) == (transport, name)]
        measured = any(point.mean_us for line in lines for point in line.points)
        text = f"{name}, {label(transport)}" if names.count(name) > 1 else name
        text = text if measured else f"{text}: nothing was measured"
        yield Line2D([], [], color=stroke.colour, linestyle=stroke.dashes, marker=stroke.marker, label=text)
    if median and names:
        yield Line2D([], [], color=QUIET, linewidth=0.8, marker="_", label="median")
    if any(point.mean_us and has_interval(point.mean_us) for point in points):
        yield Line2D([], [], color=QUIET, marker="|", markersize=11, linestyle="", label="95 % interval of the mean")
    for pool in dict.fromkeys(panel.pool for panel in panels if panel.pool is not None):
        yield Line2D(
            [], [], color=QUIET, linewidth=1, linestyle=(0, (1, 2)), label=f"pool of {counted(pool, 'thread')}"
        )
    if any(map(_starved, points)):
        yield Line2D([], [], color=DIFFERENT, marker="x", mew=1.6, linestyle="", label="a client without any reply")
    if any(point.load_limited and not point.refusals for point in points):
        yield Line2D([], [], color=QUIET, marker="o", mfc="white", label="hollow: client and server together")
    if any(point.refusals for point in points):
        yield hollow("grey: a gate refuses it")


def alternative(title: str, panels: Sequence[Panel]) -> str:
    """The figure in words: each line's means by clients."""
    unit, factor = time_unit(_means(panels))
    told = [f"{title}. Mean latency in {unit} against clients."]
    for panel in panels:
        for line in panel.lines:
            means = [
                f"{_clients(point)}: {number(point.mean_us.value / factor)}"
                + (f" ({times_between(point.mean_us, factor)})" if has_interval(point.mean_us) else "")
                for point in line.points
                if point.mean_us
            ]
            where = f"{panel.title}, {line.label}" if panel.title else line.label
            told.append(f"{where}: {'; '.join(means) or 'nothing was measured'}.")
            starving = [
                f"{point.starved_each:.3g} of {counted(_clients(point), 'client')}"
                for point in line.points
                if point.starved_clients
            ]
            told += [f"Without any reply: {', '.join(starving)}."] if starving else []
        for name, row in panel.below.items():
            told.append(f"{name.capitalize()}: {'; '.join(f'{at}: {word}' for at, word in row.items())}.")
        if panel.pool is not None:
            told.append(f"A line marks the pool of {counted(panel.pool, 'thread')}.")
    return " ".join(told) if len(told) > 1 else f"{told[0]} Nothing was measured."
