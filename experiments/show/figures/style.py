"""Style of all figures: the style sheet, a grid of panels with title and legend, colours, labels and files.

The index of a transport in ``PROTOCOLS`` gives the colour and the marker. The transport's module gives the label. Lines
of one transport differ in shade, dashes and marker, so that a grey print of a figure is readable. ``panels`` draws
within a panel. Equal data give equal bytes, since files have no dates and no random ids.
"""

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
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
"""Number of letters that fit across a figure, in the font sizes of the title and of the legend."""

SMALL_DPI, SMALL_COLOURS = 130, 64
"""Dots per inch and number of colours of a small picture, which has some 20 kB. With all colours the picture would have
some 80 kB."""

LEGEND_ROW, LEGEND_ROWS = 0.19, 2
"""Height of a legend's row in inches, and the number of rows for which every figure has space."""

INK, QUIET, FAINT, PALE = "#22262b", "#6b7178", "#e3e6e9", "#f5f7f8"
DIFFERENT, SAME = "#9a4300", "#00694c"
"""Colours of verdicts, as on the page of the report. An undecided comparison has the colour ``QUIET``."""

_CLIP = re.compile(rb'<clipPath id="(\w+)">(.*?)</clipPath>', re.DOTALL)
"""Pattern of a clip path in matplotlib's SVG: the path's name, and the printed numbers."""

Dashes = Literal["-", ""] | tuple[float, tuple[float, ...]]

DOTTED: Dashes = (0, (1, 1.6))
"""Dashes of a line that shows no measurement: a limit, a formula, a wish."""

UPRIGHT = Outline([(0, y) for y in range(-5, 6)], [Outline.MOVETO, Outline.LINETO] * 5 + [Outline.MOVETO])
"""Marker that looks like a dotted vertical line, for a legend."""

LIMITED = "hollow: limited by the client, too"
"""Legend text of a hollow marker: client and server together determine the value."""

REFUSED: Mapping[str, Any] = {"marker": "x", "markersize": 6.0, "mew": 1.6}
"""Look of a value that a gate refuses: a cross."""

DASHES: tuple[Dashes, ...] = ("-", (0, (4, 1.4)), (0, (1.2, 1.1)), (0, (5, 1.3, 1.2, 1.3)))
"""Dashes of the lines of one transport, in the order of the lines."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Markers of transports, by the transports' indices in ``PROTOCOLS``."""

SIZES = ((6.6, 2.4), (4.8, 1.6), (3.6, 1.3))
"""Marker sizes and line widths, in the order of the lines. Later lines are thinner, so that a line below is visible."""

SHADES = (0.0, 0.5, -0.75, 0.25)
"""Shades of the lines of one transport, in the order of the lines: share of white, or as a negative number, share of
ink."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """Style of a line with markers."""

    colour: str
    marker: str
    dashes: Dashes
    size: float = 5.0
    """Size of the marker, in points."""
    width: float = 1.8


Strokes = dict[tuple[str, str], Stroke]
"""Strokes of a figure's lines, by the transport and the label of the line."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Figure that is not drawn yet."""

    name: str
    """Name of the figure's file, without the ending."""
    title: str
    alternative: str
    """Content of the figure in words, for readers who cannot see the figure."""
    draw: Callable[[], Figure]


house = partial(style.context, HOUSE)
"""Context in which new figures have the style sheet ``HOUSE``. Also usable as a decorator."""


@cache
def label(transport: str) -> str:
    """Name of a transport for readers, such as ``gRPC``."""
    if transport in TRANSPORTS:
        return str(getattr(load(transport), "LABEL", transport))
    return LABELS.get(transport, transport)


def strokes(lines: Iterable[tuple[str, str]]) -> Strokes:
    """Stroke for each line, which is given by its transport and its label.

    The first line of a transport is solid, in the plain colour. A line without a transport gets a colour and a marker
    by the line's place in the order.
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


def overlaid(drawn: Strokes) -> Strokes:
    """Strokes with different sizes, for lines that may lie on each other."""
    sizes = cycle(SIZES)
    return {
        line: replace(stroke, size=size, width=width)
        for (line, stroke), (size, width) in zip(drawn.items(), sizes, strict=False)
    }


def _look(transport: str) -> tuple[str, str]:
    """Colour and marker of a transport. An unknown transport has grey and a thin diamond."""
    return _nth(PROTOCOLS.index(transport)) if transport in PROTOCOLS else (QUIET, "d")


def _nth(place: int) -> tuple[str, str]:
    """Colour and marker with this index, for a transport or a line."""
    with house():
        colours = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    return to_hex(colours[place % len(colours)]), MARKERS[(place + place // len(colours)) % len(MARKERS)]


def shaded(colour: str, shade: float) -> str:
    """Colour mixed with white, or with ink for a ``shade`` under 0. A shade of 1 is white, and a shade of -1 is ink."""
    other = to_rgb("white" if shade > 0 else INK)
    red, green, blue = (own + (to - own) * abs(shade) for own, to in zip(to_rgb(colour), other, strict=True))
    return to_hex((red, green, blue))


def grid(title: str, height: float, rows: int = 1, columns: int = 1, **how: Any) -> tuple[Figure, npt.NDArray[Any]]:
    """Figure of ``height`` inches with a title, and the panels by row and column. ``how``: options of ``subplots``."""
    figure = Figure(figsize=(WIDTH, height))
    figure.suptitle(wrapped(title, TITLE_LETTERS), x=0.01, ha="left")
    return figure, figure.subplots(rows, columns, squeeze=False, **how)


def key(text: str, **look: Any) -> Line2D:
    """Legend entry that looks like a line of the figure. By default the entry is grey and has no line."""
    return Line2D([], [], **{"color": QUIET, "linestyle": "", "label": text, **look})


def key_of(stroke: Stroke, text: str, line: bool = True) -> Line2D:
    """Legend entry for a line with markers, or only for the markers if ``line`` is false."""
    look = {"color": stroke.colour, "marker": stroke.marker, "markersize": stroke.size, "linewidth": stroke.width}
    return key(text, **look, linestyle=stroke.dashes if line else "")


def interval_key(where: str = ", or within its marker", across: bool = False) -> Line2D:
    """Legend entry for intervals: horizontal intervals if ``across``, else vertical intervals."""
    look: dict[str, Any] = {"linestyle": "-", "linewidth": 1.2} if across else {"marker": "|", "markersize": 11}
    return key(f"95 % interval{where}", color=INK, **look)


def refused_key() -> Line2D:
    """Legend entry for values that a gate refuses."""
    return key("refused: a check of the measurement failed", **REFUSED)


def legend(figure: Figure, handles: Iterable[Artist | tuple[Artist, ...]]) -> None:
    """Add a legend below the panels, in as many columns as fit. The figure becomes higher for a long legend.

    The artists of a tuple are one entry: they are side by side, and have the label of the first artist.
    """
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
    """Width of a legend with this number of columns, in letters. The sign of an entry is 7 letters wide."""
    parts = np.array_split(np.array([max(map(len, text.split("\n"))) for text in labels]), columns)
    return sum(int(part.max()) + 7 for part in parts if len(part))


def wrapped(text: str, letters: int) -> str:
    """Text in the least number of lines, of nearly equal lengths. So the last line is not a single word."""
    narrowest = max((len(word) for word in text.split()), default=1)
    lines = fill(text, max(letters, narrowest), break_on_hyphens=False).count("\n")
    found = (fill(text, width, break_on_hyphens=False) for width in range(narrowest, max(letters, narrowest) + 1))
    return next(filled for filled in found if filled.count("\n") == lines)


def data_of(figure: Figure, kind: Literal["svg", "png"]) -> bytes:
    """Bytes of the figure as an SVG or PNG file."""
    buffer = io.BytesIO()
    with house():
        if kind == "svg":  # ``savefig`` would draw the figure twice, for the layout
            canvas_of = FigureCanvasSVG(figure)
            canvas_of.print_svg(buffer, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
            return _clips_renamed(buffer.getvalue())
        figure.savefig(buffer, format=kind, metadata={"Software": None})
        return buffer.getvalue()


def _clips_renamed(svg: bytes) -> bytes:
    """SVG in which each clip path is named after its printed numbers.

    matplotlib names a clip path after unrounded numbers. The last digits of these numbers differ between processors.
    """
    for name, printed in _CLIP.findall(svg):
        svg = svg.replace(name, b"p" + sha256(printed).hexdigest()[:10].encode())
    return svg


def small_png(figure: Figure) -> bytes:
    """Small PNG of the figure, for a page with many figures. On one machine, equal figures give equal bytes."""
    buffer = io.BytesIO()
    with house():
        figure.set_dpi(SMALL_DPI)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        pixels = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
        drawn = Image.fromarray(pixels).convert("RGB")
    drawn.quantize(SMALL_COLOURS, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
    return buffer.getvalue()
