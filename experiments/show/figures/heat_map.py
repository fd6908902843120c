"""Heat map of pool × clients: the mean latency of each cell as a colour, with its number.

A light colour is a short time, a dark colour a long time, on one logarithmic scale for all maps. A cell that a gate
refuses is white with a grey number. A cell that was not measured has a dash.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from experiments.judge.points import Point
from experiments.show.figures.panels import say
from experiments.show.figures.style import INK, QUIET, Picture, grid, house, legend
from experiments.show.numbers import NOTHING, number, time_unit

DARK = 0.52
"""Lightness of a colour under which its number is white."""


@dataclass(frozen=True, slots=True)
class Field:
    """Points at several pools and numbers of clients."""

    title: str
    points: Sequence[Point]

    @property
    def pools(self) -> list[int]:
        """Sizes of pools, ascending."""
        return sorted({point.arm.setting.whole("workers") for point in self.points})

    @property
    def clients(self) -> list[int]:
        """Numbers of clients, ascending."""
        return sorted({point.arm.connections for point in self.points})

    def at(self, pool: int, clients: int) -> Point | None:
        """The point of a cell, if it was measured."""
        cells = {(point.arm.setting.whole("workers"), point.arm.connections): point for point in self.points}
        found = cells.get((pool, clients))
        return found if found is not None and found.mean_us is not None else None


def picture(name: str, title: str, fields: Sequence[Field]) -> Picture:
    """The figure with its words, to be drawn when it is wanted."""
    return Picture(name, title, alternative(title, fields), lambda: draw(title, fields))


@house()
def draw(title: str, fields: Sequence[Field]) -> Figure:
    """The fields side by side."""
    rows = max((len(field.pools) for field in fields), default=1)
    figure, (row,) = grid(title, 1.7 + 0.42 * max(2, rows), 1, len(fields))
    means = [p.mean_us.value for field in fields for p in field.points if p.mean_us]
    unit, factor = time_unit(means)
    for axes, field in zip(row, fields, strict=False):
        axes.set_title(field.title)
        if any(point.mean_us for point in field.points):
            _draw_field(axes, field, LogNorm(min(means) / 1.02, max(means) * 1.02), factor)
        else:
            say(axes, "Nothing was measured here.")
    if not fields:
        say(row[0], "Nothing was measured for this figure.")
    elif means:
        legend(figure, _entries(fields, unit))
    return figure


def _draw_field(axes: Axes, field: Field, scale: LogNorm, factor: float) -> None:
    ramp = matplotlib.colormaps[matplotlib.rcParams["image.cmap"]]
    for row, pool in enumerate(field.pools):
        for column, clients in enumerate(field.clients):
            point = field.at(pool, clients)
            face: tuple[float, float, float] = (1.0, 1.0, 1.0)
            text, ink = NOTHING, QUIET
            if point is not None and point.mean_us is not None:
                text = number(point.mean_us.value / factor)
                if not point.refusals:
                    face = to_rgb(ramp(scale(point.mean_us.value)))
                    ink = (
                        "white" if sum(w * part for w, part in zip((0.3, 0.6, 0.1), face, strict=True)) < DARK else INK
                    )
            edge = QUIET if point is not None and point.refusals else "white"
            axes.add_patch(Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, facecolor=face, edgecolor=edge))
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
        yield Patch(facecolor="white", edgecolor=QUIET, label="white: a gate refuses it")


def alternative(title: str, fields: Sequence[Field]) -> str:
    """The figure in words: each pool's means by clients."""
    told = [f"{title}. Mean latency in µs."]
    for field in fields:
        for pool in field.pools:
            cells = [(clients, field.at(pool, clients)) for clients in field.clients]
            means = ", ".join(
                f"{clients} clients {number(point.mean_us.value)}"
                for clients, point in cells
                if point and point.mean_us
            )
            told.append(f"{field.title}, pool of {pool}: {means or 'nothing was measured'}.")
    return " ".join(told) if fields else f"{title}. Nothing was measured."
