"""A document's figure beside ours, in one style: a row of panels for each setting, theirs on the left, ours right.

A line is a series by its name; each name has one colour and marker in all panels. Intervals are bars. The two sides
have an axis each: absolute numbers of other machines are context, shapes are what is compared. Every axis begins at 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from experiments.judge.stats import Estimate
from experiments.show.figures.style import MARKERS, Picture, canvas, even_axis, house, legend, say
from experiments.show.numbers import has_interval, number

ROW = 1.75
"""Inches of a row of panels."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line: values by their places on the x-axis. An estimate of one value has no interval."""

    name: str
    points: Sequence[tuple[float, Estimate]]


@dataclass(frozen=True, slots=True)
class Row:
    """One setting: the document's lines, and ours."""

    title: str
    theirs: Sequence[Series]
    ours: Sequence[Series]


@dataclass(frozen=True, slots=True)
class Axis:
    """Axes of the panels. ``ticks``: the places on the x-axis with their labels; they stand at even distances."""

    x: str
    y: str
    ticks: Mapping[float, str] = field(default_factory=dict)
    joined: bool = True
    """True where a line joins the points; False where places are kinds."""


def picture(name: str, title: str, axis: Axis, rows: Sequence[Row]) -> Picture:
    """The figure with its words, to be drawn when it is wanted."""
    return Picture(name, title, alternative(title, rows), lambda: draw(title, axis, rows))


@house()
def draw(title: str, axis: Axis, rows: Sequence[Row]) -> Figure:
    """The rows below each other."""
    figure = canvas(title, 1.1 + ROW * max(1, len(rows)))
    names = list(dict.fromkeys(line.name for row in rows for line in (*row.theirs, *row.ours)))
    panels = figure.subplots(max(1, len(rows)), 2, squeeze=False)
    colours = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    looks = {each: (colours[place % len(colours)], MARKERS[place % len(MARKERS)]) for place, each in enumerate(names)}
    for row, pair in zip(rows, panels, strict=False):
        for axes, lines, whose in ((pair[0], row.theirs, "the document"), (pair[1], row.ours, "here")):
            _draw(axes, lines, axis, looks)
            axes.set_title(f"{row.title}: {whose}", fontsize=9)
    if not rows:
        for axes in panels[0]:
            say(axes, "Nothing was measured.")
    for axes in panels[-1]:
        axes.set_xlabel(axis.x)
    for pair in panels:
        pair[0].set_ylabel(axis.y)
    width = 1.4 if axis.joined else 0.0
    legend(figure, [Line2D([], [], color=c, marker=m, linewidth=width, label=n) for n, (c, m) in looks.items()])
    return figure


def _draw(axes: Axes, lines: Sequence[Series], axis: Axis, looks: Mapping[str, tuple[str, str]]) -> None:
    if not any(line.points for line in lines):
        say(axes, "Nothing was measured.")
        return
    places = {x: place for place, x in enumerate(axis.ticks)}
    most = 0.0
    for number_, line in enumerate(lines):
        colour, marker = looks[line.name]
        aside = 0.06 * (number_ - (len(lines) - 1) / 2)  # so that bars do not hide each other
        at = [places[x] + aside for x, _ in line.points]
        values = [value for _, value in line.points]
        width = 1.4 if axis.joined else 0.0
        axes.plot(at, [each.value for each in values], color=colour, marker=marker, markersize=4, linewidth=width)
        for x, value in zip(at, values, strict=True):
            end = value.high if has_interval(value) and value.high < 3 * value.value else value.value
            if has_interval(value):
                axes.vlines(x, max(0.0, value.low), end, color=colour, linewidth=1.2)
            most = max(most, end)
    axes.set_ylim(0, 1.1 * most or 1.0)
    axes.set_xlim(-0.4, len(places) - 0.6)
    axes.set_xticks(list(places.values()), list(axis.ticks.values()), fontsize=8)
    axes.xaxis.set_minor_locator(NullLocator())
    even_axis(axes.yaxis)


def alternative(title: str, rows: Sequence[Row]) -> str:
    """The figure in words: where each line begins and ends."""
    told = [f"{title}."]
    for row in rows:
        for whose, lines in (("the document", row.theirs), ("here", row.ours)):
            said = "; ".join(
                f"{line.name} {number(line.points[0][1].value)} to {number(line.points[-1][1].value)}"
                for line in lines
                if line.points
            )
            told.append(f"{row.title}, {whose}: {said or 'nothing was measured'}.")
    return " ".join(told)
