"""Parts of a cost: a stacked bar for each setting, in its unit, and beside it as shares of the whole.

The sum stands at the bar's end. A small difference of two large numbers may be under 0: then its part is not drawn, and
the words have its number. These values have no verdicts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from experiments.show.figures.panels import even_axis, rows, say, stack, stack_keys
from experiments.show.figures.style import Picture, grid, house, legend, wrapped
from experiments.show.numbers import number

NAME_LETTERS, QUANTITY_LETTERS = 20, 48


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
    figure, ((whole, share),) = grid(title, 1.7 + 0.42 * max(1, len(bars)), 1, 2, sharey=True, width_ratios=(1.25, 1))
    if not bars:
        for axes in (whole, share):
            say(axes, "Nothing was measured for this figure.", 24)
        return figure
    for axes in (whole, share):
        rows(axes, [wrapped(bar.label, NAME_LETTERS) for bar in bars])
        axes.spines["left"].set_visible(False)
        even_axis(axes.xaxis)
    for row, bar in enumerate(bars):
        drawn = [max(0.0, part) for part in bar.parts.values()]
        end, said = stack(whole, row, drawn), number(sum(bar.parts.values()))
        stack(share, row, [100 * part / sum(drawn) if any(drawn) else 0.0 for part in drawn])
        whole.annotate(said, (end, row), (5, 0), textcoords="offset points", va="center")
    whole.set_xlim(0, 1.22 * max(sum(bar.parts.values()) for bar in bars))  # room for the number at the longest bar
    share.set_xlim(0, 100)
    whole.set_xlabel(wrapped(quantity, QUANTITY_LETTERS))
    share.set_xlabel("Share of it, %")
    legend(figure, stack_keys(bars[0].parts))
    return figure


def alternative(title: str, quantity: str, bars: Sequence[Bar]) -> str:
    """The figure in words: each setting's parts."""
    told = [f"{title}. {quantity}."]
    for bar in bars:
        parts = "; ".join(f"{name} {number(part)}" for name, part in bar.parts.items())
        told.append(f"{bar.label}: {number(sum(bar.parts.values()))}, of it {parts}.")
    return " ".join(told) if bars else f"{title}. Nothing was measured for this figure."
