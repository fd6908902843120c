"""Response times from the quickest request to the slowest request: a percentile curve for each setting.

The x-axis is the share of requests that took longer. The axis is logarithmic, so that the slow end has more space. The
ticks name the share of requests that took no longer. A curve ends where fewer than ten independent requests are slower.
A longer curve would depend on a few moments of the run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from experiments.judge.points import Point
from experiments.results.observed import BEYOND_MIN
from experiments.show.figures.panels import log_axis, pictured, say
from experiments.show.figures.style import QUIET, Picture, Strokes, grid, key, key_of, legend, strokes
from experiments.show.numbers import number, time_unit

SHARES = (0.5, 0.1, 0.01, 0.001, 0.0001, 0.00001)
"""Shares of requests that took longer. Each share has a tick on the axis."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Line:
    """Line: requests of one type in one setting."""

    label: str
    transport: str
    point: Point

    def curve(self) -> tuple[Numbers, Numbers]:
        """Two arrays: shares of requests, descending, and times in µs. Each share of the requests took longer than the
        time with the same index. Both arrays are empty for too few requests."""
        counted, effective = self.point.times.count, self.point.effective
        if not counted or effective < 2 * BEYOND_MIN:
            return np.zeros(0), np.zeros(0)
        _, highest, counts = self.point.times.buckets()
        longer = 1 - np.cumsum(counts) / counted
        carried = (longer >= BEYOND_MIN / min(effective, counted)) & (longer <= 0.99)
        return longer[carried], highest[carried] / 1000


def picture(name: str, title: str, lines: Sequence[Line]) -> Picture:
    """Picture with a curve for each line, up to the highest percentile with ten slower independent requests."""
    return pictured(name, title, map(_told, lines), lambda: _draw(title, lines))


def _draw(title: str, lines: Sequence[Line]) -> Figure:
    figure, ((axes,),) = grid(title, 3.8)
    drawn = strokes((line.transport, line.label) for line in lines)
    curves = [(line, *line.curve()) for line in lines]
    known = [values for _, _, values in curves if len(values)]
    if not known:
        say(axes, "Too few requests for a distribution.")
        return figure
    unit, factor = time_unit([30 * min(float(values[0]) for values in known)])  # a unit for most requests
    for line, longer, values in curves:
        stroke = drawn[line.transport, line.label]
        colour = QUIET if line.point.refusals else stroke.colour
        axes.plot(longer, values / factor, color=colour, linestyle=stroke.dashes, drawstyle="steps-post")
        if len(longer):
            axes.plot(longer[-1:], values[-1:] / factor, marker=stroke.marker, color=colour, mfc=_face(line, colour))
    axes.set_xscale("log")
    axes.set_yscale("log")
    least = min(float(longer.min()) for _, longer, _ in curves if len(longer))
    axes.set_xlim(1, least / 1.6)
    axes.xaxis.set_major_locator(FixedLocator([share for share in SHARES if share >= least / 1.6]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * (1 - share):.6g} %"))
    low, high = axes.get_ylim()
    log_axis(axes.yaxis, low, high)
    axes.set_xlabel("Share of requests that took no longer")
    axes.set_ylabel(f"Response time, {unit}")
    legend(figure, _entries(curves, drawn))
    return figure


def _face(line: Line, colour: str) -> str:
    """Fill colour of the marker at a curve's end: white if a gate refuses the requests, or if the load was near its
    limit."""
    return "white" if line.point.refusals or line.point.load_limited else colour


def _entries(curves: Sequence[tuple[Line, Numbers, Numbers]], drawn: Strokes) -> Iterator[Artist]:
    for line, longer, _ in curves:
        stroke = drawn[line.transport, line.label]
        why = "" if len(longer) else ": too few requests"
        why = ", grey, refused: a check failed" if line.point.refusals else why
        yield key_of(stroke, line.label + why)
    yield key("end of a line: under ten independent requests are slower", marker="o")


def _told(line: Line) -> str:
    """Sentence with the median and the high percentiles of a line's requests."""
    values = [(percent, line.point.percentile_us(percent)) for percent in (50, 90, 99, 99.9, 99.99)]
    known = "; ".join(f"{percent:g} %: {number(value)} µs" for percent, value in values if value is not None)
    return f"{line.label}: {known or 'too few requests'}."
