"""Advice on a pool: the highest rate with each size (left panel), and the p99 at each rate (right panel).

A pool is a number of workers in a process. Both panels show predictions, or both show measurements (hollow markers).
For a running server, the sizes may be numbers of connections. The advised size has a mark, and the p99 is of the
advised server. Dotted lines are the wished rate and the wished p99.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.show.figures.panels import columns, even_axis, log_axis, named_axis, pictured, say
from experiments.show.figures.style import DOTTED, INK, QUIET, Picture, grid, key, legend
from experiments.show.numbers import number

STYLES: dict[str, dict[str, Any]] = {
    "predicted": {"color": "C0", "marker": "o", "linestyle": "-"},
    "measured": {"color": INK, "marker": "s", "mfc": "none", "markersize": 7, "linestyle": ""},
}

Points = Sequence[tuple[float, float]]
"""Points of a panel, as pairs of x and y."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Content of the figure. Rates are per second, and times are in ms."""

    advised: str
    """Advice, in a few words."""
    pool: int | None
    """Advised size. None if the left panel does not have the advised size."""
    at_once: str
    """Unit of the sizes: ``workers of a process`` or ``connections``."""
    how: Literal["predicted", "measured"]
    highest_hz: Points
    """Pairs of a size and the highest rate with this size."""
    p99_ms: Points
    """Pairs of a rate and the p99 of the advised server at this rate."""
    rate_hz: float | None
    target_p99_ms: float | None


def picture(name: str, title: str, shown: Shown) -> Picture:
    """Picture with the highest rates in the left panel, and the p99 in the right panel."""
    return pictured(name, title, _told(shown), lambda: _draw(title, shown))


def _draw(title: str, shown: Shown) -> Figure:
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
    axes.plot(*columns(shown.highest_hz), **STYLES[shown.how])
    advised = [point for point in shown.highest_hz if point[0] == shown.pool]
    axes.plot(*columns(advised), color="C1", marker="o", markersize=10, linestyle="")
    if shown.rate_hz is not None:
        axes.axhline(shown.rate_hz, color=QUIET, linestyle=DOTTED)
    rates = [rate for _, rate in shown.highest_hz]
    axes.set_ylim(0, 1.12 * max([*rates, shown.rate_hz or 0.0]))
    even_axis(axes.yaxis)


def _draw_tail(axes: Axes, shown: Shown) -> None:
    axes.set_title(f"p99 with {shown.advised}")
    points = [point for point in shown.p99_ms if math.isfinite(point[1])]
    if not points:
        say(axes, "Nothing was predicted: this pool keeps up with no rate.")
        return
    axes.set_xlabel("requests a second, at random moments")
    axes.set_ylabel("99th percentile, ms")
    axes.set_yscale("log")
    axes.plot(*columns(points), **STYLES[shown.how])
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


def _entries(shown: Shown) -> Iterator[Artist]:
    yield key(shown.how, **STYLES[shown.how])
    if shown.pool is not None:
        yield key("advised", color="C1", marker="o", markersize=10)
    if shown.rate_hz is not None or shown.target_p99_ms is not None:
        yield key("wished", linestyle=DOTTED)


def _told(shown: Shown) -> Iterator[str]:
    """Sentences with the advice and the values of every point."""
    yield f"Advised: {shown.advised}."
    for what, points in (
        (f"Replies a second at most, by {shown.at_once.split()[0]}", shown.highest_hz),
        ("p99 in ms by requests a second", shown.p99_ms),
    ):
        if points:
            yield f"{what}, {shown.how}: {'; '.join(f'{x:,.0f}: {number(y)}' for x, y in points)}."
