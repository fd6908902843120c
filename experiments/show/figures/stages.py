"""Stages of a request inside the server: a stacked bar for each setting, the sum written at its end.

Bars are means over all requests, so that the stages add up to the mean of the whole. The wait for the lock is often too
short to be seen in its bar: it is written beside the sum. Stamping a request costs about 1 µs. Nothing here has a
verdict.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.results.stages import StageSummary
from experiments.show.figures.style import QUIET, Picture, canvas, even_axis, house, legend, say, wrapped
from experiments.show.numbers import number, time_unit

STAGES = {
    "queue_wait": "waits for a thread",
    "preparation": "decoding, checks",
    "lock_wait": "waits for the lock",
    "service": "the work itself",
    "reply": "sends the reply",
}
"""Label of each stage, in their order."""

COLOURS = ("C4", "C5", "C1", "C0", "0.62")
"""Colours of the stages, from the style's cycle: waiting is orange, work is blue, the rest grey."""

NAME_LETTERS = 26

VIOLATIONS = 0.001
"""Share of the requests over which stamps that do not add up are mentioned."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One setting: its label, and its stages in each block; none where nothing was stamped."""

    label: str
    blocks: Sequence[StageSummary]
    refused: bool = False

    def mean_us(self, stage: str) -> float:
        """Mean of a stage over all requests of all blocks."""
        total = sum(each.count for each in self.blocks)
        return sum(each.count * getattr(each, stage).mean_us for each in self.blocks) / total if total else 0.0

    @property
    def violation_share(self) -> float:
        """Share of the requests whose stamps do not add up."""
        total = sum(each.count for each in self.blocks)
        return sum(each.violations for each in self.blocks) / total if total else 0.0


def picture(name: str, title: str, bars: Sequence[Bar]) -> Picture:
    """The figure with its words, to be drawn when it is wanted."""
    return Picture(name, title, alternative(title, bars), lambda: draw(title, bars))


@house()
def draw(title: str, bars: Sequence[Bar]) -> Figure:
    """A bar for each setting, in the order given, from the top."""
    figure = canvas(title, 1.5 + 0.42 * max(1, len(bars)))
    axes = figure.subplots()
    totals = [sum(map(bar.mean_us, STAGES)) for bar in bars]
    if not any(totals):
        say(axes, "No server stamped the stages of its requests here.")
        return figure
    unit, factor = time_unit(totals)
    for row, (bar, total) in enumerate(zip(bars, totals, strict=True)):
        left = 0.0
        for stage, colour in zip(STAGES, COLOURS, strict=True):
            width = bar.mean_us(stage) / factor
            face, edge = ("white", QUIET) if bar.refused else (colour, "white")
            axes.barh(row, width, left=left, height=0.62, color=face, edgecolor=edge, linewidth=0.7)
            left += width
        lock = f", lock {number(bar.mean_us('lock_wait'))} µs"
        words = f"{number(total / factor)} {unit}{lock}" if bar.blocks else "nothing was stamped"
        axes.annotate(words + _warning(bar), (left, row), (5, 0), textcoords="offset points", va="center", color=QUIET)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_yticks(range(len(bars)), [wrapped(bar.label, NAME_LETTERS) for bar in bars])
    axes.set_xlim(0, 1.4 * max(totals) / factor)  # room for the words at the longest bar's end
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    even_axis(axes.xaxis)
    axes.set_xlabel(f"Mean time in the server, {unit}")
    legend(figure, list(_entries(bars)))
    return figure


def _warning(bar: Bar) -> str:
    return f", {bar.violation_share:.1%} do not add up" if bar.violation_share > VIOLATIONS else ""


def _entries(bars: Sequence[Bar]) -> Iterator[Artist]:
    for (stage, label), colour in zip(STAGES.items(), COLOURS, strict=True):
        yield Patch(facecolor=colour, label=label + ", written at the end" * (stage == "lock_wait"))
    if any(bar.refused for bar in bars):
        yield Patch(facecolor="white", edgecolor=QUIET, label="white: a gate refuses it")


def alternative(title: str, bars: Sequence[Bar]) -> str:
    """The figure in words: each setting's stages."""
    told = [f"{title}. Mean times in the server, µs."]
    for bar in bars:
        stages = "; ".join(f"{text} {number(bar.mean_us(stage))}" for stage, text in STAGES.items())
        told.append(f"{bar.label}: {stages if bar.blocks else 'nothing was stamped'}{_warning(bar)}.")
    return " ".join(told) if bars else f"{title}. No server stamped the stages of its requests here."
