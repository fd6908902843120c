"""Figures over the locking strategies: what is waited for the lock, and the latency that it is a part of.

A row of panels per request type (a Lookup takes a reader's lock, a Trade a writer's), a column per statistic;
strategies stand under each other, so that their names can be read. Rules as in ``panels``; values are printed beside
their bar. A strategy whose readers take no lock has no wait, and the panel says so.
"""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.figures.captions import caption_lines, draw_caption, draw_title, legend_above
from experiments.figures.series import LOCK_WAIT, LOCK_WAIT_P99, MEAN, Facet, Point, Statistic, point
from experiments.figures.style import FAINT, QUIET, WIDTH_INCHES, look, measured
from experiments.results import Row

STRATEGIES = ("mutex", "per-stock", "read-write", "two-level", "snapshot")
"""The order from top to bottom; strategies that are not named here follow."""

_COLUMNS: tuple[Statistic, ...] = (LOCK_WAIT, LOCK_WAIT_P99, MEAN)
_STEP_INCHES = 0.36
CUT_AT = 2.0
"""A bar is cut at this many times the value that it belongs to, and ends there in an arrow."""


def draw_strategies(title: str, facets: Sequence[Facet]) -> Figure:
    """A row of panels per facet (a request type at a number of clients), three columns."""
    rows = [row for facet in facets for row in facet.rows]
    strategies = strategies_of(rows)
    more = "Typical waits and their 99th percentiles: geometric means over runs. A bar that ends in an arrow goes on."
    caption = [*caption_lines(facets), more]
    foot_inches = 0.42 + 0.155 * len(caption)
    panel_inches = 0.35 + _STEP_INCHES * len(strategies)
    height = 0.95 + (panel_inches + 0.2) * len(facets) + foot_inches
    figure = Figure(figsize=(WIDTH_INCHES, height))
    grid = figure.add_gridspec(
        len(facets),
        len(_COLUMNS),
        left=0.13,
        right=0.985,
        top=1 - 0.95 / height,
        bottom=foot_inches / height,
        wspace=0.14,
        hspace=0.45,
    )
    for line, facet in enumerate(facets):
        for column, statistic in enumerate(_COLUMNS):
            axes = figure.add_subplot(grid[line, column])
            _draw_panel(axes, facet, statistic, strategies)
            shown = "mean latency, ms" if statistic is MEAN else statistic.title
            axes.set_title(f"{facet.title}: {shown}" if column == 0 else shown)
            axes.tick_params(labelleft=column == 0)
    draw_title(figure, title)
    legend_above(figure, _legend(rows))
    draw_caption(figure, caption)
    return figure


def text_alternative(title: str, facets: Sequence[Facet]) -> str:
    """What the picture shows: for every strategy its typical wait and the latency beside it."""
    return f"{title}. " + " ".join(
        f"{facet.title}: {'; '.join(_spoken(facet, name) for name in strategies_of(facet.rows))}." for facet in facets
    )


def _spoken(facet: Facet, strategy: str) -> str:
    texts = []
    for transport in sorted({row.transport for row in facet.rows}):
        own = [row for row in facet.rows if (row.locking, row.transport) == (strategy, transport)]
        if not own:
            continue
        wait = point(own, LOCK_WAIT.of, 0, LOCK_WAIT.average)
        latency = point(own, MEAN.of, 0, refused=facet.refused)
        waited = f"typically waits {wait.value:.3g} µs" if wait else "takes no lock"
        text = f"{strategy} on {look(transport).label} {waited}"
        if latency:
            text += f" of {latency.value:.3g} ms" + (" (hollow)" if latency.hollow else "")
        texts.append(text)
    return ", ".join(texts)


def strategies_of(rows: Sequence[Row]) -> list[str]:
    """The strategies that have rows, in the order in which they are shown."""
    found = {row.locking for row in rows}
    return [name for name in STRATEGIES if name in found] + sorted(found - set(STRATEGIES))


def _draw_panel(axes: Axes, facet: Facet, statistic: Statistic, strategies: Sequence[str]) -> None:
    transports = sorted({row.transport for row in facet.rows})
    highest = 0.0
    for place, strategy in enumerate(strategies):
        for index, transport in enumerate(transports):
            own = [row for row in facet.rows if row.locking == strategy and row.transport == transport]
            y = place + 0.4 * (index - (len(transports) - 1) / 2)
            found = point(own, statistic.of, y, statistic.average, facet.refused)
            if found is not None:
                _draw_point(axes, found, transport, found.hollow if statistic is MEAN else found.refused)
                highest = max(highest, _end(found))
            elif own and statistic is not MEAN:
                axes.text(0, y, " no lock taken", color=QUIET, fontsize=7, va="center")
    axes.set_xlim(0, highest * 1.35 or 1)
    axes.set_ylim(len(strategies) - 0.5, -0.5)
    axes.set_yticks(range(len(strategies)), list(strategies))
    axes.grid(visible=True, axis="x", color=FAINT)
    axes.locator_params(axis="x", nbins=4)


def _draw_point(axes: Axes, at: Point, transport: str, hollow: bool) -> None:
    """A wait is the server's own, whatever the clients took."""
    style = look(transport)
    end = _end(at)
    if at.low is not None and at.high is not None:
        axes.hlines(at.x, at.low, end, color=style.colour, linewidth=1.2, alpha=0.75)
        if end < at.high:
            axes.plot([end], [at.x], marker=">", markersize=3.5, color=style.colour, linestyle="")
    face = "white" if hollow else style.colour
    axes.plot([at.value], [at.x], marker=style.marker, color=style.colour, mfc=face, linestyle="")
    axes.annotate(
        measured(at.value),
        (end, at.x),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        fontsize=7,
        color=QUIET,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )


def _end(at: Point) -> float:
    """Where what is drawn of a point ends."""
    return at.value if at.high is None else min(at.high, CUT_AT * at.value)


def _legend(rows: Sequence[Row]) -> list[Line2D]:
    return [
        Line2D([], [], color=look(name).colour, marker=look(name).marker, linestyle="", label=look(name).label)
        for name in sorted({row.transport for row in rows})
    ]
