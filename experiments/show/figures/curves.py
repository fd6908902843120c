"""Means over a quantity that spans decades: panels side by side on one scale, a line for each setting.

Points have 95 % intervals, where there are any. Beside a line may stand what a formula says of it, and points of a
document, which are grey and hollow. Left out: latency over numbers of clients, which ``clients`` draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from experiments.judge.stats import Estimate
from experiments.show.figures.style import (
    INK,
    QUIET,
    Picture,
    Stroke,
    canvas,
    even_axis,
    house,
    label,
    legend,
    log_axis,
    say,
    strokes,
    wrapped,
)
from experiments.show.numbers import has_interval, number, times_between

PANEL_LETTERS = 72
"""Letters of all panels' titles that fit side by side."""

APART = 0.06
"""Distance of the lines of a panel, in decades, so that no interval hides another's: where places are levels."""


@dataclass(frozen=True, slots=True)
class Line:
    """Means of one setting, in the figure's unit, by ascending place on the axis."""

    name: str
    transport: str
    points: Sequence[tuple[float, Estimate]]
    formula: Sequence[tuple[float, float]] = ()
    """Values of a formula, drawn as a dotted line beside it."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; ``document`` are points of the document that is reproduced."""

    title: str
    lines: Sequence[Line]
    document: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class Scale:
    """Axes: their quantities with units; the places on the lower one that have a tick, and the ticks' texts."""

    x: str
    y: str
    ticks: Sequence[tuple[float, str]]
    formula: str = ""
    """Name of the dotted lines."""
    log_y: bool = False
    holds_formula: bool = False
    """True where the upper axis reaches as far as the dotted lines; else it reaches as far as the points."""
    apart: float = APART
    """Distance of the lines, in decades."""


def picture(name: str, title: str, scale: Scale, panels: Sequence[Panel]) -> Picture:
    """The figure with its words, to be drawn when it is wanted."""
    return Picture(name, title, alternative(title, scale, panels), lambda: draw(title, scale, panels))


@house()
def draw(title: str, scale: Scale, panels: Sequence[Panel]) -> Figure:
    """The panels side by side; the lower axis is logarithmic."""
    figure = canvas(title, 3.6)
    row = figure.subplots(1, max(1, len(panels)), sharey=True, squeeze=False)[0]
    drawn = strokes((line.transport, line.name) for panel in panels for line in panel.lines)
    for axes, panel in zip(row, panels, strict=False):
        _draw(axes, scale, panel, drawn, PANEL_LETTERS // len(panels))
    heights = [mean.value for panel in panels for line in panel.lines for _, mean in line.points]
    heights += [y for panel in panels for _, y in panel.document]
    if heights and scale.holds_formula:
        heights += [y for panel in panels for line in panel.lines for _, y in line.formula]
    if not heights:
        say(row[0], "Nothing was measured for this figure.")
        return figure
    if scale.log_y:
        row[0].set_yscale("log")
        low, high = min(heights) / 1.5, max(heights) * 1.5
        row[0].set_ylim(low, high)
        log_axis(row[0].yaxis, low, high)
    else:
        row[0].set_ylim(0, 1.12 * max(heights))
        even_axis(row[0].yaxis)
    row[0].set_ylabel(scale.y)
    legend(figure, _entries(scale, panels, drawn))
    return figure


def _draw(axes: Axes, scale: Scale, panel: Panel, drawn: dict[tuple[str, str], Stroke], letters: int) -> None:
    axes.set_title(wrapped(panel.title, letters))
    axes.set_xscale("log")
    axes.set_xlabel(scale.x)
    places = [x for x, _ in scale.ticks]
    texts = dict(scale.ticks)
    axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: texts[min(places, key=lambda x: abs(x - value))]))
    axes.set_xlim(min(places) / 1.8, max(places) * 1.8)
    for order, line in enumerate(panel.lines):
        stroke = drawn[line.transport, line.name]
        aside = 10 ** (scale.apart * (order - (len(panel.lines) - 1) / 2))
        x, y = [place * aside for place, _ in line.points], [mean.value for _, mean in line.points]
        axes.plot(x, y, color=stroke.colour, marker=stroke.marker, linestyle="" if line.formula else stroke.dashes)
        for place, (_, mean) in zip(x, line.points, strict=True):
            if has_interval(mean):
                axes.vlines(place, mean.low, mean.high, color=stroke.colour, linewidth=1.1)
        axes.plot(*_columns(line.formula), color=stroke.colour, linestyle=(0, (1, 1.6)), linewidth=1.1)
    axes.plot(*_columns(panel.document), color=QUIET, marker="o", mfc="none", linestyle="")
    if not any(line.points for line in panel.lines):
        say(axes, "Nothing was measured here.", letters)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _entries(scale: Scale, panels: Sequence[Panel], drawn: dict[tuple[str, str], Stroke]) -> list[Artist]:
    lines = [line for panel in panels for line in panel.lines]
    dashed = {(line.transport, line.name): not line.formula for line in lines}
    entries: list[Artist] = [
        Line2D(
            [],
            [],
            color=each.colour,
            marker=each.marker,
            linestyle=each.dashes if dashed[transport, name] else "",
            label=f"{name}, {label(transport)}" if name else label(transport),
        )
        for (transport, name), each in drawn.items()
    ]
    if any(line.formula for line in lines):
        entries.append(Line2D([], [], color=QUIET, linestyle=(0, (1, 1.6)), label=scale.formula))
    if any(panel.document for panel in panels):
        entries.append(Line2D([], [], color=QUIET, marker="o", mfc="none", linestyle="", label="the document"))
    if any(has_interval(mean) for line in lines for _, mean in line.points):
        entries.append(Line2D([], [], color=INK, marker="|", markersize=11, linestyle="", label="95 % interval"))
    return entries


def alternative(title: str, scale: Scale, panels: Sequence[Panel]) -> str:
    """The figure in words: every point's value and interval."""
    texts = dict(scale.ticks)
    told = [f"{title}. {scale.y} against {scale.x}."]
    for panel in panels:
        for line in panel.lines:
            means = "; ".join(f"{texts.get(x, f'{x:g}')}: {_value(mean)}" for x, mean in line.points)
            where = f"{line.name} on {label(line.transport)}" if line.name else label(line.transport)
            told.append(f"{panel.title}, {where}: {means or 'nothing was measured'}.")
        if panel.document:
            values = "; ".join(f"{texts.get(x, f'{x:g}')}: {number(y)}" for x, y in panel.document)
            told.append(f"{panel.title}, the document: {values}.")
    return " ".join(told)


def _value(mean: Estimate) -> str:
    return number(mean.value) + (f" ({times_between(mean, 1)})" if has_interval(mean) else "")
