"""Costs: rows of numbers with their 95 % intervals, a panel for each quantity. Such as processor time a request.

A row has its transport's colour and marker. An interval that reaches too far is cut, and ends in an arrow.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.judge.stats import Estimate
from experiments.show.figures.style import (
    QUIET,
    Picture,
    Stroke,
    canvas,
    even_axis,
    house,
    label,
    legend,
    say,
    strokes,
    wrapped,
)
from experiments.show.numbers import has_interval, number

CUT = 2.0
"""An interval is cut at this many times the largest value."""

NAME_LETTERS = 24


@dataclass(frozen=True, slots=True)
class Row:
    """One cost of one server."""

    name: str
    transport: str
    cost: Estimate


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity."""

    quantity: str
    """Quantity of the panel, with its unit."""
    rows: Sequence[Row]


def picture(name: str, title: str, panels: Sequence[Panel]) -> Picture:
    """The figure with its words, to be drawn when it is wanted."""
    return Picture(name, title, alternative(title, panels), lambda: draw(title, panels))


@house()
def draw(title: str, panels: Sequence[Panel]) -> Figure:
    """The panels below each other, their rows in the order given."""
    heights = [max(2, len(panel.rows)) + 1.5 for panel in panels] or [3]
    figure = canvas(title, 0.9 + 0.34 * sum(heights))
    drawn = strokes((row.transport, label(row.transport)) for panel in panels for row in panel.rows)
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    if not panels:
        say(axes[0], "No cost was measured here.")
    for own, panel in zip(axes, panels, strict=False):
        _draw(own, panel, drawn)
    if drawn:
        entries = [
            Line2D([], [], color=each.colour, marker=each.marker, linestyle="", label=name)
            for (_, name), each in drawn.items()
        ]
        legend(figure, [*entries, Line2D([], [], color=QUIET, linewidth=1.6, label="95 % interval")])
    return figure


def _draw(axes: Axes, panel: Panel, drawn: dict[tuple[str, str], Stroke]) -> None:
    if not panel.rows:
        say(axes, f"{panel.quantity}: nothing was measured.")
        return
    most = CUT * max(row.cost.value for row in panel.rows) or 1.0
    ends = [most / CUT]
    for place, row in enumerate(panel.rows):
        stroke, cost = drawn[row.transport, label(row.transport)], row.cost
        if has_interval(cost):
            end = min(cost.high, most)
            axes.hlines(place, max(0.0, cost.low), end, color=stroke.colour, linewidth=1.6)
            ends.append(end)
            if cost.high > most:
                axes.plot([most], [place], marker=">", markersize=4, color=stroke.colour)
        axes.plot([cost.value], [place], marker=stroke.marker, color=stroke.colour, linestyle="", clip_on=False)
    axes.set_xlim(0, 1.06 * max(ends))
    axes.set_ylim(len(panel.rows) - 0.5, -0.5)
    axes.set_yticks(range(len(panel.rows)), [wrapped(row.name, NAME_LETTERS) for row in panel.rows], fontsize=8)
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(panel.rows)), [number(row.cost.value) for row in panel.rows], fontsize=8)
    right.spines["right"].set_visible(False)
    right.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    even_axis(axes.xaxis)
    axes.set_xlabel(panel.quantity)


def alternative(title: str, panels: Sequence[Panel]) -> str:
    """The figure in words: every row's value."""
    told = [f"{title}."]
    for panel in panels:
        rows = "; ".join(f"{row.name} {number(row.cost.value)}" for row in panel.rows)
        told.append(f"{panel.quantity}: {rows or 'nothing was measured'}.")
    return " ".join(told) if panels else f"{title}. No cost was measured here."
