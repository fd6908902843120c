"""How every figure looks: one colour, marker and label per server, one line style per request type.

Colours are Okabe and Ito's, which people with a colour-blindness tell apart; markers and line styles repeat what the
colours say, so a figure survives a grey printer. Lines of one server differ in tint and dashes. Sizes are for a page
7 inches wide. The same data gives the same bytes: no dates, no random ids. Left out: what is drawn.
"""

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import matplotlib
from matplotlib.axis import Axis
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

LIMITED_MARK = "†"
"""Beside times of runs whose clients were near their own limit, in tables and figures."""
REFUSED_MARK = "§"
"""Beside what gates refuse, in tables and figures."""

WIDTH_INCHES = 7.0
INK = "#22262b"
QUIET = "#6b7178"
"""For what explains: captions, N/X, the pool's edge."""
FAINT = "#dfe3e7"
"""For what must not be noticed: the grid."""
SAME = "#00694c"
DIFFERENT = "#9a4300"
"""Verdicts, in the colours of the report's page; what is open is quiet."""


@dataclass(frozen=True, slots=True)
class Look:
    """How one server is shown, everywhere."""

    label: str
    colour: str
    marker: str


LOOKS: dict[str, Look] = {
    "grpc": Look("gRPC", "#0072B2", "o"),
    "sockets": Look("sockets", "#D55E00", "s"),
    "grpc_aio": Look("gRPC asyncio", "#56B4E9", "D"),
    "zeromq": Look("ZeroMQ", "#009E73", "^"),
    "nng": Look("NNG", "#CC79A7", "v"),
    "http1": Look("HTTP/1.1", "#E69F00", "P"),
    "jsonrpc": Look("JSON-RPC", "#000000", "X"),
}

LINES: dict[str, Literal["-", "--", ":", "-."]] = {"lookup": "-", "trade": "--", "update": ":", "all": "-."}
"""Line style by request type."""

Dashes = Literal["-", "--", ":", "-."] | tuple[float, tuple[float, ...]]

DASHES: tuple[Dashes, ...] = (
    "-",
    (0, (4, 1.3)),
    (0, (1.2, 1)),
    (0, (5, 1.3, 1.2, 1.3)),
    (0, (5, 1.3, 1.2, 1.3, 1.2, 1.3)),
)
"""Line styles of settings of one server, in turn."""

PALEST = 0.5
"""How far towards white the last of a server's lines is; paler ones are lost in print."""

RAMP = "cividis_r"
"""From light for little to dark for much: even steps of lightness, in colour, to the colour-blind and in grey."""

_STEPS: tuple[tuple[float, ...], ...] = ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
"""Ticks within a decade, from many to few."""

_SETTINGS: dict[str, object] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": QUIET,
    "axes.linewidth": 0.8,
    "axes.titlesize": 8.5,
    "axes.titleweight": "normal",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "ytick.major.size": 0,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.hashsalt": "stock_service",
    "svg.fonttype": "path",
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "savefig.facecolor": "white",
}


def look(transport: str) -> Look:
    """The look of a server; one that is not in the table is shown in grey under its own name."""
    return LOOKS.get(transport, Look(transport, QUIET, "d"))


@dataclass(frozen=True, slots=True)
class Stroke:
    """How one line is drawn."""

    colour: str
    marker: str
    dashes: Dashes


def strokes(lines: Sequence[tuple[str, str]]) -> list[Stroke]:
    """A stroke for each line, given as (server, request type).

    The server gives colour and marker, the request type the dashes; where lines agree in both they are settings of one
    server, and its lines differ in tint and dashes, from strong and solid on.
    """
    found = []
    for place, (transport, request) in enumerate(lines):
        style = look(transport)
        own = [index for index, line in enumerate(lines) if line[0] == transport]
        if len({lines[index] for index in own}) == len(own):
            found.append(Stroke(style.colour, style.marker, LINES.get(request, "-")))
            continue
        rank = own.index(place)
        pale = PALEST * rank / (len(own) - 1)
        found.append(Stroke(tinted(style.colour, pale), style.marker, DASHES[rank % len(DASHES)]))
    return found


def tinted(colour: str, pale: float) -> str:
    """The colour, mixed with white: 0 is the colour, 1 is white."""
    red, green, blue = (part + (1 - part) * pale for part in to_rgb(colour))
    return to_hex((red, green, blue))


def log_ticks(low: float, high: float, inches: float, apart_inches: float) -> list[float]:
    """Round numbers from ``low`` to ``high`` (over 0), for a logarithmic axis so long, as many as fit so far apart."""
    per_unit = inches / math.log(high / low)

    def fits(ticks: Sequence[float]) -> bool:
        return all(math.log(after / before) * per_unit >= apart_inches for before, after in pairwise(ticks))

    if high / low < 10:  # under a decade, round numbers lie as on any axis
        evenly = (MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high) for most in range(9, 1, -1))
        candidates = [[float(tick) for tick in ticks] for ticks in evenly]
    else:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        candidates = [[step * 10.0**decade for decade in decades for step in steps] for steps in _STEPS]
        candidates += [[10.0**decade for decade in decades if decade % every == 0] for every in range(2, len(decades))]
    for ticks in candidates:
        inside = [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if inside and fits(inside):
            return inside
    return []


def set_log_ticks(axis: Axis, ticks: Sequence[float]) -> None:
    """These ticks and no others on a logarithmic axis, as plain numbers."""
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: three_digits(value)))


def three_digits(value: float) -> str:
    """Three significant digits at most, no exponent: ``0.164``, ``1.3``, ``12,400``."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{float(f'{value:.3g}'):.10g}"


def measured(value: float) -> str:
    """Three significant digits, kept: ``0.650``, ``1.60``, ``12,400``; for numbers that stand below one another."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:#.3g}"


def set_even_ticks(axis: Axis) -> None:
    """A few round ticks on a linear axis, as plain numbers."""
    axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: three_digits(value)))


def time_unit(most_us: float) -> tuple[str, float]:
    """The unit for times up to so many µs, and how many µs it has."""
    return ("µs", 1.0) if most_us < 1000 else ("ms", 1000.0) if most_us < 1e6 else ("s", 1e6)


def span_unit(times_us: Sequence[float]) -> tuple[str, float]:
    """The unit for a logarithmic axis with these times on it: none so large that the shortest needs four decimals."""
    return time_unit(min(max(times_us, default=1.0), 1000 * min(times_us, default=1.0)))


@contextmanager
def house_style() -> Iterator[None]:
    """Within it, new figures have this look; the reader's own settings are untouched."""
    with matplotlib.rc_context(_SETTINGS):  # type: ignore[arg-type]  # the stub wants matplotlib's literal keys
        yield


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes ``name.svg`` and ``name.png`` into ``folder`` and returns their paths. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    svg, png = folder / f"{name}.svg", folder / f"{name}.png"
    svg.write_text(svg_text(figure), encoding="utf-8")
    with house_style():
        figure.savefig(png, metadata={"Software": None})
    return [svg, png]


def svg_text(figure: Figure) -> str:
    """The figure as SVG."""
    buffer = io.StringIO()
    with house_style():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
