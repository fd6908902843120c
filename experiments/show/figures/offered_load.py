"""An open loop: offered and answered requests, and how soon they are answered.

On the left replies a second against requests due a second; on the dotted diagonal all are answered in time. On the
right the response times, from when a request was due: median and 99th percentile. Past saturation a queue grows
without end, so that response times there say only how long was measured. Both axes are logarithmic.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.design.arms import Arm
from experiments.judge.points import CONFIDENCE, Point
from experiments.judge.stats import Estimate, mean_interval
from experiments.judge.verdicts import Judgement
from experiments.show.figures.style import QUIET, Picture, Stroke, canvas, hollow, house, legend, log_axis, say, strokes
from experiments.show.numbers import has_interval, number, time_unit

SATURATED = 0.98
"""Least answered ÷ offered of a server that keeps up: under that, the queue grows, and response times are hollow."""


@dataclass(frozen=True, slots=True)
class Load:
    """One rate: requests due a second, replies that came in time a second, and the response times."""

    offered_hz: float
    answered_hz: Estimate | None
    point: Point

    @property
    def is_saturated(self) -> bool:
        """True where less was answered than offered."""
        return self.answered_hz is not None and self.answered_hz.value < SATURATED * self.offered_hz


@dataclass(frozen=True, slots=True)
class Curve:
    """One setting at rising rates."""

    label: str
    transport: str
    loads: Sequence[Load]


def load_of(judgement: Judgement, arm: Arm, point: Point) -> Load:
    """One rate's windows over all blocks. The arm has a rate."""
    place = judgement.sweep.arms.index(arm)
    answered = [
        sum(window.answered_hz for window in windows) / len(windows)
        for windows in (block.arms[place].windows for block in judgement.blocks)
        if windows
    ]
    rate_hz = arm.setting["rate_hz"]
    assert isinstance(rate_hz, int | float)
    return Load(float(rate_hz), mean_interval(answered, CONFIDENCE) if answered else None, point)


def picture(name: str, title: str, curves: Sequence[Curve]) -> Picture:
    """The figure with its words, to be drawn when it is wanted."""
    return Picture(name, title, alternative(title, curves), lambda: draw(title, curves))


@house()
def draw(title: str, curves: Sequence[Curve]) -> Figure:
    """Answered against offered, and the response times."""
    figure = canvas(title, 3.6)
    answered, response = figure.subplots(1, 2)
    drawn = strokes((curve.transport, curve.label) for curve in curves)
    shown = [load for curve in curves for load in curve.loads if load.answered_hz]
    if not shown:
        say(answered, "No open loop was measured here.", 26)
        say(response, "No response times.", 26)
        return figure
    _draw_answered(answered, curves, drawn)
    _draw_response(response, curves, drawn)
    for axes in (answered, response):
        axes.set_xlabel("Requests due a second")
    legend(figure, list(_entries(curves, drawn)))
    return figure


def _draw_answered(axes: Axes, curves: Sequence[Curve], drawn: dict[tuple[str, str], Stroke]) -> None:
    axes.set_title("Replies a second")
    rates = [load.offered_hz for curve in curves for load in curve.loads]
    axes.plot([min(rates), max(rates)], [min(rates), max(rates)], color=QUIET, linewidth=0.9, linestyle=(0, (1, 2)))
    for curve in curves:
        stroke = drawn[curve.transport, curve.label]
        found = [(load, load.answered_hz) for load in curve.loads if load.answered_hz]
        axes.plot([load.offered_hz for load, _ in found], [at.value for _, at in found], color=stroke.colour)
        for load, at in found:
            colour = QUIET if load.point.refusals else stroke.colour
            if has_interval(at):
                axes.vlines(load.offered_hz, max(at.low, at.value / 3), at.high, color=colour, linewidth=1.1)
            face = "white" if load.point.refusals else colour
            axes.plot([load.offered_hz], [at.value], marker=stroke.marker, color=colour, mfc=face)
    _logarithmic(axes)


def _draw_response(axes: Axes, curves: Sequence[Curve], drawn: dict[tuple[str, str], Stroke]) -> None:
    times = [
        value
        for curve in curves
        for load in curve.loads
        for percent in (50, 99)
        if (value := load.point.percentile_us(percent)) is not None
    ]
    if not times:
        say(axes, "Too few requests for percentiles.", 26)
        return
    unit, factor = time_unit([min(times) * 30])
    axes.set_title(f"Response time, {unit}")
    for curve in curves:
        stroke = drawn[curve.transport, curve.label]
        for percent, dashes, width in ((50, "-", 1.8), (99, (0, (3, 1.2)), 1.0)):
            found = [
                (load, value / factor)
                for load in curve.loads
                if (value := load.point.percentile_us(percent)) is not None
            ]
            x = [load.offered_hz for load, _ in found]
            axes.plot(x, [y for _, y in found], color=stroke.colour, linestyle=dashes, linewidth=width)
            for load, y in found:
                colour = QUIET if load.point.refusals else stroke.colour
                face = "white" if load.point.refusals or load.is_saturated else colour
                axes.plot([load.offered_hz], [y], marker=stroke.marker, color=colour, mfc=face, markersize=4.5)
    axes.set_yscale("log")
    _logarithmic(axes)


def _logarithmic(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(visible=True, axis="x")
    log_axis(axes.xaxis, *axes.get_xlim(), dense=60)  # rates have many digits, which need room
    log_axis(axes.yaxis, *axes.get_ylim())


def _entries(curves: Sequence[Curve], drawn: dict[tuple[str, str], Stroke]) -> Iterator[Artist]:
    for curve in curves:
        stroke = drawn[curve.transport, curve.label]
        measured = any(load.answered_hz for load in curve.loads)
        text = curve.label if measured else f"{curve.label}: nothing was measured"
        yield Line2D([], [], color=stroke.colour, marker=stroke.marker, label=text)
    yield Line2D([], [], color=QUIET, label="median")
    yield Line2D([], [], color=QUIET, linewidth=1, linestyle=(0, (3, 1.2)), label="99th percentile")
    yield Line2D([], [], color=QUIET, linewidth=0.9, linestyle=(0, (1, 2)), label="all answered")
    loads = [load for curve in curves for load in curve.loads]
    if any(load.is_saturated for load in loads):
        yield Line2D([], [], color=QUIET, marker="o", mfc="white", label="hollow: saturated, the queue grows")
    if any(load.point.refusals for load in loads):
        yield hollow("grey: a gate refuses it")


def alternative(title: str, curves: Sequence[Curve]) -> str:
    """The figure in words: each rate, what was answered, and how soon."""
    told = [f"{title}."]
    for curve in curves:
        loads = []
        for load in curve.loads:
            p50, p99 = load.point.percentile_us(50), load.point.percentile_us(99)
            answered = f"{number(load.answered_hz.value)} answered" if load.answered_hz else "nothing measured"
            times = f", median {number(p50)} µs" if p50 is not None else ""
            times += f", 99th percentile {number(p99)} µs" if p99 is not None else ""
            loads.append(f"{number(load.offered_hz)} offered, {answered}{times}")
        told.append(f"{curve.label}, a second: {'; '.join(loads) or 'nothing was measured'}.")
    return " ".join(told) if curves else f"{title}. No open loop was measured here."
