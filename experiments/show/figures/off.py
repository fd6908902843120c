"""Errors of predictions: measured ÷ foretold, a row for each kind of arm, a dot with its interval for each arm.

The band is the zone of hits. The axis is logarithmic, so that a half and a double are equally far from 1. A value
beyond the figure is an arrow at its edge. A row's arms are named on the right, in the order of its dots from the top.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.judge.stats import Estimate
from experiments.show.figures.panels import rows_around_one, say, span
from experiments.show.figures.style import (
    DIFFERENT,
    FAINT,
    SAME,
    Picture,
    grid,
    house,
    interval_key,
    key,
    legend,
    wrapped,
)
from experiments.show.numbers import number, percent

ROW = 0.32
"""Height of a row, in inches."""

FARTHEST = 2.0
"""The axis ends at this multiple of the foretold value, and at its inverse."""

NAME_LETTERS, ARMS_LETTERS = 44, 22

SPREAD = 0.7
"""Share of a row's height that its dots fill."""


@dataclass(frozen=True, slots=True)
class Off:
    """One row: the kind of its arms, and measured ÷ foretold of each."""

    name: str
    ratios: Sequence[tuple[str, Estimate]]
    """Name of each arm, and its ratio."""


def picture(name: str, title: str, within: float, rows: Sequence[Off], arms: str) -> Picture:
    """The figure with its words, to be drawn when it is wanted. ``within``: largest deviation of a hit. ``arms``:
    meaning of the arms' names."""
    return Picture(name, title, alternative(title, within, rows), lambda: draw(title, within, rows, arms))


@house()
def draw(title: str, within: float, rows: Sequence[Off], arms: str) -> Figure:
    """Rows in the order given, from the top. A row's dots are in this order too."""
    figure, ((axes,),) = grid(title, 1.5 + ROW * max(4, len(rows)))
    if not rows:
        say(axes, "Nothing was measured for this figure.")
        return figure
    names = [wrapped(row.name, NAME_LETTERS) for row in rows]
    said = [wrapped(", ".join(arm for arm, _ in row.ratios), ARMS_LETTERS) for row in rows]
    rows_around_one(axes, names, (1 / FARTHEST, FARTHEST), (1 - within, 1 + within), said)
    for place, row in enumerate(rows):
        for order, (_, ratio) in enumerate(row.ratios):
            aside = SPREAD * ((order + 0.5) / len(row.ratios) - 0.5)
            _draw(axes, place + aside, ratio, within)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("Measured ÷ foretold")
    looks = {SAME: ("a hit", "o"), DIFFERENT: ("a miss", "D")}
    dots = [key(text, color=colour, marker=marker) for colour, (text, marker) in looks.items()]
    right = key(f"on the right: {arms} of the dots, from the top")
    legend(figure, [Patch(facecolor=FAINT, label=f"within {percent(within)}"), *dots, interval_key(across=True), right])
    return figure


def _draw(axes: Axes, y: float, ratio: Estimate, within: float) -> None:
    colour, marker = (SAME, "o") if abs(ratio.value - 1) <= within else (DIFFERENT, "D")
    ends = (1 / FARTHEST, FARTHEST)
    span(axes, y, ratio, colour, ends, across=True)
    at = min(max(ratio.value, ends[0]), ends[1])
    marker = marker if at == ratio.value else "<" if ratio.value < at else ">"
    axes.plot([at], [y], marker=marker, markersize=4, color=colour, linestyle="", clip_on=False, zorder=4)


def alternative(title: str, within: float, rows: Sequence[Off]) -> str:
    """The figure in words: every arm's ratio."""
    every = [ratio.value for row in rows for _, ratio in row.ratios]
    hits = sum(abs(each - 1) <= within for each in every)
    told = [f"{title}. Measured ÷ foretold; {hits} of {len(every)} are within {percent(within)}."]
    told += [f"{row.name}: {', '.join(f'{arm} {number(each.value)}' for arm, each in row.ratios)}." for row in rows]
    return " ".join(told)
