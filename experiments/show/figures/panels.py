"""Parts that all figures share: marks with intervals, lines, rows, stacked bars and axes.

An interval that is longer than its panel is cut, and ends in an arrow. A value that a gate refuses is a cross, in the
colour of its line. A missing point breaks a line. Left out: titles, legends and colours, which ``style`` has.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from experiments.judge.stats import Estimate
from experiments.show.figures.style import FAINT, PALE, QUIET, REFUSED, Picture, Stroke, grid, house, wrapped
from experiments.show.numbers import has_interval

CUT = 2.0
"""A scale ends at most at this multiple of the highest value. A longer interval is cut there."""

EVEN = 4.0
"""Ratio between the ends of a logarithmic axis. An axis with a smaller ratio has evenly spaced ticks."""

STACKED = (("0.88", ""), ("C0", ""), ("C4", ""), ("C1", ""), ("C6", "////"), ("0.35", "...."))
"""Colours and hatching of the parts of a stacked bar. The parts look different on a grey print too."""

HALO = [patheffects.withStroke(linewidth=3, foreground="white")]
"""White edge around a line. With this edge the line is visible on any bar."""


def pictured(
    name: str,
    title: str,
    told: Iterable[str],
    draw: Callable[[], Figure],
    nothing: str = "Nothing was measured for this figure.",
) -> Picture:
    """Picture that ``draw`` draws, in the style sheet of all figures. ``told``: sentences on the figure's content.

    Without any sentence, the figure shows the text ``nothing``, and ``draw`` is not called.
    """
    head, sentences = title if title.endswith("?") else f"{title}.", [*told]

    def empty() -> Figure:
        figure, ((axes,),) = grid(title, 2.0)
        say(axes, nothing)
        return figure

    return Picture(name, title, " ".join((head, *(sentences or [nothing]))), house()(draw if sentences else empty))


def highest(estimates: Iterable[Estimate]) -> float:
    """Upper end of a scale that begins at 0. 0 without values. A long interval reaches beyond this end (``CUT``)."""
    every = list(estimates)
    most = max((each.value for each in every), default=0.0)
    return max(most, min(max((each.high for each in every if has_interval(each)), default=0.0), CUT * most))


def span(
    axes: Axes,
    place: float,
    of: Estimate,
    colour: str,
    ends: tuple[float, float],
    across: bool,
    width: float = 1.2,
    halo: bool = False,
) -> None:
    """Draw the interval of an estimate at a place: along the x-axis if ``across``, else upright.

    An estimate without an interval is not drawn. ``ends``: the ends of the scale. An interval beyond an end is cut, and
    ends in an arrow. ``halo``: a white edge, which makes the interval visible on a bar.
    """
    if not has_interval(of):
        return
    draw = axes.hlines if across else axes.vlines
    draw(
        place,
        max(of.low, ends[0]),
        min(of.high, ends[1]),
        color=colour,
        linewidth=width,
        zorder=3,
        path_effects=HALO * halo,
    )
    for end, is_beyond, arrow in ((ends[0], of.low < ends[0], "<v"), (ends[1], of.high > ends[1], ">^")):
        if is_beyond:
            x, y = (end, place) if across else (place, end)
            axes.plot([x], [y], marker=arrow[not across], markersize=4, color=colour, clip_on=False, zorder=4)


def mark(
    axes: Axes,
    place: float,
    of: Estimate,
    stroke: Stroke,
    ends: tuple[float, float] = (0.0, math.inf),
    across: bool = False,
    refused: bool = False,
    hollow: bool = False,
) -> None:
    """Draw the marker and the interval of an estimate at a place (``span``). If ``refused`` by a gate, the marker is a
    cross."""
    span(axes, place, of, stroke.colour, ends, across)
    x, y = (of.value, place) if across else (place, of.value)
    look: Mapping[str, Any] = REFUSED if refused else {"marker": stroke.marker, "markersize": stroke.size}
    face = "white" if hollow else stroke.colour
    axes.plot([x], [y], color=stroke.colour, mfc=face, linestyle="", clip_on=False, zorder=4, **look)


def line(axes: Axes, points: Iterable[tuple[float, float | None]], stroke: Stroke, **look: Any) -> None:
    """Draw a line through points, in the stroke's colour and dashes. A point without a value breaks the line."""
    how = {"color": stroke.colour, "linestyle": stroke.dashes, "linewidth": stroke.width, **look}
    axes.plot(*columns((x, math.nan if y is None else y) for x, y in points), **how)


def columns(points: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Places and values of points, as two lists for matplotlib's ``plot``."""
    every = [*points]
    return [x for x, _ in every], [y for _, y in every]


def rows(axes: Axes, names: Sequence[str], said: Sequence[str] = ()) -> Sequence[Axis]:
    """Set up named rows, from the top. ``said``: texts at the right ends of the rows. Returns a sequence with the axis
    of these texts, or an empty sequence."""
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    if not said:
        return ()
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(said)), said, fontsize=8)
    right.spines["right"].set_visible(False)
    right.tick_params(axis="y", length=0)
    return (right.yaxis,)


def rows_around_one(
    axes: Axes, names: Sequence[str], limits: tuple[float, float], band: tuple[float, float], said: Sequence[str] = ()
) -> Sequence[Axis]:
    """Set up rows of ratios on a logarithmic axis, with a line at 1. ``band``: the ratios that count as 1. Returns the
    same as ``rows``."""
    given = rows(axes, names, said)
    axes.grid(visible=False, axis="x")
    axes.grid(visible=True, axis="y")
    axes.set_xscale("log")
    axes.set_xlim(*limits)
    axes.axvspan(*band, color=FAINT, linewidth=0, zorder=0)
    axes.axvline(1, color=QUIET, linewidth=0.9, zorder=1)
    axes.spines["left"].set_visible(False)
    log_axis(axes.xaxis, *limits)
    return given


def stack(axes: Axes, row: int, parts: Sequence[float]) -> float:
    """Draw a bar of several parts in a row, from the left. Returns the place at which the bar ends."""
    left = 0.0
    for part, (colour, hatch) in zip(parts, STACKED, strict=False):
        axes.barh(row, part, left=left, height=0.62, color=colour, hatch=hatch, edgecolor="white", linewidth=0.7)
        left += part
    return left


def stack_keys(names: Iterable[str]) -> Iterable[Patch]:
    """Legend entries for the parts of stacked bars."""
    looks = zip(names, STACKED, strict=False)
    return (Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=name) for name, (colour, hatch) in looks)


def say(axes: Axes, text: str, letters: int = 34) -> None:
    """Write a sentence in a panel without data. ``letters``: largest number of letters in a line."""
    axes.text(0.5, 0.5, wrapped(text, letters), transform=axes.transAxes, ha="center", va="center", color=QUIET)
    axes.set_facecolor(PALE)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_visible(False)  # the ticks stay, since a panel with data may share them
    axes.spines[:].set_visible(False)


def even_axis(axis: Axis, end: float = math.inf, most: int = 5) -> None:
    """Set about ``most`` round, evenly spaced ticks, as plain numbers. No tick is beyond ``end``."""
    ticks = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])
    found = ticks if end == math.inf else FixedLocator([at for at in ticks.tick_values(0, end) if at <= end])
    axis.set_major_locator(found)
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


def log_axis(axis: Axis, low: float, high: float, dense: float = 300) -> None:
    """Set a few round ticks on a logarithmic axis from ``low`` to ``high``, as plain numbers.

    If ``high`` ÷ ``low`` is ``dense`` or more, only the powers of ten have ticks.
    """
    if high / low < EVEN:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    else:
        subs = (1.0, 2.0, 3.0, 5.0) if high / low < 60 else (1.0, 2.0, 5.0) if high / low < dense else (1.0,)
        axis.set_major_locator(LogLocator(subs=subs, numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


def named_axis(axis: Axis, ticks: Collection[tuple[float, str]]) -> None:
    """Set ticks at given places, with given texts."""
    axis.set_ticks([at for at, _ in ticks], [text for _, text in ticks])
    axis.set_minor_locator(NullLocator())


def plain(value: float) -> str:
    """Text of a number at a tick: ``0.5``, ``20``, ``12,000``."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{float(f'{value:.3g}'):.10g}"
