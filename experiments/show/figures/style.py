"""Style of all figures: the style sheet, a grid of panels with title and legend, colours and labels, files.

A transport's colour and marker follow its place in ``PROTOCOLS``; its label is that of its module. Lines of one
transport differ in shade, dashes and marker, so that a figure survives a grey printer. ``panels`` draws within a panel.
The same data give the same bytes: no dates, no random ids.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.path import Path as Outline
from PIL import Image

from experiments.design.factors import PROTOCOLS
from experiments.peers import LABELS
from stock_service.rpc.transports import TRANSPORTS, load

HOUSE = Path(__file__).with_name("house.mplstyle")

WIDTH = 6.8
"""Width of every figure in inches: the width of a page's text."""

TITLE_LETTERS, LEGEND_LETTERS = 78, 88
"""Letters that fit across a figure, at the size of the title and of the legend."""

SMALL_DPI, SMALL_COLOURS = 130, 64
"""Dots per inch and colours of a small picture: some 20 kB, a quarter of the size in all colours."""

LEGEND_ROW, LEGEND_ROWS = 0.19, 2
"""Height of a legend's row in inches, and the number of rows that always have room."""

INK, QUIET, FAINT, PALE = "#22262b", "#6b7178", "#e3e6e9", "#f5f7f8"
DIFFERENT, SAME = "#9a4300", "#00694c"
"""Colours of verdicts, as on the report's page. An undecided verdict has a quiet colour."""

_CLIP = re.compile(rb'<clipPath id="(\w+)">(.*?)</clipPath>', re.DOTALL)
"""A clip path in matplotlib's SVG: its name, and its printed numbers."""

Dashes = Literal["-", ""] | tuple[float, tuple[float, ...]]

DOTTED: Dashes = (0, (1, 1.6))
"""Dashes of a line that was not measured: a limit, a formula, a wish."""

UPRIGHT = Outline([(0, y) for y in range(-5, 6)], [Outline.MOVETO, Outline.LINETO] * 5 + [Outline.MOVETO])
"""Marker of a dotted vertical line in a legend."""

LIMITED = "hollow: limited by the client, too"
"""Words for a hollow marker: the value is that of client and server together."""

REFUSED: Mapping[str, Any] = {"marker": "x", "markersize": 6.0, "mew": 1.6}
"""Look of a value that a gate refuses: a cross."""

DASHES: tuple[Dashes, ...] = ("-", (0, (4, 1.4)), (0, (1.2, 1.1)), (0, (5, 1.3, 1.2, 1.3)))
"""Dashes of the lines of one transport, in turn."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Markers of transports, by their places."""

SIZES = ((6.6, 2.4), (4.8, 1.6), (3.6, 1.3))
"""Sizes of the markers and widths of the lines of a figure, in turn, so that a line below another stays visible."""

SHADES = (0.0, 0.5, -0.75, 0.25)
"""Shades of the lines of one transport, in turn: shares of white; under 0 shares of ink."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """Style of a line."""

    colour: str
    marker: str
    dashes: Dashes
    size: float = 5.0
    """Size of the marker, in points."""
    width: float = 1.8


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure: its file's name without ending, its title, its content in words, and the function that draws it."""

    name: str
    title: str
    alternative: str
    draw: Callable[[], Figure]


@contextmanager
def house() -> Iterator[None]:
    """Context in which new figures have the house's style; the caller's own settings are untouched. Also a
    decorator."""
    with style.context(HOUSE):
        yield


@cache
def label(transport: str) -> str:
    """Name of a transport for people."""
    if transport in TRANSPORTS:
        return str(getattr(load(transport), "LABEL", transport))
    return LABELS.get(transport, transport)


def strokes(lines: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Stroke]:
    """A stroke for each line, given as (transport, label of the line): the first of a transport is plain and solid.

    Lines of no transport have a colour and a marker each.
    """
    by_transport: dict[str, list[str]] = {}
    for transport, name in dict.fromkeys(lines):
        by_transport.setdefault(transport, []).append(name)
    taken = [_look(transport)[1] for transport in by_transport]
    free = [marker for marker in MARKERS if marker not in taken] or list(MARKERS)
    found, others = {}, 0
    for transport, names in by_transport.items():
        for place, name in enumerate(names):
            colour, marker = _nth(place) if not transport else _look(transport)
            if transport and place:
                marker, others = free[others % len(free)], others + 1
            shade = SHADES[place % len(SHADES)] if transport else 0.0
            found[transport, name] = Stroke(shaded(colour, shade), marker, DASHES[place % len(DASHES)])
    return found


def overlaid(drawn: dict[tuple[str, str], Stroke]) -> dict[tuple[str, str], Stroke]:
    """The strokes in sizes that tell lines apart which lie on each other."""
    sizes = cycle(SIZES)
    return {
        line: replace(stroke, size=size, width=width)
        for (line, stroke), (size, width) in zip(drawn.items(), sizes, strict=False)
    }


def _look(transport: str) -> tuple[str, str]:
    return _nth(PROTOCOLS.index(transport)) if transport in PROTOCOLS else (QUIET, "d")


def _nth(place: int) -> tuple[str, str]:
    with house():
        colours = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    return to_hex(colours[place % len(colours)]), MARKERS[(place + place // len(colours)) % len(MARKERS)]


def shaded(colour: str, shade: float) -> str:
    """The colour, mixed with white, or with ink where ``shade`` is under 0: 0 is the colour, 1 is white, -1 is ink."""
    other = to_rgb("white" if shade > 0 else INK)
    red, green, blue = (own + (to - own) * abs(shade) for own, to in zip(to_rgb(colour), other, strict=True))
    return to_hex((red, green, blue))


def grid(title: str, height: float, rows: int = 1, columns: int = 1, **how: Any) -> tuple[Figure, npt.NDArray[Any]]:
    """A figure with its title, of ``height`` inches, and its panels by row and column; ``how`` goes to matplotlib's
    ``subplots``."""
    figure = Figure(figsize=(WIDTH, height))
    figure.suptitle(wrapped(title, TITLE_LETTERS), x=0.01, ha="left")
    return figure, figure.subplots(rows, max(1, columns), squeeze=False, **how)


def key(text: str, **look: Any) -> Line2D:
    """A legend's entry that looks like the drawn line: quiet and without a line unless ``look`` says otherwise."""
    return Line2D([], [], **{"color": QUIET, "linestyle": "", "label": text, **look})


def key_of(stroke: Stroke, text: str, line: bool = True) -> Line2D:
    """A legend's entry for a line with its markers, or for the markers alone."""
    look = {"color": stroke.colour, "marker": stroke.marker, "markersize": stroke.size, "linewidth": stroke.width}
    return key(text, **look, linestyle=stroke.dashes if line else "")


def interval_key(where: str = ", or within its marker", across: bool = False) -> Line2D:
    """A legend's entry for intervals, vertical or horizontal, and for intervals that are within their markers."""
    look: dict[str, Any] = {"linestyle": "-", "linewidth": 1.2} if across else {"marker": "|", "markersize": 11}
    return key(f"95 % interval{where}", color=INK, **look)


def refused_key() -> Line2D:
    """A legend's entry for refused values."""
    return key("refused: a check of the measurement failed", **REFUSED)


def limited_key() -> Line2D:
    """A legend's entry for hollow markers."""
    return key(LIMITED, marker="o", mfc="white")


def standing_key(text: str) -> Line2D:
    """A legend's entry for a dotted vertical line."""
    return key(text, marker=UPRIGHT, markersize=11, mew=1)


def legend(figure: Figure, handles: Iterable[Artist | tuple[Artist, ...]]) -> None:
    """Adds a legend below the panels, in as many columns as fit; the figure grows where the legend is long. Several
    artists in a tuple stand side by side, with the label of the first."""
    entries: list[Any] = list(handles)
    if not entries:
        return
    firsts: list[Artist] = [each[0] if isinstance(each, tuple) else each for each in entries]
    labels = [fill(str(each.get_label()), LEGEND_LETTERS) for each in firsts]
    columns = next(count for count in (4, 3, 2, 1) if count == 1 or _legend_letters(labels, count) <= LEGEND_LETTERS)
    several = {tuple: HandlerTuple(ndivide=None, pad=0.2)}
    figure.legend(entries, labels, loc="outside lower left", ncols=columns, handler_map=several)
    rows = sum(text.count("\n") + 1 for text in labels) / columns
    figure.set_figheight(figure.get_figheight() + LEGEND_ROW * max(0.0, rows - LEGEND_ROWS))


def _legend_letters(labels: Sequence[str], columns: int) -> int:
    """Width in letters of a legend with this number of columns, filled one after the other; a handle is 7 letters
    wide."""
    parts = np.array_split(np.array([max(map(len, text.split("\n"))) for text in labels]), columns)
    return sum(int(part.max()) + 7 for part in parts if len(part))


def wrapped(text: str, letters: int) -> str:
    """The text in as few lines as needed, all of nearly equal length, so that no word stands alone."""
    narrowest = max((len(word) for word in text.split()), default=1)
    lines = fill(text, max(letters, narrowest), break_on_hyphens=False).count("\n")
    found = (fill(text, width, break_on_hyphens=False) for width in range(narrowest, max(letters, narrowest) + 1))
    return next(filled for filled in found if filled.count("\n") == lines)


def data_of(figure: Figure, kind: Literal["svg", "png"]) -> bytes:
    """Content of the figure's file."""
    buffer = io.BytesIO()
    with house():
        if kind == "svg":  # by the canvas: ``savefig`` would draw the figure once more for its layout
            canvas_of = FigureCanvasSVG(figure)
            canvas_of.print_svg(buffer, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
            return _clips_renamed(buffer.getvalue())
        figure.savefig(buffer, format=kind, metadata={"Software": None})
        return buffer.getvalue()


def _clips_renamed(svg: bytes) -> bytes:
    """A figure whose clip paths are named after their printed numbers. matplotlib names them after unrounded numbers,
    whose last digits differ between processors."""
    for name, printed in _CLIP.findall(svg):
        svg = svg.replace(name, b"p" + sha256(printed).hexdigest()[:10].encode())
    return svg


def small_png(figure: Figure) -> bytes:
    """The figure as a small picture, for a page with many figures. A figure gives the same bytes each time on one
    machine."""
    buffer = io.BytesIO()
    with house():
        figure.set_dpi(SMALL_DPI)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        pixels = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
        drawn = Image.fromarray(pixels).convert("RGB")
    drawn.quantize(SMALL_COLOURS, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
    return buffer.getvalue()
