"""Forest plot of judged comparisons: each ratio with its interval around 1, and the verdict in words.

The axis is logarithmic, so that 0.5 and 2 are equally far from 1. The band is the zone of ratios that count as no
difference. A diamond in the band is a proved difference of less than 5 %. The verdict is on the typical ratio, whose
interval is the thick line. The thin line below is the interval of the ratio of plain means. A ratio without a verdict
is grey and hollow. A triangle is a ratio that client and server together determine. An interval that is longer than the
axis ends in an arrow.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.design.arms import Measure
from experiments.judge.verdicts import Judged, Verdict
from experiments.show.figures import style
from experiments.show.figures.panels import EVEN, pictured, rows_around_one, span
from experiments.show.numbers import has_interval, ratio_words
from experiments.show.sentences import undecided_words, verdict_words

NARROWEST = 1.15
"""Smallest ratio at the right end of the axis. The left end is at most the inverse of this ratio."""

FARTHEST = 3.0
"""Largest factor from the farthest ratio to the end of the axis. A longer interval is cut."""

NAME_LETTERS = 31

ROUND = (1.0, 2.0, 3.0, 5.0, 10.0)
"""Numbers at which a long axis may begin, times a power of ten. So most ratios have a tick on their left."""

QUANTITIES: Mapping[Measure, str] = {
    "response": "time of a request",
    "cpu": "processor time of a request",
    "wall": "time for each reply",
}
"""Words for the quantity of a ratio, by the comparison's measure."""

_SAME_VERDICTS = (Verdict.EQUIVALENT, Verdict.FLAT, Verdict.PROPORTIONAL)


def picture(name: str, title: str, judged: Sequence[Judged]) -> style.Picture:
    """Picture with a row for each comparison, in the given order from the top."""
    nothing = "None of these comparisons has a value yet."
    return pictured(name, title, map(_told, judged), lambda: _draw(title, judged), nothing)


def _draw(title: str, judged: Sequence[Judged]) -> Figure:
    names = [style.wrapped(each.comparison.title, NAME_LETTERS) for each in judged]
    said = [_said(each) for each in judged]
    lines = [max(name.count("\n"), text.count("\n")) for name, text in zip(names, said, strict=True)]
    figure, ((axes,),) = style.grid(title, 1.5 + sum(0.28 + 0.13 * more for more in lines))
    limits = _span(judged)
    (right,) = rows_around_one(axes, names, limits, judged[0].equivalent, said)
    for row, each in enumerate(judged):
        _draw_row(axes, row, each, limits)
    for tick, each in zip(right.get_ticklabels(), judged, strict=True):
        tick.set_color(_colour(each))
    measures = {each.comparison.measure for each in judged}
    quantity = QUANTITIES[judged[0].comparison.measure] if len(measures) == 1 else "time"
    axes.set_xlabel(f"{quantity.capitalize()}, ratio")
    style.legend(figure, _entries(judged))
    return figure


def _draw_row(axes: Axes, row: int, judged: Judged, limits: tuple[float, float]) -> None:
    colour = _colour(judged)
    span(axes, row + 0.2, judged.whole, colour, limits, across=True, width=0.9)
    span(axes, row, judged.typical, colour, limits, across=True, width=2.0)
    face = "white" if colour == style.QUIET else colour
    value = min(max(judged.typical.value, limits[0]), limits[1])
    axes.plot([value], [row], marker=_marker(judged), markersize=4, color=colour, mfc=face, linestyle="", zorder=5)
    if judged.comparison.kind in ("growth", "per client"):
        axes.plot([judged.comparison.clients_ratio], [row], marker="|", markersize=12, color=style.INK, zorder=4)


def _span(judged: Sequence[Judged]) -> tuple[float, float]:
    """Ends of the axis. The axis contains 1, every ratio, and every interval that is not too long."""
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
    """Colour of a verdict: for a difference, for equality, or for no verdict."""
    if not judged.rulings or judged.verdict is Verdict.INCONCLUSIVE:
        return style.QUIET
    return style.SAME if judged.verdict in _SAME_VERDICTS else style.DIFFERENT


def _marker(judged: Judged) -> str:
    """Marker for a kind of verdict. The markers differ on a grey print too."""
    if judged.load_share is not None:
        return "^"
    if _colour(judged) == style.SAME:
        return "s"
    return "D" if _colour(judged) == style.DIFFERENT and judged.by_less_than_5 else "o"


def _said(judged: Judged) -> str:
    """Text of a row: the numbers, and the verdict. An open verdict has the blocks that would decide, or the gate."""
    value, ends = ratio_words(judged.typical)
    numbers = f"{value} ({ends})" if has_interval(judged.typical) else f"{value} (few blocks)"
    open_ = undecided_words(judged)
    would = " would decide" if "block" in open_ else ""
    return "\n".join(
        (numbers, *style.wrapped(verdict_words(judged) + (f": {open_}{would}" if open_ else ""), 27).split("\n"))
    )


def _entries(judged: Sequence[Judged]) -> Iterator[Artist]:
    drawn = {(_colour(each), _marker(each)) for each in judged}
    for colour, marker, label in (
        (style.DIFFERENT, "o", "different"),
        (style.DIFFERENT, "D", "different, by less than 5 %"),
        (style.SAME, "s", "the same, to within 5 %"),
        (style.QUIET, "o", "no verdict"),
        (style.QUIET, "^", "no verdict on the server: the client limits it, too"),
    ):
        if (colour, marker) in drawn:
            face = "white" if colour == style.QUIET else colour
            yield style.key(label, color=colour, marker=marker, markersize=4, mfc=face, linestyle="-")
    yield style.key(
        f"thick: {100 * judged[0].confidence:g} % interval of the typical ratio, or within its marker",
        linestyle="-",
        linewidth=2.0,
    )
    yield style.key("thin: ratio of plain means, long pauses included", linestyle="-", linewidth=0.9)
    low, high = judged[0].equivalent
    yield Patch(facecolor=style.FAINT, label=f"{low:g} to {high:g}: a difference of less than 5 %")
    if any(each.comparison.kind in ("growth", "per client") for each in judged):
        yield style.key("tick: latency grows as the number of clients", color=style.INK, marker="|", markersize=11)


def _told(judged: Judged) -> str:
    """Sentence with the ratio, the interval and the verdict of a comparison."""
    return f"{judged.comparison.title}: {_said(judged).replace(chr(10), ', ', 1).replace(chr(10), ' ')}."
