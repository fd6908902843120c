"""Parts of a cost: a stacked bar for each setting, in its unit, and beside it as shares of the whole.

The sum stands at the bar's end. A part that came out under 0, as a small difference of two large numbers may, is drawn
as nothing; the words have its number. Nothing here has a verdict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.show.figures.style import QUIET, Picture, canvas, even_axis, house, legend, say, wrapped
from experiments.show.numbers import number

COLOURS = ("0.62", "C0", "C1", "C4", "C2", "C5")
"""Colours of the parts, in their order: the first is grey, the others are from the style's cycle."""

NAME_LETTERS = 20


@dataclass(frozen=True, slots=True)
class Bar:
    """One setting: its label, and its parts by name. All bars of a figure have the same parts, six at most."""

    label: str
    parts: Mapping[str, float]


def picture(name: str, title: str, quantity: str, bars: Sequence[Bar]) -> Picture:
    """The figure with its words, to be drawn when it is wanted; ``quantity`` has its unit."""
    return Picture(name, title, alternative(title, quantity, bars), lambda: draw(title, quantity, bars))


@house()
def draw(title: str, quantity: str, bars: Sequence[Bar]) -> Figure:
    """A row for each setting, in the order given, from the top."""
    figure = canvas(title, 1.7 + 0.42 * max(1, len(bars)))
    whole, share = figure.subplots(1, 2, sharey=True, width_ratios=(1.25, 1))
    if not bars:
        for axes in (whole, share):
            say(axes, "Nothing was measured for this figure.", 24)
        return figure
    totals = [sum(bar.parts.values()) for bar in bars]
    for row, (bar, total) in enumerate(zip(bars, totals, strict=True)):
        drawn = [max(0.0, part) for part in bar.parts.values()]
        end = _stack(whole, row, drawn)
        _stack(share, row, [100 * part / sum(drawn) if any(drawn) else 0.0 for part in drawn])
        whole.annotate(number(total), (end, row), (5, 0), textcoords="offset points", va="center", color=QUIET)
    whole.set_ylim(len(bars) - 0.5, -0.5)
    whole.set_yticks(range(len(bars)), [wrapped(bar.label, NAME_LETTERS) for bar in bars])
    whole.set_xlim(0, 1.22 * max(totals))  # room for the number at the longest bar's end
    share.set_xlim(0, 100)
    whole.set_xlabel(quantity)
    share.set_xlabel("Share of it, %")
    for axes in (whole, share):
        axes.grid(visible=True, axis="x")
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        even_axis(axes.xaxis)
    names = list(bars[0].parts)
    legend(figure, [Patch(facecolor=colour, label=name) for name, colour in zip(names, COLOURS, strict=False)])
    return figure


def _stack(axes: Axes, row: int, parts: Sequence[float]) -> float:
    """Draws one bar from the left; gives the place of its end."""
    left = 0.0
    for part, colour in zip(parts, COLOURS, strict=False):
        axes.barh(row, part, left=left, height=0.62, color=colour, edgecolor="white", linewidth=0.7)
        left += part
    return left


def alternative(title: str, quantity: str, bars: Sequence[Bar]) -> str:
    """The figure in words: each setting's parts."""
    told = [f"{title}. {quantity}."]
    for bar in bars:
        parts = "; ".join(f"{name} {number(part)}" for name, part in bar.parts.items())
        told.append(f"{bar.label}: {number(sum(bar.parts.values()))}, of it {parts}.")
    return " ".join(told) if bars else f"{title}. Nothing was measured for this figure."
