"""How every figure looks: one colour, marker and label per server, one line style per request type.

Colours are Okabe and Ito's, which people with a colour-blindness tell apart; markers and line styles repeat what the
colours say, so a figure survives a grey printer. Sizes are for a page 7 inches wide. The same data gives the same
bytes: no dates, no random ids. Left out: what is drawn.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import matplotlib
from matplotlib.figure import Figure

WIDTH_INCHES = 7.0
INK = "#22262b"
QUIET = "#6b7178"
"""For what explains: captions, N/X, the pool's edge."""
FAINT = "#dfe3e7"
"""For what must not be noticed: the grid."""


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
