"""Open loop: offered rates, answered rates and response times.

The left panel has replies a second against requests due a second. On the grey band the server answers as many requests
a second as are due. The right panel has the median and the 99th percentile of the response times. A response time
begins when the request is due. Past saturation the queue grows without end, so that response times depend on the
duration of the measurement. All axes are logarithmic.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.design.arms import Arm
from experiments.judge.points import CONFIDENCE, Point
from experiments.judge.stats import Estimate, exact, mean_interval
from experiments.judge.verdicts import Judgement
from experiments.show.figures import style
from experiments.show.figures.panels import line, log_axis, mark, pictured, say
from experiments.show.numbers import number, time_unit

TAIL_DASHES: style.Dashes = (0, (3, 1.2))

ALL: Mapping[str, Any] = {"color": style.FAINT, "linewidth": 9.0, "linestyle": "-"}
"""Style of the diagonal, on which all requests are answered: a broad band, visible behind a curve."""

SATURATED = 0.98
"""Smallest ratio answered ÷ offered of a server that keeps up. Under this ratio the queue grows, and times have hollow
markers."""


@dataclass(frozen=True, slots=True)
class Load:
    """Results at one rate of an open loop: requests due a second, replies a second within the window, and the response
    times."""

    offered_hz: float
    answered_hz: Estimate | None
    point: Point

    @property
    def is_saturated(self) -> bool:
        """True if the ratio answered ÷ offered is under ``SATURATED``."""
        return self.answered_hz is not None and self.answered_hz.value < SATURATED * self.offered_hz


@dataclass(frozen=True, slots=True)
class Curve:
    """Curve of one setting at rising rates."""

    label: str
    transport: str
    loads: Sequence[Load]


def load_of(judgement: Judgement, arm: Arm, point: Point) -> Load:
    """Results of an arm that has a rate, over all blocks. An arm is a server under a load."""
    seen = (block.arms[judgement.sweep.places[arm]].windows for block in judgement.blocks)
    answered = [sum(window.answered_hz for window in windows) / len(windows) for windows in seen if windows]
    rate_hz = arm.setting["rate_hz"]
    assert isinstance(rate_hz, int | float)
    return Load(float(rate_hz), mean_interval(answered, CONFIDENCE) if answered else None, point)


def picture(name: str, title: str, curves: Sequence[Curve]) -> style.Picture:
    """Picture of the answered rates and the response times, against the offered rates."""
    told = map(_told, curves)
    return pictured(name, title, told, lambda: _draw(title, curves), "No open loop was measured here.")


def _draw(title: str, curves: Sequence[Curve]) -> Figure:
    figure, ((answered, response),) = style.grid(title, 3.6, 1, 2)
    drawn = style.strokes((curve.transport, curve.label) for curve in curves)
    if not any(load.answered_hz for curve in curves for load in curve.loads):
        say(answered, "No open loop was measured here.", 26)
        say(response, "No response times.", 26)
        return figure
    _draw_answered(answered, curves, drawn)
    _draw_response(response, curves, drawn)
    for axes in (answered, response):
        axes.set_xlabel("Requests due a second")
    style.legend(figure, _entries(curves, drawn))
    return figure


def _draw_answered(axes: Axes, curves: Sequence[Curve], drawn: style.Strokes) -> None:
    axes.set_ylabel("Replies a second")
    rates = [load.offered_hz for curve in curves for load in curve.loads]
    axes.plot([min(rates), max(rates)], [min(rates), max(rates)], **ALL)
    for curve in curves:
        stroke = drawn[curve.transport, curve.label]
        found = [(load, load.answered_hz) for load in curve.loads if load.answered_hz]
        line(axes, [(load.offered_hz, at.value) for load, at in found], stroke, linestyle="-")
        for load, at in found:
            ends = (at.value / 3, math.inf)
            mark(axes, load.offered_hz, at, stroke, ends, refused=bool(load.point.refusals))
    _logarithmic(axes)


def _draw_response(axes: Axes, curves: Sequence[Curve], drawn: style.Strokes) -> None:
    loads = [load for curve in curves for load in curve.loads]
    times = [time for load in loads for percent in (50, 99) if (time := load.point.percentile_us(percent)) is not None]
    if not times:
        say(axes, "Too few requests for percentiles.", 26)
        return
    unit, factor = time_unit([min(times) * 30])
    axes.set_ylabel(f"Response time, {unit}")
    for curve in curves:
        stroke = drawn[curve.transport, curve.label]
        for percent, dashes, width in ((50, "-", 1.8), (99, TAIL_DASHES, 1.0)):
            found = [(load, load.point.percentile_us(percent)) for load in curve.loads]
            points = [(load, exact(value / factor)) for load, value in found if value is not None]
            line(axes, [(load.offered_hz, at.value) for load, at in points], stroke, linestyle=dashes, linewidth=width)
            for load, at in points:
                mark(axes, load.offered_hz, at, stroke, refused=bool(load.point.refusals), hollow=load.is_saturated)
    _logarithmic(axes)


def _logarithmic(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(visible=True, axis="x")
    log_axis(axes.xaxis, *axes.get_xlim(), dense=60)  # rates have many digits, and need space
    log_axis(axes.yaxis, *axes.get_ylim())


def _entries(curves: Sequence[Curve], drawn: style.Strokes) -> Iterator[Artist]:
    for curve in curves:
        stroke = drawn[curve.transport, curve.label]
        measured = any(load.answered_hz for load in curve.loads)
        yield style.key_of(stroke, curve.label if measured else f"{curve.label}: nothing was measured", line=False)
    yield style.key("median", linestyle="-")
    yield style.key("99th percentile", linestyle=TAIL_DASHES, linewidth=1)
    yield style.key("all requests answered", **ALL)
    yield style.interval_key()
    loads = [load for curve in curves for load in curve.loads]
    if any(load.is_saturated and not load.point.refusals for load in loads):
        yield style.key("hollow: saturated, the queue grows", marker="o", mfc="white")
    if any(load.point.refusals for load in loads):
        yield style.refused_key()


def _told(curve: Curve) -> str:
    """Sentence with the answered rate and the response times at each offered rate of a curve."""
    loads = []
    for load in curve.loads:
        p50, p99 = load.point.percentile_us(50), load.point.percentile_us(99)
        answered = f"{number(load.answered_hz.value)} answered" if load.answered_hz else "nothing measured"
        times = f", median {number(p50)} µs" if p50 is not None else ""
        times += f", 99th percentile {number(p99)} µs" if p99 is not None else ""
        loads.append(f"{number(load.offered_hz)} offered, {answered}{times}")
    return f"{curve.label}, a second: {'; '.join(loads) or 'nothing was measured'}."
