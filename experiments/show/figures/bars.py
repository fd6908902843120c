"""Means as bars, such as those of a document beside ours: panels of one quantity share one scale, and all one style.

A bar begins at 0, so that its length is its mean; the mean stands above it. It has its transport's colour, and bars of
one transport differ in shade and hatching. A line is its 95 % interval, where it has one. Left out: points over many
levels, which ``curves`` draws.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.judge.stats import Estimate
from experiments.show.figures.panels import even_axis, highest, say, span, value_words
from experiments.show.figures.style import (
    INK,
    Picture,
    Stroke,
    grid,
    house,
    interval_key,
    label,
    legend,
    strokes,
    wrapped,
)
from experiments.show.numbers import has_interval, number

PANEL_LETTERS = 78
"""Letters of all panels' titles that fit side by side."""

TICK_LETTERS = 45
"""Letters of all names below the bars, in a line."""

HATCHES = ("", "////", "....", "xxxx")
"""Hatching of the bars of one transport, in turn."""

BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
"""White ground of a number, so that no line of the grid strikes it through."""


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


def picture(name: str, title: str, panels: Sequence[Panel], alike: Sequence[Panel] = ()) -> Picture:
    """The figure with its words, to be drawn when it is wanted. ``alike``: panels of other figures; one
    quantity has one scale."""
    return Picture(name, title, alternative(title, panels), lambda: draw(title, panels, alike))


@house()
def draw(title: str, panels: Sequence[Panel], alike: Sequence[Panel] = ()) -> Figure:
    """The panels side by side."""
    shared = len({panel.quantity for panel in panels}) == 1
    figure, (row,) = grid(title, 3.4, 1, len(panels), sharey=shared)
    drawn = strokes((bar.transport, bar.name) for panel in panels for bar in panel.bars)
    if not drawn:
        say(row[0], "Nothing was measured for this figure.")
        return figure
    for axes, panel in zip(row, panels, strict=True):
        same = [each for each in (*panels, *alike) if each.quantity == panel.quantity]
        top = highest(bar.mean for each in same for bar in each.bars)
        _draw(axes, panel, drawn, len(panels), top)
        if not shared or axes is row[0]:
            axes.set_ylim(0, 1.14 * top or 1.0)
            axes.set_ylabel(panel.quantity if panel.bars else "")
            even_axis(axes.yaxis)
    legend(figure, [*_keys(drawn), interval_key("")])
    return figure


def _keys(drawn: dict[tuple[str, str], Stroke]) -> Iterator[tuple[Artist, ...]]:
    """For each name, a patch for each transport, in its colour."""
    for name in filter(None, _names(drawn)):
        yield tuple(Patch(label=name, **_look(drawn, key)) for key in drawn if key[1] == name)


def _names(drawn: dict[tuple[str, str], Stroke]) -> list[str]:
    return list(dict.fromkeys(name for _, name in drawn))


def _look(drawn: dict[tuple[str, str], Stroke], key: tuple[str, str]) -> dict[str, Any]:
    hatch = HATCHES[_names(drawn).index(key[1]) % len(HATCHES)]
    return {"facecolor": drawn[key].colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}


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
            axes.bar([x], [mean.value], width=0.92 * width, **_look(drawn, (transport, bar.name)))
            span(axes, x, mean, INK, (0.0, top), across=False, halo=True)
            end = min(mean.high, top) if has_interval(mean) else mean.value
            look: dict[str, Any] = {"ha": "center", "fontsize": 7, "bbox": BEHIND}
            axes.annotate(number(mean.value), (x, end), (0, 3), textcoords="offset points", **look)
    letters = TICK_LETTERS // (panels * len(groups))
    axes.set_xticks(range(len(groups)), [wrapped(label(each), letters) for each in groups])


def alternative(title: str, panels: Sequence[Panel]) -> str:
    """The figure in words: every bar's value and interval."""
    told = [f"{title}."]
    for panel in panels:
        bars = "; ".join(f"{_name(bar)} {value_words(bar.mean)}" for bar in panel.bars)
        told.append(f"{panel.title}, {panel.quantity}: {bars or 'nothing was measured'}.")
    return " ".join(told) if panels else f"{title}. Nothing was measured for this figure."


def _name(bar: Bar) -> str:
    return f"{bar.name} on {label(bar.transport)}" if bar.name else label(bar.transport)
