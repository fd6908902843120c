"""Means as bars, such as those of a document beside ours: panels share one scale, and one style.

A bar has its transport's colour, bars of one transport differ in tint. A line is a bar's 95 % interval, where it has
one. Left out: points over many levels, which ``curves`` draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from experiments.judge.stats import Estimate
from experiments.show.figures.style import (
    INK,
    PALEST,
    Picture,
    Stroke,
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
from experiments.show.numbers import has_interval, number, times_between

CUT = 2.0
"""An interval is cut at this many times the highest bar."""

PANEL_LETTERS = 78
"""Letters of all panels' titles that fit side by side."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A mean, in the figure's unit."""

    name: str
    transport: str
    """Bars of one transport stand together."""
    mean: Estimate


@dataclass(frozen=True, slots=True)
class Panel:
    """Bars from the left."""

    title: str
    bars: Sequence[Bar]


def picture(name: str, title: str, quantity: str, panels: Sequence[Panel]) -> Picture:
    """The figure with its words, to be drawn when it is wanted. ``quantity`` is what bars show, with its unit."""
    return Picture(name, title, alternative(title, quantity, panels), lambda: draw(title, quantity, panels))


@house()
def draw(title: str, quantity: str, panels: Sequence[Panel]) -> Figure:
    """The panels side by side."""
    figure = canvas(title, 3.4)
    row = figure.subplots(1, max(1, len(panels)), sharey=True, squeeze=False)[0]
    drawn = strokes((bar.transport, bar.name) for panel in panels for bar in panel.bars)
    if not drawn:
        say(row[0], "Nothing was measured for this figure.")
        return figure
    highest = max(bar.mean.value for panel in panels for bar in panel.bars)
    ends = [bar.mean.high for panel in panels for bar in panel.bars if has_interval(bar.mean)]
    top = max(highest, min(max(ends, default=0), CUT * highest))
    for axes, panel in zip(row, panels, strict=True):
        _draw(axes, panel, drawn, PANEL_LETTERS // len(panels), top)
    row[0].set_ylim(0, 1.14 * top)
    row[0].set_ylabel(quantity)
    even_axis(row[0].yaxis)
    names = dict.fromkeys(name for _, name in drawn)
    greys = [tinted(INK, PALEST * place / max(1, len(names) - 1) + 0.2) for place in range(len(names))]
    patches = [Patch(color=grey, label=name) for grey, name in zip(greys, names, strict=True)]
    interval = Line2D([], [], color=INK, marker="|", markersize=11, linestyle="", label="95 % interval")
    legend(figure, [*patches, interval])
    return figure


def _draw(axes: Axes, panel: Panel, drawn: dict[tuple[str, str], Stroke], letters: int, most: float) -> None:
    axes.set_title(wrapped(panel.title, letters))
    if not panel.bars:
        say(axes, "Nothing was measured here.", letters)
        return
    groups = list(dict.fromkeys(bar.transport for bar in panel.bars))
    centres = []
    for group, transport in enumerate(groups):
        own = [bar for bar in panel.bars if bar.transport == transport]
        width = 0.84 / len(own)
        for place, bar in enumerate(own):
            x = group + (place - (len(own) - 1) / 2) * width
            axes.bar([x], [bar.mean.value], width=0.92 * width, color=drawn[transport, bar.name].colour)
            top = bar.mean.value
            if has_interval(bar.mean):
                top = min(bar.mean.high, most)
                axes.vlines(x, bar.mean.low, top, color=INK, linewidth=1.1)
            axes.annotate(number(bar.mean.value), (x, top), (0, 2), textcoords="offset points", ha="center", fontsize=7)
        centres.append(group)
    axes.set_xticks(centres, [label(each) for each in groups])
    axes.grid(visible=False, axis="x")


def alternative(title: str, quantity: str, panels: Sequence[Panel]) -> str:
    """The figure in words: every bar's value and interval."""
    told = [f"{title}. {quantity}."]
    for panel in panels:
        bars = "; ".join(f"{bar.name} on {label(bar.transport)} {_value(bar.mean)}" for bar in panel.bars)
        told.append(f"{panel.title}: {bars or 'nothing was measured'}.")
    return " ".join(told)


def _value(mean: Estimate) -> str:
    return number(mean.value) + (f" ({times_between(mean, 1)})" if has_interval(mean) else "")
