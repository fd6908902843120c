"""Costs: rows of numbers with their 95 % intervals, a panel for each quantity. Such as processor time a request.

A row has its transport's colour and marker. Panels with the same rows stand side by side, others below each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.judge.stats import Estimate
from experiments.show.figures.panels import even_axis, highest, log_axis, mark, rows, say
from experiments.show.figures.style import (
    Picture,
    Stroke,
    grid,
    house,
    interval_key,
    key_of,
    label,
    legend,
    strokes,
    wrapped,
)
from experiments.show.numbers import number

NAME_LETTERS, QUANTITY_LETTERS = 24, 60
"""Letters of a row's name in a line; and of the quantities of all panels side by side."""


@dataclass(frozen=True, slots=True)
class Row:
    """One cost of one server."""

    name: str
    transport: str
    cost: Estimate | None
    """None: it has no such cost; ``lacks`` says why."""
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity."""

    quantity: str
    """Quantity of the panel, with its unit."""
    rows: Sequence[Row]
    title: str = ""
    """Words above the panel, such as its load."""

    @property
    def words(self) -> str:
        """Title and quantity."""
        return ": ".join(filter(None, (self.title, self.quantity)))


def picture(name: str, title: str, panels: Sequence[Panel], shared: bool = False, log: bool = False) -> Picture:
    """The figure with its words, to be drawn when it is wanted. ``shared``: the panels have one scale. ``log``: they
    have one that is logarithmic."""
    return Picture(name, title, alternative(title, panels), lambda: draw(title, panels, shared, log))


@house()
def draw(title: str, panels: Sequence[Panel], shared: bool = False, log: bool = False) -> Figure:
    """The panels with their rows in the order given."""
    heights = [max(2, len(panel.rows)) + 1.5 + 0.8 * bool(panel.title) for panel in panels] or [3]
    is_row = len(panels) > 1 and len({tuple(row.name for row in panel.rows) for panel in panels}) == 1
    if is_row:
        figure, axes = grid(title, 1.2 + 0.34 * heights[0], 1, len(panels), sharey=True)
    else:
        figure, axes = grid(title, 0.9 + 0.34 * sum(heights), len(heights), 1, height_ratios=heights)
    drawn = strokes((row.transport, label(row.transport)) for panel in panels for row in panel.rows)
    if not panels:
        say(axes[0, 0], "No cost was measured here.")
    for own, panel in zip(axes.flat, panels, strict=False):
        costs = [row.cost for each in (panels if shared or log else [panel]) for row in each.rows if row.cost]
        letters = QUANTITY_LETTERS // (len(panels) if is_row else 1)
        low = min((cost.value for cost in costs), default=1.0) / 1.5 if log else 0.0
        _draw(own, panel, drawn, letters, (low, highest(costs) or 1.0))
    legend(figure, _entries(drawn))
    return figure


def _entries(drawn: dict[tuple[str, str], Stroke]) -> Iterator[Artist]:
    if drawn:
        yield from (key_of(each, name, line=False) for (_, name), each in drawn.items())
        yield interval_key(across=True)


def _draw(
    axes: Axes, panel: Panel, drawn: dict[tuple[str, str], Stroke], letters: int, ends: tuple[float, float]
) -> None:
    if not any(row.cost for row in panel.rows):
        say(axes, f"{panel.words}: nothing was measured.")
        return
    for place, row in enumerate(panel.rows):
        if row.cost:
            mark(axes, place, row.cost, drawn[row.transport, label(row.transport)], ends, across=True)
    said = [number(row.cost.value) if row.cost else row.lacks for row in panel.rows]
    rows(axes, [wrapped(row.name, NAME_LETTERS) for row in panel.rows], said)
    low, high = ends
    if low:
        axes.set_xscale("log")
        axes.set_xlim(low, 1.3 * high)
        log_axis(axes.xaxis, low, high)
    else:
        axes.set_xlim(0, 1.06 * high)
        even_axis(axes.xaxis, most=3 + letters // 20)
    axes.set_xlabel(wrapped(panel.quantity, letters))
    if panel.title:
        axes.set_title(wrapped(panel.title, letters), fontsize=8.5)


def alternative(title: str, panels: Sequence[Panel]) -> str:
    """The figure in words: every row's value."""
    told = [f"{title}."]
    for panel in panels:
        said = "; ".join(f"{row.name} {number(row.cost.value) if row.cost else row.lacks}" for row in panel.rows)
        told.append(f"{panel.words}: {said or 'nothing was measured'}.")
    return " ".join(told) if panels else f"{title}. No cost was measured here."
