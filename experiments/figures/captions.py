"""The words of a figure: its title, legend and caption, and the text for those who cannot see it.

Rules: a caption says how many runs, how long, and on which cores, from the rows themselves; a text alternative gives
the numbers at both ends of every line, so that it stands for the picture. ``framed`` gives a figure the height that
its words need, so that none of them lies on another. Left out: what the numbers mean, which the report says.
"""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager, get_font
from matplotlib.lines import Line2D

from experiments.figures.series import MEAN, P99, Facet, Series, by_clients
from experiments.figures.style import INK, LIMITED_MARK, QUIET, REFUSED_MARK, WIDTH_INCHES, look

CAPTION_COLUMNS = 128
"""Characters in a line of a caption, at the width of a figure."""
LEFT = 0.012
LEGEND_COLUMNS = 5

_TITLE_SIZE = 10.5
_TITLE_LINE_INCHES = 0.19
_LEGEND_SIZE = 8
_LEGEND_LINE_INCHES = 0.17
_CAPTION_SIZE = 7.2
_CAPTION_LINE_INCHES = 0.155
_FINE_DPI = 576
"""For measuring text: no rounding of letters to pixels."""
_WORDS_INCHES = WIDTH_INCHES * (1 - 2 * LEFT)
"""What a line of words has."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A figure with its words, and the room between them, as shares of its height."""

    figure: Figure
    height_inches: float
    top: float
    bottom: float

    def at(self, inches: float) -> float:
        """A height in inches as a share of the figure's."""
        return inches / self.height_inches


def framed(
    title: str,
    body_inches: float,
    sentences: Iterable[str],
    entries: Sequence[Artist] = (),
    axis_inches: float = 0.47,
    panel_title_inches: float = 0.22,
) -> Frame:
    """A figure as high as title, legend, body and caption need.

    ``axis_inches`` are for what stands under the lowest axes, ``panel_title_inches`` for what stands over the highest.
    """
    titles = fitted(title, _WORDS_INCHES, _TITLE_SIZE, bold=True)
    caption = fitted(" ".join(sentences), _WORDS_INCHES, _CAPTION_SIZE)
    columns = _legend_columns([str(entry.get_label()) for entry in entries])
    rows = -(-len(entries) // columns)
    legend_inches = 0.1 + _TITLE_LINE_INCHES * len(titles)
    head_inches = legend_inches + _LEGEND_LINE_INCHES * rows + 0.14 + panel_title_inches
    foot_inches = axis_inches + _CAPTION_LINE_INCHES * len(caption) + 0.12
    height = head_inches + body_inches + foot_inches
    figure = Figure(figsize=(WIDTH_INCHES, height))
    draw_title(figure, "\n".join(titles))
    if entries:
        figure.legend(
            handles=list(entries),
            loc="upper left",
            bbox_to_anchor=(LEFT, 1 - (legend_inches + 0.04) / height),
            ncols=columns,
            handlelength=2.6,
            columnspacing=1.4,
            handletextpad=0.5,
            labelspacing=0.35,
            borderpad=0,
            borderaxespad=0,
        )
    draw_caption(figure, caption)
    return Frame(figure, height, 1 - head_inches / height, foot_inches / height)


@cache
def text_inches(text: str, size: float, bold: bool = False) -> float:
    """How wide a line of text is when drawn at a size in points; spaces count."""
    face = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    font = get_font(fontManager.findfont(face))
    font.set_size(size, _FINE_DPI)
    font.set_text(text)
    width, _ = font.get_width_height()
    return width / 64 / _FINE_DPI  # FreeType counts in 64ths of a pixel


def fitted(text: str, inches: float, size: float, bold: bool = False) -> list[str]:
    """The text in lines that are no wider than this, broken between words, but not at a ÷ or before a %."""
    words = text.replace(" ÷ ", "\u00a0÷\u00a0").replace(" %", "\u00a0%").split(" ")
    space = text_inches("n n", size, bold) - text_inches("nn", size, bold)
    lines: list[str] = []
    taken = 0.0
    for word in filter(None, words):
        own = text_inches(word, size, bold)
        taken += space + own
        if lines and taken <= inches:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
            taken = own
    return lines


def balanced(text: str, inches: float, size: float) -> list[str]:
    """As ``fitted``, in lines of about the same width: for names, which would end in a single word."""
    lines = fitted(text, inches, size)
    for share in (0.5, 0.6, 0.7, 0.8, 0.9):
        narrower = fitted(text, share * inches, size)
        if len(narrower) == len(lines):
            return narrower
    return lines


def _legend_columns(labels: Sequence[str]) -> int:
    """As many columns as fit side by side; entries run down each column first."""
    for columns in range(min(len(labels), LEGEND_COLUMNS), 1, -1):
        per_column, more = divmod(len(labels), columns)
        ends = [per_column * (column + 1) + min(column + 1, more) for column in range(columns)]
        groups = [labels[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        widest = sum(max(text_inches(label, _LEGEND_SIZE) for label in group) for group in groups)
        between = _LEGEND_SIZE / 72 * (columns * (2.6 + 0.5) + (columns - 1) * 1.4)
        if widest + between <= _WORDS_INCHES:
            return columns
    return 1


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
        LEFT,
        0.06 / height,
        "\n".join(lines),
        ha="left",
        va="bottom",
        fontsize=_CAPTION_SIZE,
        color=QUIET,
        linespacing=1.35,
    )


def caption_lines(facets: Sequence[Facet], more: Iterable[str] = ()) -> list[str]:
    """How the figure's data came about, and further sentences, wrapped to the figure's width."""
    return textwrap.wrap(" ".join([*_sentences(facets), *more]), CAPTION_COLUMNS)


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
    lines = [line for facet in facets for each in measures for line in by_clients(facet.rows, each, facet.refused)]
    points = [point for line in lines for point in line.points]
    if any(point.low is not None for point in points):
        yield "Bars: 95 % interval of the mean over runs (Student’s t)."
    if any(point.low is None for point in points):
        yield "No bar: too few runs for an interval, or one that reaches below zero."
    limited = "in some run the clients took over 80 % of their core, so latency of client and server together"
    why = [f"{limited} ({LIMITED_MARK} in the table)"] if any(point.load_limited for point in points) else []
    why += [f"refused by a gate ({REFUSED_MARK} in the table)"] if any(point.refused for point in points) else []
    if why:
        yield f"Hollow: {', or '.join(why)}."
    starved = max((row.starved_clients for row in rows), default=0)
    if starved:
        yield f"Up to {starved} clients got no reply in the window; they are in no latency."


def text_alternative(title: str, facets: Sequence[Facet]) -> str:
    """What the picture shows: for every line its mean latency at both ends, and where its points are hollow."""
    spoken = (
        (f"{facet.title}: " if facet.title else "") + _spoken(line)
        for facet in facets
        for line in by_clients(facet.rows, MEAN.of, facet.refused)
    )
    return f"{title}. " + " ".join(spoken)


def _spoken(line: Series) -> str:
    first, last = line.points[0], line.points[-1]
    text = (
        f"{look(line.transport).label}, {line.request.capitalize()}, mean {first.value:.3g} ms at {_clients(first.x)}"
    )
    if first is not last:
        text += f", {last.value:.3g} ms at {_clients(last.x)}"
    hollow = [f"{point.x:g}" for point in line.points if point.hollow]
    return f"{text}; hollow at {', '.join(hollow)}." if hollow else f"{text}."


def _clients(number: float) -> str:
    return "1 client" if number == 1 else f"{number:g} clients"
