"""The words of a figure: its title, legend and caption, and the text for those who cannot see it.

Rules: a caption says how many runs, how long, and on which cores, from the rows themselves; a text alternative gives
the numbers at both ends of every line, so that it stands for the picture. Left out: what the numbers mean, which the
report says.
"""

import textwrap
from collections.abc import Iterable, Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.figures.series import MEAN, P99, Facet, Series, by_clients
from experiments.figures.style import INK, QUIET, look

CAPTION_COLUMNS = 128
"""Characters in a line of a caption, at the width of a figure."""
LEFT = 0.012
LEGEND_COLUMNS = 5


def draw_title(figure: Figure, title: str) -> None:
    """The title, at the top left."""
    height = figure.get_size_inches()[1]
    figure.text(LEFT, 1 - 0.1 / height, title, ha="left", va="top", fontsize=10.5, fontweight="bold", color=INK)


def legend_above(figure: Figure, entries: Sequence[Line2D]) -> None:
    """The entries, in a line under the title."""
    height = figure.get_size_inches()[1]
    figure.legend(
        borderpad=0.2,
        handles=list(entries),
        loc="upper left",
        bbox_to_anchor=(LEFT, 1 - 0.3 / height),
        ncols=min(len(entries), LEGEND_COLUMNS),
        handlelength=2.6,
        columnspacing=1.4,
        handletextpad=0.5,
        borderaxespad=0,
    )


def draw_caption(figure: Figure, lines: Sequence[str]) -> None:
    """The caption, at the bottom left."""
    height = figure.get_size_inches()[1]
    figure.text(
        LEFT, 0.06 / height, "\n".join(lines), ha="left", va="bottom", fontsize=7.2, color=QUIET, linespacing=1.35
    )


def caption_lines(facets: Sequence[Facet]) -> list[str]:
    """How the figure's data came about, wrapped to the figure's width."""
    return textwrap.wrap(" ".join(_sentences(facets)), CAPTION_COLUMNS)


def _sentences(facets: Sequence[Facet]) -> Iterable[str]:
    rows = [row for facet in facets for row in facet.rows]
    blocks = len({row.block for row in rows})
    durations = sorted({row.duration_s for row in rows})
    length = f"{durations[0]:.3g} s" if durations[-1] < 1.05 * durations[0] else "unequal length"
    runs = f"{blocks} blocks, one run of {length} each" if blocks > 1 else f"One run of {length}"
    yield f"{runs}, on a fresh server after a warm-up."
    if all(row.pinned for row in rows):
        yield "Server and clients on a core each."
    elif not any(row.pinned for row in rows):
        yield "Server and clients not pinned to cores."
    else:
        yield "Some runs pinned to cores, some not: do not compare them."
    measures = (MEAN.of, P99.of)
    lines = [line for facet in facets for measure in measures for line in by_clients(facet.rows, measure)]
    points = [point for line in lines for point in line.points]
    if any(point.low is not None for point in points):
        yield "Bars: 95 % interval of the mean over runs (Student’s t)."
    if any(point.low is None for point in points):
        yield "No bar: too few runs for an interval, or one that reaches below zero."
    if any(row.load_limited for row in rows):
        yield "Hollow: in some run the clients took over 80 % of their core; latency of client and server together."
    starved = max((row.starved_clients for row in rows), default=0)
    if starved:
        yield f"Up to {starved} clients got no reply in the window; they are in no latency."


def text_alternative(title: str, facets: Sequence[Facet]) -> str:
    """What the picture shows: for every line its mean latency at both ends."""
    spoken = (
        (f"{facet.title}: " if facet.title else "") + _spoken(line)
        for facet in facets
        for line in by_clients(facet.rows, MEAN.of)
    )
    return f"{title}. " + " ".join(spoken)


def _spoken(line: Series) -> str:
    first, last = line.points[0], line.points[-1]
    text = (
        f"{look(line.transport).label}, {line.request.capitalize()}, mean {first.value:.3g} ms at {_clients(first.x)}"
    )
    return f"{text}." if first is last else f"{text}, {last.value:.3g} ms at {_clients(last.x)}."


def _clients(number: float) -> str:
    return "1 client" if number == 1 else f"{number:g} clients"
