"""Errors of predictions: measured ÷ foretold, with a row for each kind of arm, and a dot with an interval for each arm.

An arm is a server under a load. A foretold value was predicted before the measurement. The band is the zone of hits.
The axis is logarithmic, so that 0.5 and 2 are equally far from 1. A value beyond the axis is an arrow at the edge. The
names of a row's arms are on the right, in the order of the dots from the top.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.judge.stats import Estimate
from experiments.show.figures import style
from experiments.show.figures.panels import pictured, rows_around_one, span
from experiments.show.numbers import number, percent

ROW = 0.32
"""Height of a row, in inches."""

FARTHEST = 2.0
"""Ratio at the right end of the axis. The left end is the inverse of this ratio."""

NAME_LETTERS, ARMS_LETTERS = 44, 22

SPREAD = 0.7
"""Share of a row's height that the row's dots fill."""


@dataclass(frozen=True, slots=True)
class Off:
    """Row with the kind of its arms, and the ratio measured ÷ foretold of each arm."""

    name: str
    ratios: Sequence[tuple[str, Estimate]]
    """Pairs of an arm's name and the ratio of the arm."""


def picture(name: str, title: str, within: float, rows: Sequence[Off], arms: str) -> style.Picture:
    """Picture of the rows, in the given order from the top.

    ``within``: the largest distance of a hit from 1. ``arms``: the meaning of the arms' names.
    """
    return pictured(name, title, _told(within, rows), lambda: _draw(title, within, rows, arms))


def _draw(title: str, within: float, rows: Sequence[Off], arms: str) -> Figure:
    figure, ((axes,),) = style.grid(title, 1.5 + ROW * max(4, len(rows)))
    names = [style.wrapped(row.name, NAME_LETTERS) for row in rows]
    said = [style.wrapped(", ".join(arm for arm, _ in row.ratios), ARMS_LETTERS) for row in rows]
    rows_around_one(axes, names, (1 / FARTHEST, FARTHEST), (1 - within, 1 + within), said)
    for place, row in enumerate(rows):
        for order, (_, ratio) in enumerate(row.ratios):
            aside = SPREAD * ((order + 0.5) / len(row.ratios) - 0.5)
            _draw_dot(axes, place + aside, ratio, within)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("Measured ÷ predicted")
    entries = (
        Patch(facecolor=style.FAINT, label=f"within {percent(within)}"),
        style.key("a hit", color=style.SAME, marker="o"),
        style.key("a miss", color=style.DIFFERENT, marker="D"),
        style.interval_key(across=True),
        style.key(f"on the right: the {arms} of the dots, from top to bottom"),
    )
    style.legend(figure, entries)
    return figure


def _draw_dot(axes: Axes, y: float, ratio: Estimate, within: float) -> None:
    colour, marker = (style.SAME, "o") if abs(ratio.value - 1) <= within else (style.DIFFERENT, "D")
    ends = (1 / FARTHEST, FARTHEST)
    span(axes, y, ratio, colour, ends, across=True)
    at = min(max(ratio.value, ends[0]), ends[1])
    marker = marker if at == ratio.value else "<" if ratio.value < at else ">"
    axes.plot([at], [y], marker=marker, markersize=4, color=colour, linestyle="", clip_on=False, zorder=4)


def _told(within: float, rows: Sequence[Off]) -> Iterator[str]:
    """Sentences with the number of hits, and with the ratio of every arm."""
    every = [ratio.value for row in rows for _, ratio in row.ratios]
    hits = sum(abs(each - 1) <= within for each in every)
    if rows:
        yield f"Measured ÷ predicted; {hits} of {len(every)} are within {percent(within)}."
    for row in rows:
        yield f"{row.name}: {', '.join(f'{arm} {number(each.value)}' for arm, each in row.ratios)}."
