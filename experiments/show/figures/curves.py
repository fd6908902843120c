"""Means over a quantity: panels in rows, a line for each setting, and every point at its value on a numeric axis.

A point has its 95 % interval, if known. A dotted line shows the values of a formula. Panels that are compared share a
scale, even in different figures. Left out: latency over numbers of clients, which ``clients`` draws.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.judge.stats import Estimate
from experiments.show.figures import style
from experiments.show.figures.panels import even_axis, highest, line, log_axis, mark, named_axis, pictured, say
from experiments.show.numbers import has_interval, value_words

PANEL_LETTERS = 72
"""Number of letters that fit in the titles of all panels, side by side."""


@dataclass(frozen=True, slots=True)
class Line:
    """Line: means of one setting, in the figure's unit, by ascending place on the x-axis."""

    name: str
    transport: str
    """Transport that gives the line its colour. A line without a transport gets a colour by its order."""
    points: Sequence[tuple[float, Estimate]]
    """Points: place on the x-axis, and mean with interval."""
    formula: Sequence[tuple[float, float]] = ()
    """Points of a dotted line: place on the x-axis, and value of a formula."""
    hollow: Collection[float] = ()
    """Places on the x-axis of the hollow points."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Panel with lines."""

    title: str
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Scale:
    """Axes of the panels: quantities with units (``x``, ``y``), and the places and texts of the ticks on the x-axis."""

    x: str
    y: str
    ticks: Sequence[tuple[float, str]]
    formula: str = ""
    """Name of the dotted lines in the legend."""
    hollow: str = ""
    """Meaning of the hollow points, for the legend."""
    log_x: bool = True
    log_y: bool = False
    holds_formula: bool = False
    """True if the y-axis also spans the dotted lines. Otherwise the y-axis spans only the points."""
    joined: bool = True
    """True if a line joins the points. False if the places are kinds, which have no order."""
    columns: int = 4
    shared: Literal["all", "row", "none"] = "all"
    """Panels that share one y-axis: all panels, or the panels of a row. ``none``: each panel has its own y-axis."""


def picture(
    name: str, title: str, scale: Scale, panels: Sequence[Panel], alike: Sequence[Sequence[Panel]] = ()
) -> style.Picture:
    """Picture of the panels in rows. ``alike``: the panels of other figures. A y-axis also spans the panels at the same
    positions in these figures."""
    return pictured(name, title, _told(scale, panels), lambda: _draw(title, scale, panels, alike))


def _draw(title: str, scale: Scale, panels: Sequence[Panel], alike: Sequence[Sequence[Panel]]) -> Figure:
    columns = min(scale.columns, len(panels))
    several = len(panels) > columns
    height = 1.1 + 2.1 * -(-len(panels) // columns) if several else 3.6
    figure, axes = style.grid(title, height, -(-len(panels) // columns), columns, sharey=scale.shared)
    drawn = style.overlaid(style.strokes((line.transport, line.name) for panel in panels for line in panel.lines))
    for own, panel in zip(axes.flat, panels, strict=False):
        _draw_panel(own, scale, panel, drawn, PANEL_LETTERS // columns)
    size = {"all": len(panels), "row": columns, "none": 1}[scale.shared]
    for group in (slice(first, first + size) for first in range(0, len(panels), size)):
        compared = [panel for each in (panels, *alike) for panel in each[group]]
        for own in axes.flat[: len(panels)][group]:
            _set_scale(own, scale, compared)
    for own in axes[-1]:
        own.set_xlabel(scale.x)
    for own in axes[:, 0]:
        own.set_ylabel(scale.y)
    style.legend(figure, _entries(scale, panels, drawn))
    return figure


def _means(panel: Panel) -> list[Estimate]:
    return [mean for line in panel.lines for _, mean in line.points]


def _set_scale(axes: Axes, scale: Scale, panels: Sequence[Panel]) -> None:
    """Set the y-axis so that the axis spans the values of all these panels."""
    means = [mean for panel in panels for mean in _means(panel)]
    others = [y for panel in panels for line in panel.lines for _, y in line.formula if scale.holds_formula]
    heights = [*others, *(mean.value for mean in means)]
    if not heights:
        return
    if scale.log_y:
        axes.set_yscale("log")
        low, high = min(heights) / 1.5, max(heights) * 1.5
        axes.set_ylim(low, high)
        log_axis(axes.yaxis, low, high)
    else:
        axes.set_ylim(0, 1.12 * max(*others, highest(means)) if others else 1.12 * highest(means))
        even_axis(axes.yaxis)


def _draw_panel(axes: Axes, scale: Scale, panel: Panel, drawn: style.Strokes, letters: int) -> None:
    axes.set_title(style.wrapped(panel.title, letters))
    places = [x for x, _ in scale.ticks]
    if scale.log_x:
        axes.set_xscale("log")
        axes.set_xlim(min(places) / 1.8, max(places) * 1.8)
    else:
        room = 0.08 * (max(places) - min(places)) or 1.0
        axes.set_xlim(min(places) - room, max(places) + room)
    named_axis(axes.xaxis, scale.ticks)
    for each in panel.lines:
        stroke = drawn[each.transport, each.name]
        if each.formula:
            line(axes, _seen(axes, each.formula), stroke, linestyle=style.DOTTED, linewidth=1.1)
        elif scale.joined:
            line(axes, [(x, mean.value) for x, mean in each.points], stroke)
        for x, mean in each.points:
            mark(axes, x, mean, stroke, hollow=x in each.hollow)
    if not _means(panel):
        say(axes, "Nothing was measured here.", letters)


def _seen(axes: Axes, formula: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Points of a formula's line. A single value becomes a short line, so that the value is visible."""
    if len(formula) > 1:
        return formula
    ((x, y),) = formula
    low, high = axes.get_xlim()
    aside = 0.07 * (high - low)
    return [(max(low, x - aside), y), (min(high, x + aside), y)]


def _entries(scale: Scale, panels: Sequence[Panel], drawn: style.Strokes) -> Iterator[Artist]:
    lines = [line for panel in panels for line in panel.lines]
    dotted = {(line.transport, line.name) for line in lines if line.formula}
    for (transport, name), each in drawn.items():
        text = ", ".join(filter(None, (name, style.label(transport) if transport else "")))
        yield style.key_of(each, text, line=scale.joined and (transport, name) not in dotted)
    if dotted:
        yield style.key(scale.formula, linestyle=style.DOTTED)
    if any(has_interval(mean) for panel in panels for mean in _means(panel)):
        yield style.interval_key()
    if any(line.hollow for line in lines):
        yield style.key(scale.hollow, marker="o", mfc="white")


def _told(scale: Scale, panels: Sequence[Panel]) -> Iterator[str]:
    """Sentences with the value and the interval of every point."""
    texts = dict(scale.ticks)
    if panels:
        yield f"{scale.y} against {scale.x}."
    for panel in panels:
        for each in panel.lines:
            means = "; ".join(f"{texts.get(x, f'{x:g}')}: {value_words(mean)}" for x, mean in each.points)
            where = " on ".join(filter(None, (each.name, style.label(each.transport) if each.transport else "")))
            yield f"{panel.title}, {where}: {means or 'nothing was measured'}."
