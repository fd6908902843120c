"""Style of all figures: the style sheet, a canvas with title and legend, colours and labels, files.

A transport's colour and marker are those of its place in ``PROTOCOLS``; its label is its module's. Markers repeat
what colours say, so that a figure survives a grey printer. Lines of one transport differ in tint and dashes. The same
data give the same bytes: no dates, no random ids.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import Literal

import matplotlib
import numpy as np
from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from experiments.design.factors import FACTORS, PROTOCOLS
from experiments.peers import LABELS
from stock_service.rpc.transports import TRANSPORTS, load

HOUSE = Path(__file__).with_name("house.mplstyle")

WIDTH = 6.8
"""Width of every figure in inches: that of a page's text."""

TITLE_LETTERS, LEGEND_LETTERS = 78, 88
"""Letters that fit across a figure, in the title's size and in the legend's."""

LEGEND_ROW, LEGEND_ROWS = 0.19, 2
"""Height of a legend's row in inches; and the number of rows that there is always room for."""

EVEN = 4.0
"""A logarithmic axis that spans a smaller factor has even ticks."""

INK, QUIET, FAINT, PALE = "#22262b", "#6b7178", "#e3e6e9", "#f5f7f8"
DIFFERENT, SAME = "#9a4300", "#00694c"
"""Colours of verdicts, as on the report's page; an undecided one has a quiet colour."""

Dashes = Literal["-"] | tuple[float, tuple[float, ...]]

DASHES: tuple[Dashes, ...] = ("-", (0, (4, 1.4)), (0, (1.2, 1.1)), (0, (5, 1.3, 1.2, 1.3)))
"""Dashes of the lines of one transport, in turn."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Markers of transports, by their places."""

PALEST = 0.45
"""Share of white in the last of a transport's lines; paler lines are lost in print."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """Style of a line."""

    colour: str
    marker: str
    dashes: Dashes


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure: its file's name without ending, its title, its content in words, and the function that draws it."""

    name: str
    title: str
    alternative: str
    draw: Callable[[], Figure]


@contextmanager
def house() -> Iterator[None]:
    """Within it, new figures have the house's style; the reader's own settings are untouched. Also a decorator."""
    with style.context(HOUSE):
        yield


@cache
def label(transport: str) -> str:
    """Name of a transport for people; a transport that this project does not have (any more) keeps its own name."""
    if transport in TRANSPORTS:
        return str(getattr(load(transport), "LABEL", transport))
    return LABELS.get(transport) or FACTORS["transport"].former.get(transport, transport)


def strokes(lines: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Stroke]:
    """A stroke for each line, given as (transport, label of the line): the first of a transport is strong and solid."""
    by_transport: dict[str, list[str]] = {}
    for transport, name in dict.fromkeys(lines):
        by_transport.setdefault(transport, []).append(name)
    found = {}
    for transport, names in by_transport.items():
        colour, marker = _look(transport)
        for place, name in enumerate(names):
            pale = PALEST * place / max(1, len(names) - 1)
            found[transport, name] = Stroke(tinted(colour, pale), marker, DASHES[place % len(DASHES)])
    return found


def _look(transport: str) -> tuple[str, str]:
    if transport not in PROTOCOLS:
        return QUIET, "d"
    place = PROTOCOLS.index(transport)
    with house():
        colours = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    return to_hex(colours[place % len(colours)]), MARKERS[(place + place // len(colours)) % len(MARKERS)]


def tinted(colour: str, pale: float) -> str:
    """The colour, mixed with white: 0 is the colour, 1 is white."""
    red, green, blue = (part + (1 - part) * pale for part in to_rgb(colour))
    return to_hex((red, green, blue))


def canvas(title: str, height: float) -> Figure:
    """An empty figure with its title; the height is in inches."""
    figure = Figure(figsize=(WIDTH, height))
    figure.suptitle(wrapped(title, TITLE_LETTERS), x=0.01, ha="left")
    return figure


def legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Adds a legend below the panels, in as many columns as fit; the figure grows where the legend is long."""
    if not handles:
        return
    labels = [fill(str(handle.get_label()), LEGEND_LETTERS) for handle in handles]
    columns = next(count for count in (4, 3, 2, 1) if count == 1 or _legend_letters(labels, count) <= LEGEND_LETTERS)
    figure.legend(handles, labels, loc="outside lower left", ncols=columns)
    rows = sum(text.count("\n") + 1 for text in labels) / columns
    figure.set_figheight(figure.get_figheight() + LEGEND_ROW * max(0.0, rows - LEGEND_ROWS))


def _legend_letters(labels: Sequence[str], columns: int) -> int:
    """Width in letters of a legend with this number of columns, filled one after the other; a handle is 7 letters
    wide."""
    parts = np.array_split(np.array([max(map(len, text.split("\n"))) for text in labels]), columns)
    return sum(int(part.max()) + 7 for part in parts if len(part))


def wrapped(text: str, letters: int) -> str:
    """The text in as few lines as needed, all about as long, so that no word stands alone."""
    narrowest = max((len(word) for word in text.split()), default=1)
    lines = fill(text, max(letters, narrowest), break_on_hyphens=False).count("\n")
    found = (fill(text, width, break_on_hyphens=False) for width in range(narrowest, max(letters, narrowest) + 1))
    return next(filled for filled in found if filled.count("\n") == lines)


def hollow(text: str) -> Line2D:
    """A legend's entry for markers that are grey and hollow."""
    return Line2D([], [], color=QUIET, marker="o", mfc="white", linestyle="", label=text)


def say(axes: Axes, text: str, letters: int = 34) -> None:
    """Writes words in place of data."""
    axes.text(0.5, 0.5, wrapped(text, letters), transform=axes.transAxes, ha="center", va="center", color=QUIET)
    axes.set_facecolor(PALE)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_visible(False)  # not its ticks, which it may share with a panel that has data
    axes.spines[:].set_visible(False)


def even_axis(axis: Axis) -> None:
    """Sets a few round ticks, as plain numbers."""
    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


def log_axis(axis: Axis, low: float, high: float, dense: float = 300) -> None:
    """A few round ticks on a logarithmic axis from ``low`` to ``high``, as plain numbers; none but decades where it
    spans a factor of ``dense``."""
    if high / low < EVEN:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    else:
        subs = (1.0, 2.0, 3.0, 5.0) if high / low < 60 else (1.0, 2.0, 5.0) if high / low < dense else (1.0,)
        axis.set_major_locator(LogLocator(subs=subs, numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


def rows_around_one(axes: Axes, names: Sequence[str], limits: tuple[float, float], band: tuple[float, float]) -> None:
    """A named row for each ratio, from the top, on a logarithmic axis; a line at 1, in a band of what counts as 1."""
    axes.set_xscale("log")
    axes.set_xlim(*limits)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.axvspan(*band, color=FAINT, linewidth=0, zorder=0)
    axes.axvline(1, color=QUIET, linewidth=0.9, zorder=1)
    axes.spines["left"].set_visible(False)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    log_axis(axes.xaxis, *limits)


def plain(value: float) -> str:
    """Text of a tick: ``0.5``, ``20``, ``12,000``."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{float(f'{value:.3g}'):.10g}"


def data_of(figure: Figure, kind: Literal["svg", "png"]) -> bytes:
    """Content of the figure's file."""
    buffer = io.BytesIO()
    with house():
        if kind == "svg":  # by its canvas: ``savefig`` lays the figure out by drawing it once more
            canvas_of = FigureCanvasSVG(figure)
            canvas_of.print_svg(buffer, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
        else:
            figure.savefig(buffer, format=kind, metadata={"Software": None})
    return buffer.getvalue()
