"""Pool by clients: the response time of every pair as a field of cells, one panel per server.

Rules: every cell prints its number, so that the colour only helps to find it; panels share one logarithmic scale, from
light for quick to dark for slow, in even steps of lightness; a pair without data is hatched; a stepped line parts the
pairs whose clients outnumber the pool. Marks say that the load side was the limit, or that a gate refuses the runs.
Left out: intervals cell by cell, of which the caption gives the widest.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from experiments.figures.captions import Frame, framed
from experiments.figures.style import (
    FAINT,
    INK,
    LIMITED_MARK,
    QUIET,
    RAMP,
    REFUSED_MARK,
    WIDTH_INCHES,
    log_ticks,
    look,
    measured,
    set_log_ticks,
    span_unit,
    three_digits,
)
from experiments.stats import Estimate

_LEFT, _RIGHT = 0.085, 0.985
_CELL_WIDE_INCHES = 0.5
"""At the least: four digits, a point and two marks."""
_CELL_WIDEST_INCHES = 0.9
_CELL_HIGH_INCHES = 0.3
_BETWEEN_INCHES = 0.3
"""Panels, side by side."""
_BAR_INCHES = 0.5
"""The scale of colours with its label, under the panels."""
_ROW_INCHES = 0.62
"""What stands between a row of panels and the next: the axis' label and the title."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One pool with one number of clients."""

    pool: int
    """Threads, from 1."""
    clients: int
    response_us: Estimate
    """Over runs, over 0: of the statistic that the figure is drawn for."""
    load_limited: bool = False
    refused: bool = False
    """By a gate."""

    @property
    def marks(self) -> str:
        """What stands behind its number."""
        return (LIMITED_MARK if self.load_limited else "") + (REFUSED_MARK if self.refused else "")


@dataclass(frozen=True, slots=True)
class Field:
    """One server's cells."""

    transport: str
    cells: tuple[Cell, ...]
    """One at most for each pair; pairs may be missing."""
    title: str = ""
    """For the panel; the server's label where empty."""


def draw_heat_map(title: str, fields: Sequence[Field], statistic: str = "median") -> Figure:
    """A panel per field: pools upwards, clients to the right. ``statistic`` names what the cells hold."""
    cells = [cell for field in fields for cell in field.cells]
    if not cells:
        frame = framed(title, 0.1, ["No pair of pool and clients was measured."], axis_inches=0)
        return frame.figure
    pools, clients = sorted({cell.pool for cell in cells}), sorted({cell.clients for cell in cells})
    columns = _columns(len(fields), len(clients))
    rows = -(-len(fields) // columns)
    panel_wide_inches = min(_panel_wide_inches(columns), _CELL_WIDEST_INCHES * len(clients))
    panel_inches = _CELL_HIGH_INCHES * len(pools)
    body_inches = panel_inches * rows + _ROW_INCHES * (rows - 1)
    frame = framed(
        title,
        body_inches,
        _sentences(cells, statistic),
        _legend(fields, pools, clients),
        axis_inches=0.47 + _BAR_INCHES,
    )
    grid = frame.figure.add_gridspec(
        rows,
        columns,
        left=_LEFT,
        right=_LEFT + (columns * panel_wide_inches + (columns - 1) * _BETWEEN_INCHES) / WIDTH_INCHES,
        top=frame.top,
        bottom=frame.bottom,
        wspace=_BETWEEN_INCHES / panel_wide_inches,
        hspace=_ROW_INCHES / panel_inches,
    )
    unit, unit_us = span_unit([cell.response_us.value for cell in cells])
    scale = _scale([cell.response_us.value / unit_us for cell in cells])
    for place, field in enumerate(fields):
        axes = frame.figure.add_subplot(grid[place // columns, place % columns])
        _draw_field(axes, field, (pools, clients), scale, unit_us)
        axes.tick_params(labelleft=place % columns == 0)
        axes.set_xlabel("Clients")
        if place % columns == 0:
            axes.set_ylabel("Pool")
    _draw_bar(frame, scale, f"{statistic.capitalize()} response time, {unit}")
    return frame.figure


def _columns(fields: int, clients: int) -> int:
    """As many panels side by side as leave a cell room for its number."""
    fits = (n for n in range(fields, 1, -1) if _panel_wide_inches(n) >= _CELL_WIDE_INCHES * clients)
    return next(fits, 1)


def _panel_wide_inches(columns: int) -> float:
    return ((_RIGHT - _LEFT) * WIDTH_INCHES - _BETWEEN_INCHES * (columns - 1)) / columns


def _scale(times: Sequence[float]) -> ScalarMappable:
    """At least a factor of two, so that noise between equal cells does not look like a difference."""
    low, high = min(times), max(times)
    wider = max(1.0, math.sqrt(2 * low / high))
    return ScalarMappable(LogNorm(low / wider, high * wider), matplotlib.colormaps[RAMP])


def _draw_field(
    axes: Axes, field: Field, levels: tuple[list[int], list[int]], scale: ScalarMappable, unit_us: float
) -> None:
    pools, clients = levels
    found = {(cell.pool, cell.clients): cell for cell in field.cells}
    for y, pool in enumerate(pools):
        for x, number in enumerate(clients):
            cell = found.get((pool, number))
            if cell is None:
                axes.add_patch(_hatched(x, y))
            else:
                _draw_cell(axes, (x, y), cell, scale, unit_us)
    border = _stairs(pools, clients)
    axes.add_collection(LineCollection(border, colors="white", linewidths=3.2, capstyle="projecting", zorder=3))
    axes.add_collection(LineCollection(border, colors=INK, linewidths=1.4, capstyle="projecting", zorder=4))
    axes.set_xlim(-0.5, len(clients) - 0.5)
    axes.set_ylim(-0.5, len(pools) - 0.5)
    axes.set_xticks(range(len(clients)), [str(number) for number in clients])
    axes.set_yticks(range(len(pools)), [str(pool) for pool in pools])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_title(field.title or look(field.transport).label)


def _hatched(x: float, y: float) -> Rectangle:
    return Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor="white", edgecolor=FAINT, hatch="////", linewidth=0)


def _draw_cell(axes: Axes, at: tuple[int, int], cell: Cell, scale: ScalarMappable, unit_us: float) -> None:
    time = cell.response_us.value / unit_us
    red, green, blue = to_rgb(tuple(scale.to_rgba(np.array([time]))[0][:3]))
    x, y = at
    axes.add_patch(
        Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=(red, green, blue), edgecolor="white", linewidth=0.8, zorder=1)
    )
    light = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    ink = "black" if light > 0.18 else "white"  # where either has the same contrast, by WCAG's formula
    axes.text(x, y, measured(time) + cell.marks, ha="center", va="center", fontsize=7, color=ink, zorder=2)


def _stairs(pools: Sequence[int], clients: Sequence[int]) -> list[list[tuple[float, float]]]:
    """The lines between pairs whose clients the pool holds, on their left, and pairs whose clients outnumber it."""
    lines: list[list[tuple[float, float]]] = []
    held = [sum(number <= pool for number in clients) for pool in pools]
    for y, number in enumerate(held):
        if 0 < number < len(clients):
            lines.append([(number - 0.5, y - 0.5), (number - 0.5, y + 0.5)])
        if y > 0 and held[y - 1] < number:
            lines.append([(held[y - 1] - 0.5, y - 0.5), (number - 0.5, y - 0.5)])
    return lines


def _draw_bar(frame: Frame, scale: ScalarMappable, label: str) -> None:
    inches = 2.6
    axes = frame.figure.add_axes((_LEFT, frame.bottom - frame.at(0.74), inches / WIDTH_INCHES, frame.at(0.1)))
    bar = frame.figure.colorbar(scale, cax=axes, orientation="horizontal")
    low, high = scale.get_clim()
    assert low is not None
    assert high is not None
    set_log_ticks(axes.xaxis, log_ticks(low, high, inches, 0.36))
    axes.tick_params(length=0, pad=3)
    bar.outline.set_visible(False)
    x = _LEFT + (inches + 0.15) / WIDTH_INCHES
    frame.figure.text(x, frame.bottom - frame.at(0.69), label, ha="left", va="center", fontsize=8, color=INK)


def _legend(fields: Sequence[Field], pools: Sequence[int], clients: Sequence[int]) -> list[Line2D | Patch]:
    entries: list[Line2D | Patch] = []
    if any(number > pool for pool in pools for number in clients):
        entries.append(Line2D([], [], color=INK, linewidth=1.4, label="right of it, clients outnumber the pool"))
    if any(len(field.cells) < len(pools) * len(clients) for field in fields):
        entries.append(Patch(facecolor="white", edgecolor=QUIET, hatch="////", linewidth=0, label="not measured"))
    return entries


def _sentences(cells: Sequence[Cell], statistic: str) -> Iterator[str]:
    runs = sorted({cell.response_us.n for cell in cells})
    number = f"{runs[0]}" if runs[0] == runs[-1] else f"{runs[0]} to {runs[-1]}"
    yield f"Numbers: a run’s {statistic} response time, its mean over {number} {'run' if runs[-1] == 1 else 'runs'}."
    halves = [(at.high - at.low) / 2 / at.value for at in (cell.response_us for cell in cells) if at.n > 1]
    if halves:
        yield (
            "95 % intervals (Student’s t over runs) are not drawn; half of the widest is "
            f"{100 * max(halves):.2g} % of its cell’s number, of the middle one {100 * _middle(halves):.2g} %."
        )
    yield (
        "In a closed loop the mean response and the client’s own time make up N ÷ throughput (Little’s law): once a "
        "server is saturated, a row grows in proportion to its clients by that alone."
    )
    if any(cell.load_limited for cell in cells):
        limited = "In some run the clients took over 80 % of their core: time of client and server together."
        yield f"{LIMITED_MARK} {limited}"
    if any(cell.refused for cell in cells):
        yield f"{REFUSED_MARK} Refused by a gate."


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def text_alternative(title: str, fields: Sequence[Field], statistic: str = "median") -> str:
    """What the picture shows: for every server its quickest and slowest cell, and every row's ends."""
    return f"{title}, {statistic} response time. " + " ".join(_spoken(field) for field in fields if field.cells)


def _spoken(field: Field) -> str:
    unit, unit_us = span_unit([cell.response_us.value for cell in field.cells])
    rows = []
    for pool in sorted({cell.pool for cell in field.cells}):
        own = sorted((cell for cell in field.cells if cell.pool == pool), key=lambda cell: cell.clients)
        ends = own if len(own) == 1 else [own[0], own[-1]]
        times = ", ".join(
            f"{three_digits(cell.response_us.value / unit_us)} {unit}{cell.marks} at "
            + ("1 client" if cell.clients == 1 else f"{cell.clients} clients")
            for cell in ends
        )
        rows.append(f"pool of {pool}, {times}")
    return f"{field.title or look(field.transport).label}: {'; '.join(rows)}."
