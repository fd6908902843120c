"""Means as bars, such as a document's means beside our means. Panels of one quantity share one scale.

A bar begins at 0, so that its length is the mean. The mean is written above the bar. A bar has the colour of its
transport. Bars of one transport differ in shade and hatching. The line on a bar is the 95 % interval of the mean, if
known. Left out: points over many levels, which ``curves`` draws.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.judge.stats import Estimate
from experiments.show.figures import style
from experiments.show.figures.panels import even_axis, highest, pictured, say, span
from experiments.show.numbers import has_interval, number, value_words

PANEL_LETTERS = 78
"""Number of letters that fit in the titles of all panels, side by side."""

TICK_LETTERS = 45
"""Number of letters that fit in one line of the names below the bars of all panels."""

HATCHES = ("", "////", "....", "xxxx")
"""Hatching for each name of a bar, in order."""

BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
"""White background of a number, which hides the lines of the grid."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Bar that shows a mean, in the unit of the panel."""

    transport: str
    """Transport whose colour the bar has. Bars of one transport form a group."""
    mean: Estimate
    name: str = ""
    """Name that tells the bars of one transport apart."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Panel with bars, in the order from the left."""

    title: str
    quantity: str
    """Quantity that the bars show, with its unit."""
    bars: Sequence[Bar]


def picture(name: str, title: str, panels: Sequence[Panel], alike: Sequence[Panel] = ()) -> style.Picture:
    """Picture of the panels side by side. ``alike``: panels of other figures. Panels of one quantity share a scale."""
    return pictured(name, title, map(_told, panels), lambda: _draw(title, panels, alike))


def _draw(title: str, panels: Sequence[Panel], alike: Sequence[Panel]) -> Figure:
    shared = len({panel.quantity for panel in panels}) == 1
    figure, (row,) = style.grid(title, 3.4, 1, len(panels), sharey=shared)
    drawn = style.strokes((bar.transport, bar.name) for panel in panels for bar in panel.bars)
    for axes, panel in zip(row, panels, strict=True):
        same = [each for each in (*panels, *alike) if each.quantity == panel.quantity]
        top = highest(bar.mean for each in same for bar in each.bars)
        _draw_panel(axes, panel, drawn, len(panels), top)
        if not shared or axes is row[0]:
            axes.set_ylim(0, 1.14 * top or 1.0)
            axes.set_ylabel(panel.quantity if panel.bars else "")
            even_axis(axes.yaxis)
    style.legend(figure, [*_keys(drawn), style.interval_key("")])
    return figure


def _keys(drawn: style.Strokes) -> Iterator[tuple[Artist, ...]]:
    """Legend entry for each name that bars have: a patch for each transport with this name."""
    for name in filter(None, _names(drawn)):
        yield tuple(Patch(label=name, **_look(drawn, key)) for key in drawn if key[1] == name)


def _names(drawn: style.Strokes) -> list[str]:
    """Names of the bars, each name once."""
    return list(dict.fromkeys(name for _, name in drawn))


def _look(drawn: style.Strokes, key: tuple[str, str]) -> dict[str, Any]:
    """Style of a bar: the shade of the bar's transport and name, and the hatching of the name."""
    hatch = HATCHES[_names(drawn).index(key[1]) % len(HATCHES)]
    return {"facecolor": drawn[key].colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}


def _draw_panel(axes: Axes, panel: Panel, drawn: style.Strokes, panels: int, top: float) -> None:
    axes.set_title(style.wrapped(panel.title, PANEL_LETTERS // panels))
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
            span(axes, x, mean, style.INK, (0.0, top), across=False, halo=True)
            end = min(mean.high, top) if has_interval(mean) else mean.value
            look: dict[str, Any] = {"ha": "center", "fontsize": 7, "bbox": BEHIND}
            axes.annotate(number(mean.value), (x, end), (0, 3), textcoords="offset points", **look)
    letters = TICK_LETTERS // (panels * len(groups))
    axes.set_xticks(range(len(groups)), [style.wrapped(style.label(each), letters) for each in groups])


def _told(panel: Panel) -> str:
    """Sentence with the value and interval of every bar of a panel."""
    bars = "; ".join(f"{_name(bar)} {value_words(bar.mean)}" for bar in panel.bars)
    return f"{panel.title}, {panel.quantity}: {bars or 'nothing was measured'}."


def _name(bar: Bar) -> str:
    return f"{bar.name} on {style.label(bar.transport)}" if bar.name else style.label(bar.transport)
