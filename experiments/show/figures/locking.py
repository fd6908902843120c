"""Locking strategies: how long a request waits for its lock, and what share of the latency that is.

A row for each strategy and transport, a dot for each request type, with its 95 % interval over blocks. A wait ends
when the thread runs again, so it holds time in which the interpreter ran something else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.judge.stats import Estimate
from experiments.show.figures.style import QUIET, Picture, Stroke, canvas, hollow, house, label, legend, say, strokes
from experiments.show.numbers import has_interval, number, time_unit

CUT = 2.0
"""A bar is cut at this many times the largest value."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One strategy and request type. ``wait_us`` None: it takes no lock, or nothing was stamped."""

    strategy: str
    request: str
    transport: str
    wait_us: Estimate | None
    share: Estimate | None
    """Share of the latency that the clients saw, 0 to 1."""
    refused: bool = False


def picture(name: str, title: str, waits: Sequence[Wait]) -> Picture:
    """The figure with its words, to be drawn when it is wanted."""
    return Picture(name, title, alternative(title, waits), lambda: draw(title, waits))


@house()
def draw(title: str, waits: Sequence[Wait]) -> Figure:
    """Strategies from the top in the order given; waits on the left, shares on the right."""
    rows = list(dict.fromkeys((wait.strategy, wait.transport) for wait in waits))
    figure = canvas(title, 1.6 + 0.42 * max(2, len(rows)))
    left, right = figure.subplots(1, 2, sharey=True)
    drawn = strokes((wait.transport, wait.request) for wait in waits)
    known = [wait.wait_us.value for wait in waits if wait.wait_us]
    if not known:
        say(left, "No wait for a lock was measured here.", 26)
        say(right, "No shares.", 26)
        return figure
    unit, factor = time_unit(known)
    _draw(left, waits, rows, drawn, [_scaled(wait.wait_us, factor) for wait in waits])
    _draw(right, waits, rows, drawn, [_scaled(wait.share, 0.01) for wait in waits])
    left.set_yticks(range(len(rows)), [_name(row, rows) for row in rows])
    left.set_ylim(len(rows) - 0.5, -0.5)
    left.set_xlabel(f"Mean wait for the lock, {unit}")
    right.set_xlabel("Share of the latency, %")
    legend(figure, list(_entries(waits, drawn)))
    return figure


def _draw(
    axes: Axes,
    waits: Sequence[Wait],
    rows: Sequence[tuple[str, str]],
    drawn: dict[tuple[str, str], Stroke],
    values: Sequence[Estimate | None],
) -> None:
    requests = list(dict.fromkeys(wait.request for wait in waits))
    known = [value for value in values if value]
    most = CUT * max((value.value for value in known), default=0.0)
    ends = [max(value.value, min(value.high, most)) for value in known]
    for wait, value in zip(waits, values, strict=True):
        stroke = drawn[wait.transport, wait.request]
        place = requests.index(wait.request) - (len(requests) - 1) / 2
        y = rows.index((wait.strategy, wait.transport)) + 0.3 * place
        if value is None:
            axes.annotate("no lock", (0, y), (4, 0), textcoords="offset points", va="center", color=QUIET, fontsize=8)
            continue
        colour = QUIET if wait.refused else stroke.colour
        if has_interval(value):
            axes.hlines(y, max(0, value.low), min(value.high, most), color=colour, linewidth=1.2)
        face = "white" if wait.refused else colour
        axes.plot([value.value], [y], marker=stroke.marker, color=colour, mfc=face, linestyle="")
    axes.set_xlim(0, 1.08 * max(ends, default=0.0) or 1)
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")


def _name(row: tuple[str, str], rows: Sequence[tuple[str, str]]) -> str:
    """Name of a row: the strategy; with the transport where it stands with several."""
    strategy, transport = row
    return f"{strategy}, {label(transport)}" if [each for each, _ in rows].count(strategy) > 1 else strategy


def _scaled(of: Estimate | None, factor: float) -> Estimate | None:
    return None if of is None else Estimate(of.value / factor, of.low / factor, of.high / factor, of.n)


def _entries(waits: Sequence[Wait], drawn: dict[tuple[str, str], Stroke]) -> Iterator[Artist]:
    names = [request for _, request in drawn]
    for (transport, request), stroke in drawn.items():
        text = f"{request}, {label(transport)}" if names.count(request) > 1 else request
        yield Line2D([], [], color=stroke.colour, marker=stroke.marker, linestyle="", label=text)
    if any(wait.wait_us and has_interval(wait.wait_us) for wait in waits):
        yield Line2D([], [], color=QUIET, linewidth=1.2, label="95 % interval over blocks")
    if any(wait.refused for wait in waits):
        yield hollow("grey: a gate refuses it")


def alternative(title: str, waits: Sequence[Wait]) -> str:
    """The figure in words: each strategy's wait and share."""
    told = [f"{title}."]
    for wait in waits:
        share = f", {number(100 * wait.share.value)} % of the latency" if wait.share else ""
        words = f"waits {number(wait.wait_us.value)} µs{share}" if wait.wait_us else "no wait for a lock"
        told.append(f"{wait.strategy}, {label(wait.transport)}, {wait.request}: {words}.")
    return " ".join(told) if waits else f"{title}. No wait for a lock was measured here."
