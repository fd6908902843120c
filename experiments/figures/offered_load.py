"""What a server makes of the load that it is offered, in an open loop: throughput, median and 99th percentile.

Rules: requests are due on a schedule, whether or not earlier ones were answered, and a response is timed from when its
request was due. The knee is the lowest offered load at which the achieved rate stays more than ``OFF_DIAGONAL`` below
it, with all of its interval: what lies beyond says less about a server that keeps up than about how long it was kept
behind. A point that a gate refused is hollow: in every panel, or where the refusal reaches no farther than the times in
those of the response times. Both axes of the throughput are logarithmic where the loads span more than ``LOG_SPAN``;
response times always are. Left out: measuring, and the gates.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.figures.captions import framed
from experiments.figures.style import (
    INK,
    QUIET,
    REFUSED_MARK,
    Stroke,
    log_ticks,
    set_even_ticks,
    set_log_ticks,
    span_unit,
    strokes,
    three_digits,
    time_unit,
)
from experiments.stats import Estimate

OFF_DIAGONAL = 0.01
"""The share of the offered load that may be missing: as much as the generator itself may be off its rate."""

LOG_SPAN = 20.0
"""Highest ÷ lowest offered load."""

_BODY_INCHES = 2.2
_DOTS = (0, (1, 2))


class _Ring(TypedDict):
    marker: str
    markersize: float
    markeredgewidth: float
    color: str
    mfc: str
    linestyle: Literal[""]


_RING: _Ring = {
    "marker": "o",
    "markersize": 10.5,
    "markeredgewidth": 1.1,
    "color": INK,
    "mfc": "none",
    "linestyle": "",
}
"""Around the point of a line's knee."""


@dataclass(frozen=True, slots=True)
class Load:
    """One offered load, over the blocks that ran it; estimates are ``stats.mean_interval``'s over them."""

    offered_hz: float
    """Requests due a second, over 0."""
    achieved_hz: Estimate
    """Replies a second."""
    response_us_p50: Estimate | None
    """From due to reply; None where the sample carries no such percentile."""
    response_us_p99: Estimate | None
    refused: str = ""
    """Why a gate refused to conclude on throughput, such as ``gate 7: sends late``; empty where none did."""
    response_refused: str = ""
    """The same of the response times: what forbids the throughput forbids these too, and needs no saying here."""

    @property
    def hollow(self) -> str:
        """Why nothing is concluded from the response times."""
        return self.refused or self.response_refused


@dataclass(frozen=True, slots=True)
class Curve:
    """One setting of one server under growing load."""

    label: str
    transport: str
    request: str
    loads: tuple[Load, ...]
    """In any order."""


@dataclass(frozen=True, slots=True)
class Knee:
    """Where a server no longer keeps up."""

    offered_hz: float
    reason: str


def knee(loads: Iterable[Load]) -> Knee | None:
    """The lowest load that was not achieved, refused or not; None if all were achieved.

    Poisson arrivals alone make a short run's rate differ by a few per cent from the declared one, either way.
    """
    for load in sorted(loads, key=lambda load: load.offered_hz):
        achieved = load.achieved_hz
        most_hz = achieved.high if _bounded(achieved) else achieved.value
        if 1 - most_hz / load.offered_hz > OFF_DIAGONAL + 1e-9:  # of floats: a per cent exactly is achieved
            refused = f", refused ({load.refused})" if load.refused else ""
            return Knee(load.offered_hz, f"{100 * (1 - achieved.value / load.offered_hz):.3g} % not achieved{refused}")
    return None


def draw_offered_load(title: str, curves: Sequence[Curve]) -> Figure:
    """Throughput, median and 99th percentile against the offered load, a line per curve."""
    looks = strokes([(curve.transport, curve.request) for curve in curves])
    drawn = [(curve, stroke) for curve, stroke in zip(curves, looks, strict=True) if curve.loads]
    frame = framed(title, _BODY_INCHES, _sentences(curves), _legend(drawn))
    grid = frame.figure.add_gridspec(
        1, 3, width_ratios=(1.25, 1, 1), left=0.085, right=0.985, top=frame.top, bottom=frame.bottom, wspace=0.36
    )
    throughput, median, p99 = (frame.figure.add_subplot(grid[0, column]) for column in range(3))
    offered = [load.offered_hz for curve, _ in drawn for load in curve.loads]
    unit, unit_hz = ("1,000/s", 1000.0) if max(offered, default=0) >= 2000 else ("1/s", 1.0)
    for axes in (throughput, median, p99):
        _set_offered_axis(axes, [rate / unit_hz for rate in offered], f"Offered, {unit}")
    _draw_throughput(throughput, drawn, unit_hz)
    throughput.set_ylabel(f"Achieved, {unit}")
    throughput.set_title("throughput")
    _draw_responses((median, p99), drawn, unit_hz)
    return frame.figure


def _set_offered_axis(axes: Axes, offered: Sequence[float], label: str) -> None:
    axes.set_xlabel(label)
    if not offered:
        axes.text(0.5, 0.5, "nothing measured", transform=axes.transAxes, color=QUIET, fontsize=7, ha="center")
        axes.set_xticks([])
        axes.set_yticks([])
        return
    low, high = min(offered), max(offered)
    if high / low > LOG_SPAN:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.3, high * 1.3)
        set_log_ticks(axes.xaxis, log_ticks(low / 1.3, high * 1.3, 1.6, 0.3))
    else:
        axes.set_xlim(0, high * 1.08)
        set_even_ticks(axes.xaxis)


def _draw_throughput(axes: Axes, drawn: Sequence[tuple[Curve, Stroke]], unit_hz: float) -> None:
    if not drawn:
        return
    low, high = axes.get_xlim()
    axes.plot([low, high], [low, high], color=QUIET, linewidth=1, linestyle=_DOTS, zorder=1)
    for curve, stroke in drawn:
        points = [(load, load.achieved_hz) for load in _ascending(curve)]
        _draw_line(axes, points, stroke, unit_hz, unit_hz)
        _mark(axes, points, [bool(load.refused) for load, _ in points], stroke, unit_hz, unit_hz)
        _ring_knee(axes, curve, points, unit_hz, unit_hz)
    if axes.get_xscale() == "log":
        axes.set_yscale("log")
        lowest = min(load.achieved_hz.value for curve, _ in drawn for load in curve.loads) / unit_hz / 1.3
        low = min(low, lowest) if lowest > 0 else low
        axes.set_ylim(low, high)
        set_log_ticks(axes.yaxis, log_ticks(low, high, _BODY_INCHES, 0.22))
    else:
        axes.set_ylim(0, high)
        set_even_ticks(axes.yaxis)


def _draw_responses(panels: tuple[Axes, Axes], drawn: Sequence[tuple[Curve, Stroke]], unit_hz: float) -> None:
    both = [[_responses(curve, which) for curve, _ in drawn] for which in ("p50", "p99")]
    times = [estimate.value for panel in both for line in panel for _, estimate in line]
    unit, unit_us = span_unit(times)
    panels[0].set_ylabel(f"Response time, {unit}")
    for axes, lines, name in zip(panels, both, ("median", "99th percentile"), strict=True):
        axes.set_title(name)
        for line, (curve, stroke) in zip(lines, drawn, strict=True):
            _draw_line(axes, line, stroke, unit_hz, unit_us)
            _mark(axes, line, [bool(load.hollow) for load, _ in line], stroke, unit_hz, unit_us)
            _ring_knee(axes, curve, line, unit_hz, unit_us)
        if times:
            low, high = min(times) / unit_us / 1.5, max(times) / unit_us * 1.5
            axes.set_yscale("log")
            axes.set_ylim(low, high)
            set_log_ticks(axes.yaxis, log_ticks(low, high, _BODY_INCHES, 0.22))
        if drawn and not any(lines):
            axes.set_yticks([])
            note = "not carried by these samples"
            axes.text(0.5, 0.5, note, transform=axes.transAxes, color=QUIET, fontsize=7, ha="center")


def _responses(curve: Curve, which: str) -> list[tuple[Load, Estimate]]:
    found = []
    for load in _ascending(curve):
        estimate = load.response_us_p50 if which == "p50" else load.response_us_p99
        if estimate is not None:
            found.append((load, estimate))
    return found


def _draw_line(
    axes: Axes, points: Sequence[tuple[Load, Estimate]], stroke: Stroke, unit_hz: float, unit: float
) -> None:
    xs = [load.offered_hz / unit_hz for load, _ in points]
    axes.plot(xs, [at.value / unit for _, at in points], color=stroke.colour, linestyle=stroke.dashes, zorder=3)
    for x, (_, at) in zip(xs, points, strict=True):
        if _bounded(at):
            axes.vlines(x, at.low / unit, at.high / unit, color=stroke.colour, linewidth=1, alpha=0.75, zorder=2)


def _mark(
    axes: Axes,
    points: Sequence[tuple[Load, Estimate]],
    hollow: Sequence[bool],
    stroke: Stroke,
    unit_hz: float,
    unit: float,
) -> None:
    for (load, at), is_hollow in zip(points, hollow, strict=True):
        x, y, face = load.offered_hz / unit_hz, at.value / unit, "white" if is_hollow else stroke.colour
        axes.plot([x], [y], linestyle="", marker=stroke.marker, color=stroke.colour, mfc=face, zorder=4)


def _ring_knee(axes: Axes, curve: Curve, points: Sequence[tuple[Load, Estimate]], unit_hz: float, unit: float) -> None:
    found = knee(curve.loads)
    for load, at in points:
        if found is not None and load.offered_hz == found.offered_hz:
            axes.plot([load.offered_hz / unit_hz], [at.value / unit], zorder=5, **_RING)


def _bounded(at: Estimate) -> bool:
    return at.n > 1 and 0 < at.low <= at.high < float("inf")


def _ascending(curve: Curve) -> list[Load]:
    return sorted(curve.loads, key=lambda load: load.offered_hz)


def _legend(drawn: Sequence[tuple[Curve, Stroke]]) -> list[Line2D]:
    entries = [
        Line2D([], [], color=stroke.colour, marker=stroke.marker, linestyle=stroke.dashes, label=curve.label)
        for curve, stroke in drawn
    ]
    if drawn:
        entries.append(Line2D([], [], color=QUIET, linewidth=1, linestyle=_DOTS, label="achieved = offered"))
    if any(knee(curve.loads) for curve, _ in drawn):
        entries.append(Line2D([], [], label="knee", **_RING))
    return entries


def _sentences(curves: Sequence[Curve]) -> Iterator[str]:
    points = [at for curve in curves for load in curve.loads for at in (load.achieved_hz, load.response_us_p99) if at]
    blocks = sorted({at.n for at in points})
    yield "Open loop: requests are due on a schedule, and a response is timed from when its request was due."
    if blocks:
        number = f"{blocks[0]}" if blocks[0] == blocks[-1] else f"{blocks[0]} to {blocks[-1]}"
        yield f"Points: means over {number} {'block' if blocks[-1] == 1 else 'blocks'}."
    if any(map(_bounded, points)):
        yield "Bars: their 95 % interval (Student’s t); where none is seen it is within the marker."
    if any(not _bounded(at) for at in points):
        yield "Some points have no bar: too few blocks for an interval, or one that reaches below zero."
    found = [(curve.label, knee(curve.loads)) for curve in curves]
    knees = [f"{label} at {three_digits(at.offered_hz)}/s ({at.reason})" for label, at in found if at]
    if knees:
        yield (
            f"Knee: the lowest load of which over {100 * OFF_DIAGONAL:g} % was not achieved, by the whole interval: "
            f"{'; '.join(knees)}."
        )
    if any(load.hollow for curve in curves for load in curve.loads):
        yield f"Hollow: refused by a gate ({REFUSED_MARK} in the table)."


def text_alternative(title: str, curves: Sequence[Curve]) -> str:
    """What the picture shows: for every curve its ends, what was refused, and its knee."""
    return f"{title}. " + " ".join(_spoken(curve) for curve in curves if curve.loads)


def _spoken(curve: Curve) -> str:
    loads = _ascending(curve)
    told = [load for load in loads if load in (loads[0], loads[-1]) or load.hollow]
    found = knee(loads)
    at = f"knee at {three_digits(found.offered_hz)}/s" if found else "no knee within these loads"
    end = f"{at}, {found.reason}" if found else at
    return f"{curve.label}: {'; '.join(_spoken_load(load) for load in told)}; {end}."


def _spoken_load(load: Load) -> str:
    texts = [f"offered {three_digits(load.offered_hz)}/s, achieved {three_digits(load.achieved_hz.value)}/s"]
    for name, at in (("median", load.response_us_p50), ("99th percentile", load.response_us_p99)):
        if at is not None:
            unit, unit_us = time_unit(at.value)
            texts.append(f"{name} {three_digits(at.value / unit_us)} {unit}")
    if load.refused:
        texts.append(f"refused ({load.refused})")
    elif load.response_refused:
        texts.append(f"response times refused ({load.response_refused})")
    return ", ".join(texts)
