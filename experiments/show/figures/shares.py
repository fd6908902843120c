"""Parts of a cost: for each setting a stacked bar in the unit of the cost, and a second bar in shares of the cost.

The sum is written at the end of the first bar. A part that is a difference of two large numbers may be under 0. A part
under 0 is not drawn, but the sentences of the figure have its number. These values have no verdicts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from experiments.show.figures.panels import even_axis, pictured, rows, stack, stack_keys
from experiments.show.figures.style import Picture, grid, legend, wrapped
from experiments.show.numbers import number

NAME_LETTERS, QUANTITY_LETTERS = 20, 48


@dataclass(frozen=True, slots=True)
class Bar:
    """Bar of one setting: the label, and the parts by name. All bars of a figure have equal names of parts, six at
    most."""

    label: str
    parts: Mapping[str, float]


def picture(name: str, title: str, quantity: str, bars: Sequence[Bar]) -> Picture:
    """Picture with a row for each setting, in the given order from the top. ``quantity``: the cost with its unit."""
    return pictured(name, title, _told(quantity, bars), lambda: _draw(title, quantity, bars))


def _draw(title: str, quantity: str, bars: Sequence[Bar]) -> Figure:
    figure, ((whole, share),) = grid(title, 1.7 + 0.42 * len(bars), 1, 2, sharey=True, width_ratios=(1.25, 1))
    ends = []
    for axes in (whole, share):
        rows(axes, [wrapped(bar.label, NAME_LETTERS) for bar in bars])
        axes.spines["left"].set_visible(False)
        even_axis(axes.xaxis)
    for row, bar in enumerate(bars):
        drawn = [max(0.0, part) for part in bar.parts.values()]
        ends.append(stack(whole, row, drawn))
        stack(share, row, [100 * part / sum(drawn) if any(drawn) else 0.0 for part in drawn])
        said = number(sum(bar.parts.values()))
        whole.annotate(said, (ends[-1], row), (5, 0), textcoords="offset points", va="center")
    whole.set_xlim(0, 1.22 * max(ends))  # with space for the number at the longest bar
    share.set_xlim(0, 100)
    whole.set_xlabel(wrapped(quantity, QUANTITY_LETTERS))
    share.set_xlabel("Share of the whole, %")
    legend(figure, stack_keys(bars[0].parts))
    return figure


def _told(quantity: str, bars: Sequence[Bar]) -> Iterator[str]:
    """Sentences with the sizes of the parts, for each setting."""
    if bars:
        yield f"{quantity}."
    for bar in bars:
        parts = "; ".join(f"{name} {number(part)}" for name, part in bar.parts.items())
        yield f"{bar.label}: {number(sum(bar.parts.values()))} in all; {parts}."
