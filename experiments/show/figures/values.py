"""Values: one quantity of a few servers, with 95 % intervals; panels stand side by side, each with its own scale.

Each bar has its transport's colour, and its value above it. A bar begins at 0, so that its length is its value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.judge.stats import Estimate
from experiments.show.figures.style import (
    INK,
    PALEST,
    Picture,
    canvas,
    even_axis,
    house,
    label,
    legend,
    say,
    strokes,
    tinted,
    wrapped,
)
from experiments.show.numbers import has_interval, number

CUT = 2.0
"""An interval is cut at this many times the largest value, and ends in an arrow."""

TITLE_LETTERS = 40
"""Of a panel's title, in a line; fewer where more panels share the figure."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One server's value."""

    name: str
    transport: str
    value: Estimate


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity."""

    title: str
    quantity: str
    """With its unit."""
    bars: Sequence[Bar]


def picture(name: str, title: str, panels: Sequence[Panel]) -> Picture:
    """The figure with its words, to be drawn when it is wanted."""
    return Picture(name, title, alternative(title, panels), lambda: draw(title, panels))


@house()
def draw(title: str, panels: Sequence[Panel]) -> Figure:
    """The panels side by side, their bars in the order given."""
    figure = canvas(title, 3.3)
    drawn = strokes((bar.transport, label(bar.transport)) for panel in panels for bar in panel.bars)
    axes = figure.subplots(1, max(1, len(panels)), squeeze=False)[0]
    if not panels:
        say(axes[0], "Nothing was measured here.")
    for own, panel in zip(axes, panels, strict=False):
        _draw(own, panel, {transport: each.colour for (transport, _), each in drawn.items()})
        own.set_title(wrapped(panel.title, TITLE_LETTERS * 2 // (1 + len(panels))), fontsize=9, loc="left")
    if drawn:
        legend(figure, [Line2D([], [], color=INK, linewidth=1.2, label="95 % interval")])
    return figure


def _draw(axes: Axes, panel: Panel, colours: dict[str, str]) -> None:
    if not panel.bars:
        say(axes, f"{panel.quantity}: nothing was measured.")
        return
    most = CUT * max(bar.value.value for bar in panel.bars)
    ends = []
    for place, bar in enumerate(panel.bars):
        value = bar.value
        axes.bar(place, value.value, width=0.62, color=tinted(colours[bar.transport], PALEST))
        ends.append(value.value)
        if has_interval(value):
            ends.append(min(value.high, most))
            axes.vlines(place, max(0.0, value.low), ends[-1], color=INK, linewidth=1.2)
            if value.high > most:
                axes.plot([place], [most], marker="^", markersize=4, color=INK)
        axes.annotate(number(value.value), (place, ends[-1]), (0, 3), textcoords="offset points", ha="center", size=8)
    axes.set_ylim(0, 1.14 * max(ends))
    axes.set_xlim(-0.6, len(panel.bars) - 0.4)
    axes.set_xticks(range(len(panel.bars)), [wrapped(bar.name, 9) for bar in panel.bars], fontsize=8)
    axes.grid(visible=False, axis="x")
    axes.grid(visible=True, axis="y")
    even_axis(axes.yaxis)
    axes.set_ylabel(panel.quantity)


def alternative(title: str, panels: Sequence[Panel]) -> str:
    """The figure in words: every bar's value."""
    told = [f"{title}."]
    for panel in panels:
        bars = "; ".join(f"{bar.name} {number(bar.value.value)}" for bar in panel.bars)
        told.append(f"{panel.title}, {panel.quantity}: {bars or 'nothing was measured'}.")
    return " ".join(told) if panels else f"{title}. Nothing was measured here."
