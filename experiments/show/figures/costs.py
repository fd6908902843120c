"""Costs, such as processor time a request: a panel for each quantity, with a row for each server.

A row shows a number with its 95 % interval, in the colour of the transport. Panels whose rows have equal names are side
by side. Other panels are one below the other.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.design.arms import Arm
from experiments.judge.points import Point, points
from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judgement
from experiments.results.observed import ALL
from experiments.show.figures import style
from experiments.show.figures.panels import even_axis, highest, log_axis, mark, pictured, rows, say
from experiments.show.numbers import number

NAME_LETTERS, QUANTITY_LETTERS = 24, 60
"""Number of letters that fit in one line: ``NAME_LETTERS`` for the name of a row, ``QUANTITY_LETTERS`` for the
quantities of all panels, side by side."""


@dataclass(frozen=True, slots=True)
class Row:
    """Row with one cost of one server."""

    name: str
    transport: str
    cost: Estimate | None
    """Cost with its interval. None for a server whose cost was not measured."""
    lacks: str = ""
    """Reason why the cost is missing, in a few words."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Panel with the rows of one quantity."""

    quantity: str
    """Quantity that the rows show, with its unit."""
    rows: Sequence[Row]
    title: str = ""
    """Words above the panel, such as the load."""

    @property
    def words(self) -> str:
        """Title and quantity as one text."""
        return ": ".join(filter(None, (self.title, self.quantity)))


def rows_of(
    judgement: Judgement,
    arms: Iterable[Arm],
    name: Callable[[Arm], str],
    cost: Callable[[Point], Estimate | None] = attrgetter("server_cpu_us"),
) -> list[Row]:
    """Rows of a figure, one for each arm with a measured cost. ``name``: gives the label of an arm. ``cost``: gives the
    cost at a point, by default the processor time of a request."""
    found = points(judgement.sweep, judgement.blocks)
    measured = ((arm, cost(found[arm, ALL])) for arm in arms if (arm, ALL) in found)
    return [Row(name(arm), arm.setting.text("transport"), value) for arm, value in measured if value]


def picture(name: str, title: str, panels: Sequence[Panel], shared: bool = False, log: bool = False) -> style.Picture:
    """Picture of the panels. ``shared``: all panels have one scale. ``log``: all panels have one logarithmic scale."""
    return pictured(
        name, title, map(_told, panels), lambda: _draw(title, panels, shared, log), "No cost was measured here."
    )


def _draw(title: str, panels: Sequence[Panel], shared: bool, log: bool) -> Figure:
    """Draw the panels, with the rows in the given order."""
    heights = [max(2, len(panel.rows)) + 1.5 + 0.8 * bool(panel.title) for panel in panels]
    is_row = len(panels) > 1 and len({tuple(row.name for row in panel.rows) for panel in panels}) == 1
    if is_row:
        figure, axes = style.grid(title, 1.2 + 0.34 * heights[0], 1, len(panels), sharey=True)
    else:
        figure, axes = style.grid(title, 0.9 + 0.34 * sum(heights), len(heights), 1, height_ratios=heights)
    drawn = style.strokes((row.transport, style.label(row.transport)) for panel in panels for row in panel.rows)
    for own, panel in zip(axes.flat, panels, strict=True):
        costs = [row.cost for each in (panels if shared or log else [panel]) for row in each.rows if row.cost]
        letters = QUANTITY_LETTERS // (len(panels) if is_row else 1)
        low = min((cost.value for cost in costs), default=1.0) / 1.5 if log else 0.0
        _draw_panel(own, panel, drawn, letters, (low, highest(costs) or 1.0))
    if drawn:
        keys = (style.key_of(each, name, line=False) for (_, name), each in drawn.items())
        style.legend(figure, [*keys, style.interval_key(across=True)])
    return figure


def _draw_panel(axes: Axes, panel: Panel, drawn: style.Strokes, letters: int, ends: tuple[float, float]) -> None:
    if not any(row.cost for row in panel.rows):
        say(axes, f"{panel.words}: nothing was measured.")
        return
    for place, row in enumerate(panel.rows):
        if row.cost:
            mark(axes, place, row.cost, drawn[row.transport, style.label(row.transport)], ends, across=True)
    said = [number(row.cost.value) if row.cost else row.lacks for row in panel.rows]
    rows(axes, [style.wrapped(row.name, NAME_LETTERS) for row in panel.rows], said)
    low, high = ends
    if low:
        axes.set_xscale("log")
        axes.set_xlim(low, 1.3 * high)
        log_axis(axes.xaxis, low, high)
    else:
        axes.set_xlim(0, 1.06 * high)
        even_axis(axes.xaxis, most=3 + letters // 20)
    axes.set_xlabel(style.wrapped(panel.quantity, letters))
    if panel.title:
        axes.set_title(style.wrapped(panel.title, letters), fontsize=8.5)


def _told(panel: Panel) -> str:
    """Sentence with the value of every row of a panel."""
    said = "; ".join(f"{row.name} {number(row.cost.value) if row.cost else row.lacks}" for row in panel.rows)
    return f"{panel.words}: {said or 'nothing was measured'}."
