"""Heat map of pool × clients: the mean latency of each cell, as a colour and as a number.

A pool is a number of threads that serve requests. A light colour is a short time, and a dark colour is a long time. All
maps of a figure share one logarithmic scale of colours. A cell that a gate refuses is white with a grey number. A cell
without a measurement has a dash.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from experiments.judge.points import Point
from experiments.show.figures.panels import pictured, say
from experiments.show.figures.style import INK, QUIET, Picture, grid, legend
from experiments.show.numbers import NOTHING, number, time_unit

DARK = 0.52
"""Limit of lightness: the number on a darker colour is white."""


@dataclass(frozen=True, slots=True)
class Field:
    """Map with a cell for each size of a pool and each number of clients."""

    title: str
    points: Sequence[Point]

    @property
    def pools(self) -> list[int]:
        """Sizes of the pool, ascending."""
        return sorted({point.arm.setting.whole("workers") for point in self.points})

    @property
    def clients(self) -> list[int]:
        """Numbers of clients, ascending."""
        return sorted({point.arm.connections for point in self.points})

    def at(self, pool: int, clients: int) -> Point | None:
        """Point of a cell. None if the cell was not measured."""
        cells = {(point.arm.setting.whole("workers"), point.arm.connections): point for point in self.points}
        return cells.get((pool, clients))


def picture(name: str, title: str, fields: Sequence[Field]) -> Picture:
    """Picture of the maps side by side."""
    return pictured(name, title, _told(fields), lambda: _draw(title, fields))


def _draw(title: str, fields: Sequence[Field]) -> Figure:
    rows = max(len(field.pools) for field in fields)
    figure, (row,) = grid(title, 1.7 + 0.42 * max(2, rows), 1, len(fields))
    means = [p.mean_us.value for field in fields for p in field.points if p.mean_us]
    unit, factor = time_unit(means)
    for axes, field in zip(row, fields, strict=True):
        axes.set_title(field.title)
        if any(point.mean_us for point in field.points):
            _draw_field(axes, field, LogNorm(min(means) / 1.02, max(means) * 1.02), factor)
        else:
            say(axes, "Nothing was measured here.")
    if means:
        legend(figure, _entries(fields, unit))
    return figure


def _draw_field(axes: Axes, field: Field, scale: LogNorm, factor: float) -> None:
    for (row, pool), (column, clients) in product(enumerate(field.pools), enumerate(field.clients)):
        point = field.at(pool, clients)
        face, edge, ink = to_rgb("white"), "white", QUIET
        mean_us = point.mean_us.value if point and point.mean_us else None
        if point and mean_us and point.refusals:
            edge = QUIET
        elif mean_us:
            face = to_rgb(matplotlib.colormaps[matplotlib.rcParams["image.cmap"]](scale(mean_us)))
            lightness = sum(weight * part for weight, part in zip((0.3, 0.6, 0.1), face, strict=True))
            ink = "white" if lightness < DARK else INK
        axes.add_patch(Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, facecolor=face, edgecolor=edge))
        text = number(mean_us / factor) if mean_us else NOTHING
        axes.text(column, row, text, ha="center", va="center", color=ink)
    axes.set_xlim(-0.5, len(field.clients) - 0.5)
    axes.set_ylim(-0.5, len(field.pools) - 0.5)
    axes.set_xticks(range(len(field.clients)), list(map(str, field.clients)))
    axes.set_yticks(range(len(field.pools)), list(map(str, field.pools)))
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel("Clients")
    axes.set_ylabel("Threads in the pool")


def _entries(fields: Sequence[Field], unit: str) -> Iterator[Artist]:
    ramp = matplotlib.colormaps[matplotlib.rcParams["image.cmap"]]
    yield Patch(facecolor=ramp(0.05), label="light: short")
    yield Patch(facecolor=ramp(0.95), label=f"dark: long; the numbers are means, {unit}")
    if any(point.refusals for field in fields for point in field.points):
        yield Patch(facecolor="white", edgecolor=QUIET, label="white: refused by a gate")


def _told(fields: Sequence[Field]) -> Iterator[str]:
    """Sentences with the mean latencies of each pool, by the number of clients."""
    if fields:
        yield "Mean latency in µs."
    for field in fields:
        for pool in field.pools:
            cells = [(clients, field.at(pool, clients)) for clients in field.clients]
            means = ", ".join(
                f"{clients} clients {number(point.mean_us.value)}"
                for clients, point in cells
                if point and point.mean_us
            )
            yield f"{field.title}, pool of {pool}: {means or 'nothing was measured'}."
