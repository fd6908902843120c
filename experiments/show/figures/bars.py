"""Means as bars, such as those of a document beside ours: panels of one quantity share one scale, and all one style.

A bar begins at 0, so that its length is its mean; the mean stands above it. It has its transport's colour, and bars of
one transport differ in tint. A line is its 95 % interval, where it has one; one that is cut ends in an arrow. Left out:
points over many levels, which ``curves`` draws.
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
"""An interval is cut at this many times the highest bar of its scale."""

PANEL_LETTERS = 78
"""Letters of all panels' titles that fit side by side."""

TICK_LETTERS = 45
"""Letters of all names below the bars, in a line."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A mean, in its panel's unit."""

    transport: str
    """Transport of the bar; bars of one transport stand together."""
    mean: Estimate
    name: str = ""
    """Name that tells the bars of a transport apart, where it has several."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Bars from the left."""

    title: str
    quantity: str
    """Quantity of the bars, with its unit."""
    bars: Sequence[Bar]


def picture(name: str, title: str, panels: Sequence[Panel]) -> Picture:
    """The figure with its words, to be drawn when it is wanted."""
    return Picture(name, title, alternative(title, panels), lambda: draw(title, panels))


@house()
def draw(title: str, panels: Sequence[Panel]) -> Figure:
    """The panels side by side."""
    figure = canvas(title, 3.4)
    shared = len({panel.quantity for panel in panels}) == 1
    row = figure.subplots(1, max(1, len(panels)), sharey=shared, squeeze=False)[0]
    drawn = strokes((bar.transport, bar.name) for panel in panels for bar in panel.bars)
    if not drawn:
        say(row[0], "Nothing was measured for this figure.")
        return figure
    for axes, panel in zip(row, panels, strict=True):
        top = _top([bar for each in panels if each.quantity == panel.quantity for bar in each.bars])
        _draw(axes, panel, drawn, len(panels), top)
        if not shared or axes is row[0]:
            axes.set_ylim(0, 1.14 * top)
            axes.set_ylabel(panel.quantity if panel.bars else "")
            even_axis(axes.yaxis)
    names = [name for name in dict.fromkeys(name for _, name in drawn) if name]
    greys = [tinted(INK, PALEST * place / max(1, len(names) - 1) + 0.2) for place in range(len(names))]
    patches = [Patch(color=grey, label=name) for grey, name in zip(greys, names, strict=True)]
    interval = Line2D([], [], color=INK, marker="|", markersize=11, linestyle="", label="95 % interval")
    legend(figure, [*patches, interval])
    return figure


def _top(bars: Sequence[Bar]) -> float:
    """Height that a scale has to reach."""
    highest = max((bar.mean.value for bar in bars), default=1.0)
    return min(max((highest, *(bar.mean.high for bar in bars if has_interval(bar.mean)))), CUT * highest)


def _draw(axes: Axes, panel: Panel, drawn: dict[tuple[str, str], Stroke], panels: int, top: float) -> None:
    axes.set_title(wrapped(panel.title, PANEL_LETTERS // panels))
    if not panel.bars:
        say(axes, "Nothing was measured here.", PANEL_LETTERS // panels)
        return
    groups = list(dict.fromkeys(bar.transport for bar in panel.bars))
    for group, transport in enumerate(groups):
        own = [bar for bar in panel.bars if bar.transport == transport]
        width = 0.84 / len(own)
        for place, bar in enumerate(own):
            x, mean = group + (place - (len(own) - 1) / 2) * width, bar.mean
            axes.bar([x], [mean.value], width=0.92 * width, color=drawn[transport, bar.name].colour)
            end = mean.value
            if has_interval(mean):
                end = min(mean.high, top)
                axes.vlines(x, max(0.0, mean.low), end, color=INK, linewidth=1.1)
                if mean.high > top:
                    axes.plot([x], [top], marker="^", markersize=4, color=INK)
            axes.annotate(number(mean.value), (x, end), (0, 2), textcoords="offset points", ha="center", fontsize=7)
    letters = TICK_LETTERS // (panels * len(groups))
    axes.set_xticks(range(len(groups)), [wrapped(label(each), letters) for each in groups])
    axes.grid(visible=False, axis="x")
    axes.grid(visible=True, axis="y")


def alternative(title: str, panels: Sequence[Panel]) -> str:
    """The figure in words: every bar's value and interval."""
    told = [f"{title}."]
    for panel in panels:
        bars = "; ".join(f"{_name(bar)} {_value(bar.mean)}" for bar in panel.bars)
        told.append(f"{panel.title}, {panel.quantity}: {bars or 'nothing was measured'}.")
    return " ".join(told) if panels else f"{title}. Nothing was measured for this figure."


def _name(bar: Bar) -> str:
    return f"{bar.name} on {label(bar.transport)}" if bar.name else label(bar.transport)


def _value(mean: Estimate) -> str:
    return number(mean.value) + (f" ({times_between(mean, 1)})" if has_interval(mean) else "")
