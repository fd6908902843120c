"""A family of comparisons as a forest: each ratio with its 95 % interval around 1, and its verdict in words.

Rules: the axis is logarithmic, so that a half and a double lie as far from 1; the band is where a ratio counts as no
difference; what is undecided is grey and says how many blocks would decide; what gates refused is not drawn, and has
their numbers alone. An interval that reaches out of the picture ends in an arrow. Verdicts are read, not made, here:
``stats`` makes them.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from experiments.figures.captions import balanced, framed, text_inches
from experiments.figures.style import (
    DIFFERENT,
    FAINT,
    INK,
    QUIET,
    SAME,
    WIDTH_INCHES,
    log_ticks,
    measured,
    set_log_ticks,
)
from experiments.stats import EQUIVALENCE, Estimate, Verdict

FARTHEST = 3.0
"""The axis ends at this many times the farthest ratio from 1, however far the intervals reach."""

NARROWEST = 1.25
"""The axis reaches at least so far on either side of 1."""

_LABEL_SIZE = 7.5
_NUMBER_SIZE = 7
_LABEL_INCHES = 2.35
"""The most that the names of the comparisons take; longer ones are broken."""
_EDGE_INCHES = 0.13
_GAP_INCHES = 0.13
"""Between the columns."""
_ROW_INCHES = 0.25
_LINE_INCHES = 0.13
"""Each further line of a name."""
_FAR = 100.0
"""An end of an interval this many times from its ratio is given as a bound: it says no more."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """One comparison of a family, as it was judged."""

    text: str
    """What is above ÷ what is below."""
    estimate: Estimate
    """Of the ratio of times, from the blocks' log-ratios."""
    verdict: Verdict
    blocks_needed: int | None = None
    """For INCONCLUSIVE: blocks in all that would decide; None: over 1000, or unknown."""
    refused_by: tuple[int, ...] = ()
    """The numbers of the gates that refused to conclude, ascending."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where the columns stand, in inches from the left."""

    names_end: float
    axes: float
    axes_end: float
    verdicts: float
    numbers: float


@dataclass(frozen=True, slots=True)
class _Row:
    """A comparison, and where its row's middle is, in inches from the top."""

    ratio: Ratio
    name: str
    y: float


def draw_ratios(title: str, ratios: Sequence[Ratio]) -> Figure:
    """A row per comparison, in the order given, from the top."""
    rows, body_inches = _rows(ratios)
    columns = _columns(rows)
    frame = framed(title, body_inches, _sentences(ratios), _legend(ratios), panel_title_inches=0)
    inches = columns.axes_end - columns.axes
    axes = frame.figure.add_axes(
        (columns.axes / WIDTH_INCHES, frame.bottom, inches / WIDTH_INCHES, frame.top - frame.bottom)
    )
    low, high = span(ratios)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(body_inches, 0)
    axes.axvspan(*EQUIVALENCE, color=FAINT, linewidth=0, zorder=0)
    axes.axvline(1, color=QUIET, linewidth=0.9, zorder=1)
    for row in rows:
        _draw_row(axes, row, (low, high))
        _write_row(frame.figure, row, columns, frame.top - frame.at(row.y))
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    set_log_ticks(axes.xaxis, log_ticks(low, high, inches, 0.3))
    axes.set_xlabel("Ratio of times")
    return frame.figure


def _rows(ratios: Sequence[Ratio]) -> tuple[list[_Row], float]:
    """The rows, and how many inches they take."""
    rows = []
    y = 0.0
    for ratio in ratios:
        lines = balanced(ratio.text, _LABEL_INCHES, _LABEL_SIZE)
        height = _ROW_INCHES + _LINE_INCHES * (len(lines) - 1)
        rows.append(_Row(ratio, "\n".join(lines), y + height / 2))
        y += height
    return rows, max(y, _ROW_INCHES)


def _columns(rows: Sequence[_Row]) -> _Columns:
    names = [text_inches(line, _LABEL_SIZE) for row in rows for line in row.name.split("\n")]
    words = [text_inches(_verdict(row.ratio), _LABEL_SIZE, bold=True) for row in rows if not row.ratio.refused_by]
    numbers = [text_inches(_numbers(row.ratio), _NUMBER_SIZE) for row in rows]
    refusals = [text_inches(_verdict(row.ratio), _LABEL_SIZE) for row in rows if row.ratio.refused_by]
    names_end = _EDGE_INCHES + max(names, default=0.0)
    after = max(max(words, default=0) + _GAP_INCHES + max(numbers, default=0), *refusals, 0.0)
    verdicts = WIDTH_INCHES - _EDGE_INCHES - after
    return _Columns(
        names_end,
        names_end + _GAP_INCHES,
        verdicts - _GAP_INCHES,
        verdicts,
        verdicts + max(words, default=0) + _GAP_INCHES,
    )


def span(ratios: Iterable[Ratio]) -> tuple[float, float]:
    """The ends of the axis: as far below 1 as above, every ratio in it, and the intervals unless they reach too far."""
    shown = [ratio.estimate for ratio in ratios if not ratio.refused_by]
    farthest = max((abs(math.log(at.value)) for at in shown), default=0.0)
    ends = [abs(math.log(end)) for at in shown for end in (at.low, at.high) if 0 < end < math.inf]
    reach = min(max([farthest, *ends]), farthest + math.log(FARTHEST))
    reach = 1.08 * max(reach, math.log(NARROWEST))
    return math.exp(-reach), math.exp(reach)


def _draw_row(axes: Axes, row: _Row, limits: tuple[float, float]) -> None:
    if row.ratio.refused_by:
        axes.hlines(row.y, *limits, color=QUIET, linewidth=0.9, linestyle=(0, (1, 3)), zorder=2)
        return
    axes.hlines(row.y, *limits, color=FAINT, linewidth=0.6, zorder=0.5)
    at, colour = row.ratio.estimate, _colour(row.ratio.verdict)
    if at.n > 1:
        low, high = max(at.low, limits[0]), min(at.high, limits[1])
        axes.hlines(row.y, low, high, color=colour, linewidth=1.8, zorder=3)
        for end, beyond, marker in ((low, at.low < limits[0], "<"), (high, at.high > limits[1], ">")):
            if beyond:
                axes.plot([end], [row.y], marker=marker, markersize=4.5, color=colour, clip_on=False, zorder=4)
    face = "white" if row.ratio.verdict is Verdict.INCONCLUSIVE else colour
    axes.plot([at.value], [row.y], marker="o", markersize=5.5, color=colour, mfc=face, linestyle="", zorder=5)


def _write_row(figure: Figure, row: _Row, columns: _Columns, y: float) -> None:
    ratio = row.ratio
    colour = QUIET if ratio.refused_by else INK
    bold = not ratio.refused_by and ratio.verdict is not Verdict.INCONCLUSIVE
    figure.text(
        columns.names_end / WIDTH_INCHES, y, row.name, ha="right", va="center", fontsize=_LABEL_SIZE, color=colour
    )
    figure.text(
        columns.verdicts / WIDTH_INCHES,
        y,
        _verdict(ratio),
        va="center",
        fontsize=_LABEL_SIZE,
        fontweight="bold" if bold else "normal",
        color=_colour(ratio.verdict) if bold else QUIET,
    )
    figure.text(columns.numbers / WIDTH_INCHES, y, _numbers(ratio), va="center", fontsize=_NUMBER_SIZE, color=QUIET)


def _verdict(ratio: Ratio) -> str:
    return f"refused by gate {', '.join(map(str, ratio.refused_by))}" if ratio.refused_by else ratio.verdict.value


def _numbers(ratio: Ratio) -> str:
    """``0.231 (0.204–0.263)``, and the blocks that would decide; nothing for what a gate refused."""
    if ratio.refused_by:
        return ""
    ends = _ends(ratio.estimate)
    text = measured(ratio.estimate.value) + (f" ({'–'.join(ends)})" if ends else "")
    if ratio.verdict is not Verdict.INCONCLUSIVE:
        return text
    return f"{text}; " + (f"≈ {ratio.blocks_needed} blocks" if ratio.blocks_needed else "blocks?")


def _ends(at: Estimate) -> tuple[str, str] | None:
    """The interval's ends; None from one block, which has no interval."""
    if at.n < 2 or at.high == math.inf:
        return None
    low = f"<{measured(at.value / _FAR)}" if at.low < at.value / _FAR else measured(at.low)
    high = f">{measured(at.value * _FAR)}" if at.high > at.value * _FAR else measured(at.high)
    return low, high


def _colour(verdict: Verdict) -> str:
    match verdict:
        case Verdict.EQUIVALENT:
            return SAME
        case Verdict.FASTER | Verdict.SLOWER:
            return DIFFERENT
        case Verdict.INCONCLUSIVE:
            return QUIET


def _legend(ratios: Sequence[Ratio]) -> list[Line2D | Patch]:
    entries: list[Line2D | Patch] = []
    shown = {_colour(ratio.verdict): ratio.verdict for ratio in ratios if not ratio.refused_by}
    for colour, label in ((DIFFERENT, "different"), (SAME, "equivalent"), (QUIET, "undecided")):
        if colour in shown:
            face = "white" if colour == QUIET else colour
            entries.append(Line2D([], [], color=colour, marker="o", markersize=5.5, mfc=face, label=label))
    low, high = EQUIVALENCE
    entries.append(Patch(facecolor=FAINT, label=f"counts as no difference, {low:g} to {high:g}"))
    return entries


def _sentences(ratios: Sequence[Ratio]) -> Iterator[str]:
    if not ratios:
        yield "No comparison of this family was run."
        return
    shown = [ratio for ratio in ratios if not ratio.refused_by]
    if shown:
        yield from _about_numbers(shown)
    if len(shown) < len(ratios):
        yield (
            "Refused: a gate allows no verdict, so neither ratio nor interval is drawn; in tables they decide nothing."
        )


def _about_numbers(ratios: Sequence[Ratio]) -> Iterator[str]:
    blocks = sorted({ratio.estimate.n for ratio in ratios})
    number = f"{blocks[0]}" if blocks[0] == blocks[-1] else f"{blocks[0]} to {blocks[-1]}"
    yield (
        f"Points: ratios of times over {number} {'block' if blocks[-1] == 1 else 'blocks'}; in A ÷ B, under 1, A is "
        "FASTER (of a latency per client: it grew by less than the clients did). Lines, and brackets: 95 % intervals "
        "(Student’s t on the blocks’ log-ratios)."
    )
    yield "Verdicts: of the whole family, with Holm’s correction."
    undecided = [ratio for ratio in ratios if ratio.verdict is Verdict.INCONCLUSIVE]
    if undecided:
        yield "“≈ n blocks”: so many in all would decide, if what was seen holds" + (
            "; “blocks?”: over 1,000, or unknown." if any(ratio.blocks_needed is None for ratio in undecided) else "."
        )


def text_alternative(title: str, ratios: Sequence[Ratio]) -> str:
    """What the picture shows: every comparison's ratio, interval and verdict."""
    return f"{title}. " + " ".join(_spoken(ratio) for ratio in ratios)


def _spoken(ratio: Ratio) -> str:
    if ratio.refused_by:
        return f"{ratio.text}: {_verdict(ratio)}."
    ends = _ends(ratio.estimate)
    interval = f" ({' to '.join(ends)})" if ends else ""
    undecided = ratio.verdict is Verdict.INCONCLUSIVE
    needed = f", about {ratio.blocks_needed} blocks would decide" if undecided and ratio.blocks_needed else ""
    return f"{ratio.text}: {measured(ratio.estimate.value)}{interval}, {ratio.verdict.value}{needed}."
