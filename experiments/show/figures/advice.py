"""Sizes of a pool: on the left the highest rate of each pool, on the right the p99 of the advised one at rising rates.

Both are predicted, or both are measured: hollow markers. A server that runs has connections in place of pools. The
advised pool is marked, and what was wished is dotted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.show.figures.panels import even_axis, log_axis, named_axis, say
from experiments.show.figures.style import DOTTED, INK, QUIET, Picture, grid, house, key, legend
from experiments.show.numbers import number

STYLES: dict[str, dict[str, Any]] = {
    "predicted": {"color": "C0", "marker": "o", "linestyle": "-"},
    "measured": {"color": INK, "marker": "s", "mfc": "none", "markersize": 7, "linestyle": ""},
}

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Shown:
    """Content of the figure. Pools are workers of a process; rates are a second; times in ms."""

    advised: str
    """The advice, in a few words."""
    pool: int | None
    """Size of the advised pool; None where it is not among those drawn."""
    at_once: str
    """Unit that the pools are counted in: ``workers of a process``, ``connections``."""
    how: Literal["predicted", "measured"]
    highest_hz: Points
    """Highest rate by pool."""
    p99_ms: Points
    """The p99 of the advised server, by rate."""
    rate_hz: float | None
    target_p99_ms: float | None


def picture(name: str, title: str, shown: Shown) -> Picture:
    """The figure with its words, to be drawn when it is wanted."""
    return Picture(name, title, alternative(title, shown), lambda: draw(title, shown))


@house()
def draw(title: str, shown: Shown) -> Figure:
    """Draws both panels."""
    figure, ((pools, tail),) = grid(title, 3.6, 1, 2)
    _draw_pools(pools, shown)
    _draw_tail(tail, shown)
    legend(figure, _entries(shown))
    return figure


def _draw_pools(axes: Axes, shown: Shown) -> None:
    axes.set_title(f"The highest rate, by {shown.at_once.split()[0]}")
    axes.set_xlabel(shown.at_once)
    axes.set_ylabel("replies a second, at most")
    axes.set_xscale("log")
    named_axis(axes.xaxis, [(pool, f"{pool:.0f}") for pool, _ in shown.highest_hz])
    _plot(axes, shown.highest_hz, shown)
    advised = [point for point in shown.highest_hz if point[0] == shown.pool]
    axes.plot(*_columns(advised), color="C1", marker="o", markersize=10, linestyle="")
    if shown.rate_hz is not None:
        axes.axhline(shown.rate_hz, color=QUIET, linestyle=DOTTED)
    rates = [rate for _, rate in shown.highest_hz]
    axes.set_ylim(0, 1.12 * max([*rates, shown.rate_hz or 0.0]))
    even_axis(axes.yaxis)


def _draw_tail(axes: Axes, shown: Shown) -> None:
    axes.set_title(f"p99 with {shown.advised}")
    points = [point for point in shown.p99_ms if math.isfinite(point[1])]
    if not points:
        say(axes, "Nothing was predicted: it keeps up with no rate.")
        return
    axes.set_xlabel("requests a second, at random moments")
    axes.set_ylabel("99th percentile, ms")
    axes.set_yscale("log")
    _plot(axes, points, shown)
    times = [time for _, time in points]
    if shown.target_p99_ms is not None:
        axes.axhline(shown.target_p99_ms, color=QUIET, linestyle=DOTTED)
        times.append(shown.target_p99_ms)
    if shown.rate_hz is not None:
        axes.axvline(shown.rate_hz, color=QUIET, linestyle=DOTTED)
    low, high = min(times) / 1.5, max(times) * 1.5
    axes.set_ylim(low, high)
    log_axis(axes.yaxis, low, high)
    axes.set_xlim(left=0)
    even_axis(axes.xaxis)


def _plot(axes: Axes, points: Points, shown: Shown) -> None:
    axes.plot(*_columns(points), **STYLES[shown.how])


def _columns(points: Points) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _entries(shown: Shown) -> list[Artist]:
    entries: list[Artist] = [key(shown.how, **STYLES[shown.how])]
    if shown.pool is not None:
        entries.append(key("advised", color="C1", marker="o", markersize=10))
    if shown.rate_hz is not None or shown.target_p99_ms is not None:
        entries.append(key("wished", linestyle=DOTTED))
    return entries


def alternative(title: str, shown: Shown) -> str:
    """The figure in words: every point."""
    told = [f"{title}. Advised: {shown.advised}."]
    for what, points in (
        (f"Replies a second at most, by {shown.at_once.split()[0]}", shown.highest_hz),
        ("p99 in ms by requests a second", shown.p99_ms),
    ):
        if points:
            told.append(f"{what}, {shown.how}: {'; '.join(f'{x:,.0f}: {number(y)}' for x, y in points)}.")
    return " ".join(told)
