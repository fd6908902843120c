"""Errors of predictions: measured ÷ foretold, a row for each kind of arm, a dot with its interval for each arm.

The band is what counts as a hit. The axis is logarithmic, so that a half and a double lie as far from 1. What lies out
of the figure is an arrow at its edge.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from experiments.judge.stats import Estimate
from experiments.show.figures.style import (
    DIFFERENT,
    FAINT,
    INK,
    SAME,
    Picture,
    canvas,
    house,
    legend,
    rows_around_one,
    say,
    wrapped,
)
from experiments.show.numbers import has_interval, number, percent

ROW = 0.32
"""Height of a row, in inches."""

FARTHEST = 2.0
"""The axis ends at this many times what was foretold, and at its inverse."""

NAME_LETTERS = 44

SPREAD = 0.7
"""Share of a row's height that its dots fill."""


@dataclass(frozen=True, slots=True)
class Off:
    """One row: the kind of its arms, and measured ÷ foretold of each."""

    name: str
    ratios: Sequence[Estimate]


def picture(name: str, title: str, within: float, rows: Sequence[Off]) -> Picture:
    """The figure with its words, to be drawn when it is wanted. ``within``: how far a hit may be off."""
    return Picture(name, title, alternative(title, within, rows), lambda: draw(title, within, rows))


@house()
def draw(title: str, within: float, rows: Sequence[Off]) -> Figure:
    """The rows in the order given, from the top, and so the dots of each."""
    figure = canvas(title, 1.5 + ROW * max(4, len(rows)))
    axes = figure.subplots()
    if not rows:
        say(axes, "Nothing was measured for this figure.")
        return figure
    names = [wrapped(row.name, NAME_LETTERS) for row in rows]
    rows_around_one(axes, names, (1 / FARTHEST, FARTHEST), (1 - within, 1 + within))
    for place, row in enumerate(rows):
        for order, ratio in enumerate(row.ratios):
            aside = SPREAD * ((order + 0.5) / len(row.ratios) - 0.5)
            _draw(axes, place + aside, ratio, within)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("Measured ÷ foretold")
    looks = {SAME: "a hit", DIFFERENT: "a miss"}
    dots = [Line2D([], [], color=c, marker="o", linestyle="", label=text) for c, text in looks.items()]
    band = Patch(facecolor=FAINT, label=f"within {percent(within)}")
    legend(figure, [band, *dots, Line2D([], [], color=INK, linewidth=1.2, label="95 % interval")])
    return figure


def _draw(axes: Axes, y: float, ratio: Estimate, within: float) -> None:
    colour = SAME if abs(ratio.value - 1) <= within else DIFFERENT
    low, at, high = (min(max(end, 1 / FARTHEST), FARTHEST) for end in (ratio.low, ratio.value, ratio.high))
    if has_interval(ratio):
        axes.hlines(y, low, high, color=colour, linewidth=1.1)
    marker = "o" if at == ratio.value else "<" if ratio.value < at else ">"
    axes.plot([at], [y], marker=marker, markersize=4, color=colour, linestyle="", clip_on=False)


def alternative(title: str, within: float, rows: Sequence[Off]) -> str:
    """The figure in words: every arm's ratio."""
    every = [ratio.value for row in rows for ratio in row.ratios]
    hits = sum(abs(each - 1) <= within for each in every)
    told = [f"{title}. Measured ÷ foretold; {hits} of {len(every)} are within {percent(within)}."]
    told += [f"{row.name}: {', '.join(number(each.value) for each in row.ratios)}." for row in rows]
    return " ".join(told)
