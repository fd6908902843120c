"""Judged comparisons as a forest: each ratio with its interval around 1, and its verdict in words.

The axis is logarithmic, so that a half and a double are equally far from 1. The band is the zone in which a ratio
counts as no difference. A diamond in it is a difference that is sure, and under 5 %. Beside the typical ratio, which is
judged, stands a thin line: the ratio of whole means. A ratio without a verdict is grey and hollow; a triangle is one
that the client limits, too. An interval that reaches out of the figure ends in an arrow.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.design.arms import Measure
from experiments.judge.verdicts import Judged, Verdict
from experiments.show.figures.panels import EVEN, rows_around_one, say, span
from experiments.show.figures.style import (
    DIFFERENT,
    FAINT,
    INK,
    QUIET,
    SAME,
    Picture,
    grid,
    house,
    key,
    legend,
    wrapped,
)
from experiments.show.numbers import has_interval, ratio_words
from experiments.show.sentences import undecided_words, verdict_words

NARROWEST = 1.15
"""Least reach of the axis on either side of 1."""

FARTHEST = 3.0
"""The axis ends at this multiple of the farthest ratio, also if intervals reach farther."""

NAME_LETTERS = 31

ROUND = (1.0, 2.0, 3.0, 5.0, 10.0)
"""Ticks of a decade; a long axis begins at one of them, so that every ratio has a number on its left."""

QUANTITIES: Mapping[Measure, str] = {
    "response": "time of a request",
    "cpu": "processor time of a request",
    "wall": "time for each reply",
}
"""Words for the quantity of a ratio, by its measure."""

_SAME_VERDICTS = (Verdict.EQUIVALENT, Verdict.FLAT)


def picture(name: str, title: str, judged: Sequence[Judged]) -> Picture:
    """The figure with its words, to be drawn when it is wanted."""
    return Picture(name, title, alternative(title, judged), lambda: draw(title, judged))


@house()
def draw(title: str, judged: Sequence[Judged]) -> Figure:
    """A row for each comparison, in the order given, from the top."""
    names = [wrapped(each.comparison.title, NAME_LETTERS) for each in judged]
    said = [_said(each) for each in judged]
    lines = [max(name.count("\n"), text.count("\n")) for name, text in zip(names, said, strict=True)]
    figure, ((axes,),) = grid(title, 1.5 + sum(0.28 + 0.13 * more for more in lines))
    if not judged:
        say(axes, "None of these comparisons has a value yet.")
        return figure
    limits = _span(judged)
    (right,) = rows_around_one(axes, names, limits, judged[0].equivalent, said)
    for row, each in enumerate(judged):
        _draw_row(axes, row, each, limits)
    for tick, each in zip(right.get_ticklabels(), judged, strict=True):
        tick.set_color(_colour(each) if each.rulings and each.verdict is not Verdict.INCONCLUSIVE else QUIET)
    measures = {each.comparison.measure for each in judged}
    quantity = QUANTITIES[judged[0].comparison.measure] if len(measures) == 1 else "time"
    axes.set_xlabel(f"{quantity.capitalize()}, ratio")
    legend(figure, _entries(judged))
    return figure


def _draw_row(axes: Axes, row: int, judged: Judged, limits: tuple[float, float]) -> None:
    colour = _colour(judged)
    span(axes, row + 0.2, judged.whole, colour, limits, across=True, width=0.9)
    span(axes, row, judged.typical, colour, limits, across=True, width=2.0)
    face = "white" if colour == QUIET else colour
    value = min(max(judged.typical.value, limits[0]), limits[1])
    axes.plot([value], [row], marker=_marker(judged), markersize=4, color=colour, mfc=face, linestyle="", zorder=5)
    if judged.comparison.kind in ("growth", "per client"):
        axes.plot([judged.comparison.clients_ratio], [row], marker="|", markersize=12, color=INK, zorder=4)


def _span(judged: Sequence[Judged]) -> tuple[float, float]:
    """The axis: around 1 and every ratio; intervals too, unless they reach too far."""
    values = [1.0, *(each.typical.value for each in judged)]
    values += [each.comparison.clients_ratio for each in judged if each.comparison.kind in ("growth", "per client")]
    bounds = min(values) / FARTHEST, max(values) * FARTHEST
    ends = [
        end for each in judged for at in (each.typical, each.whole) if has_interval(at) for end in (at.low, at.high)
    ]
    low = max(min([1 / NARROWEST, *values, *ends]), bounds[0])
    high = min(max([NARROWEST, *values, *ends]), bounds[1])
    room = 0.04 * math.log(high / low)
    low, high = low * math.exp(-room), high * math.exp(room)
    decade = 10.0 ** math.floor(math.log10(low))
    return (decade * max(each for each in ROUND if each * decade <= low) if high / low >= EVEN else low), high


def _colour(judged: Judged) -> str:
    if not judged.rulings or judged.verdict is Verdict.INCONCLUSIVE:
        return QUIET
    return SAME if judged.verdict in _SAME_VERDICTS else DIFFERENT


def _marker(judged: Judged) -> str:
    """Marker by the kind of the verdict, so that kinds differ in grey, too."""
    if judged.load_share is not None:
        return "^"
    if _colour(judged) == SAME:
        return "s"
    return "D" if _colour(judged) == DIFFERENT and judged.by_less_than_5 else "o"


def _said(judged: Judged) -> str:
    """The numbers and, below, the verdict with the blocks that would decide it."""
    value, ends = ratio_words(judged.typical)
    numbers = f"{value} ({ends})" if has_interval(judged.typical) else f"{value} (few blocks)"
    open_ = undecided_words(judged)
    would = " would decide" if "block" in open_ else ""
    return "\n".join(
        (numbers, *wrapped(verdict_words(judged) + (f": {open_}{would}" if open_ else ""), 27).split("\n"))
    )


def _entries(judged: Sequence[Judged]) -> Iterator[Artist]:
    drawn = {(_colour(each), _marker(each)) for each in judged}
    for colour, marker, label in (
        (DIFFERENT, "o", "different"),
        (DIFFERENT, "D", "different, by less than 5 %"),
        (SAME, "s", "the same, to within 5 %"),
        (QUIET, "o", "no verdict"),
        (QUIET, "^", "no verdict on the server: the client limits it, too"),
    ):
        if (colour, marker) in drawn:
            face = "white" if colour == QUIET else colour
            yield key(label, color=colour, marker=marker, markersize=4, mfc=face, linestyle="-")
    yield key(
        f"thick: {100 * judged[0].confidence:g} % interval of the typical ratio, or within its marker",
        linestyle="-",
        linewidth=2.0,
    )
    yield key("thin: whole means, every pause counted", linestyle="-", linewidth=0.9)
    low, high = judged[0].equivalent
    yield Patch(facecolor=FAINT, label=f"{low:g} to {high:g}: a difference of less than 5 %")
    if any(each.comparison.kind in ("growth", "per client") for each in judged):
        yield key("tick: growth as that of the clients", color=INK, marker="|", markersize=11)


def alternative(title: str, judged: Sequence[Judged]) -> str:
    """The figure in words: each comparison's ratio, interval and verdict."""
    told = [
        f"{each.comparison.title}: {_said(each).replace(chr(10), ', ', 1).replace(chr(10), ' ')}." for each in judged
    ]
    head = title if title.endswith("?") else f"{title}."
    return " ".join((head, *(told or ["None of these comparisons has a value yet."])))
