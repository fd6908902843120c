"""Where a request's time goes: the server's stages one after another, and how far the slow ones are from the mean.

Rules: a bar is one setting, and its segments are mean times, so that they add up; percentiles of stages do not, so
those of the whole stand beside, on a logarithmic axis of their own. What gates refuse is marked. What the client waited
beyond the server's stages (network, kernel, and its own work) is the last, hatched segment, where the client's mean is
known. Segments differ in lightness, not in the servers' colours, which the marks have. Left out: how the stages are
timed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from experiments.figures.captions import Frame, balanced, framed, text_inches
from experiments.figures.style import (
    FAINT,
    INK,
    LIMITED_MARK,
    QUIET,
    RAMP,
    REFUSED_MARK,
    WIDTH_INCHES,
    log_ticks,
    look,
    measured,
    set_even_ticks,
    set_log_ticks,
    span_unit,
    time_unit,
)
from experiments.stats import Estimate

_ROW_INCHES = 0.27
_LINE_INCHES = 0.13
_BAR = 0.6
"""Of a row's height."""
_LABEL_SIZE = 8
_LABEL_INCHES = 1.9
_MARKS_INCHES = 1.55
"""The panel of percentiles."""
_GAP_INCHES = 0.24
_NUMBER_INCHES = 0.62
"""Room after the longest bar for its number."""


@dataclass(frozen=True, slots=True)
class Stages:
    """One setting: mean times in the server, over its requests and runs, in µs, each 0 or more."""

    label: str
    """Such as ``gRPC, 5 clients``."""
    transport: str
    queue_wait_us: float
    """From having the request to a thread taking it."""
    preparation_us: float | None
    """None where decoding is not timed apart; it is then in the service."""
    lock_wait_us: float
    service_us: float
    """Without the wait for the lock."""
    reply_us: float
    """From having the answer to having handed it to the kernel."""
    response_us_mean: Estimate | None = None
    """As the client sees it, over runs; None where the client did not say."""
    total_us_p50: Estimate | None = None
    """Of the server's stages together, request by request."""
    total_us_p99: Estimate | None = None
    refused_by: tuple[int, ...] = ()
    """The numbers of the gates that refuse its runs, ascending."""
    load_limited: bool = False
    """In some run the clients took over 80 % of their core."""

    @property
    def marks(self) -> str:
        """What stands behind its label."""
        marks = (LIMITED_MARK if self.load_limited else "") + (REFUSED_MARK if self.refused_by else "")
        return f" {marks}" if marks else ""


_NAMES = ("queue wait", "preparation", "lock wait", "service", "reply")
REST = "network and client"


def parts_us(stages: Stages) -> list[tuple[str, float]]:
    """The segments in order, each a name and its µs; the rest last, where the client waited longer than the server."""
    times = (stages.queue_wait_us, stages.preparation_us, stages.lock_wait_us, stages.service_us, stages.reply_us)
    parts = [(name, time) for name, time in zip(_NAMES, times, strict=True) if time is not None]
    rest = stages.response_us_mean.value - server_us(stages) if stages.response_us_mean else 0.0
    return [*parts, (REST, rest)] if rest > 0 else parts


def server_us(stages: Stages) -> float:
    """The server's stages together."""
    return (
        stages.queue_wait_us + (stages.preparation_us or 0) + stages.lock_wait_us + stages.service_us + stages.reply_us
    )


def draw_stages(title: str, settings: Sequence[Stages]) -> Figure:
    """A row per setting, in the order given, from the top: its mean by stages, and its percentiles."""
    names = [balanced(stages.label + stages.marks, _LABEL_INCHES, _LABEL_SIZE) for stages in settings]
    heights = [_ROW_INCHES + _LINE_INCHES * (len(lines) - 1) for lines in names]
    body_inches = max(sum(heights), _ROW_INCHES)
    frame = framed(title, body_inches, _sentences(settings), _legend(settings))
    middles = [sum(heights[:place]) + height / 2 for place, height in enumerate(heights)]
    label_inches = max((text_inches(line, _LABEL_SIZE) for lines in names for line in lines), default=0.5)
    bars, marks = _panels(frame, label_inches + 0.4, bool(_percentiles(settings)))
    for axes in (bars, marks) if marks else (bars,):
        axes.set_ylim(body_inches, 0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(visible=True, axis="x", color=FAINT)
    _draw_bars(bars, settings, middles)
    for stages, lines, y in zip(settings, names, middles, strict=True):
        _write_name(frame, stages, "\n".join(lines), label_inches, frame.top - frame.at(y))
    if marks:
        _draw_marks(marks, settings, middles)
    return frame.figure


def _panels(frame: Frame, left_inches: float, with_marks: bool) -> tuple[Axes, Axes | None]:
    right_inches = WIDTH_INCHES - 0.15
    end_inches = right_inches - (_MARKS_INCHES + _GAP_INCHES if with_marks else 0)
    high = frame.top - frame.bottom

    def axes_between(start: float, end: float) -> Axes:
        return frame.figure.add_axes((start / WIDTH_INCHES, frame.bottom, (end - start) / WIDTH_INCHES, high))

    bars = axes_between(left_inches, end_inches)
    return bars, axes_between(end_inches + _GAP_INCHES, right_inches) if with_marks else None


def _draw_bars(axes: Axes, settings: Sequence[Stages], middles: Sequence[float]) -> None:
    totals = [sum(time for _, time in parts_us(stages)) for stages in settings]
    unit, unit_us = time_unit(max(totals, default=1.0))
    inches = axes.get_position().width * WIDTH_INCHES
    most = max(map(_bar_end, settings), default=0.0) / unit_us or 1.0
    axes.set_xlim(0, most * inches / (inches - _NUMBER_INCHES))
    for stages, y, total in zip(settings, middles, totals, strict=True):
        start = 0.0
        for name, time in parts_us(stages):
            axes.add_patch(_segment(name, start / unit_us, y, time / unit_us, _BAR * _ROW_INCHES))
            start += time
        end = total
        if (mean := stages.response_us_mean) and mean.n > 1 and 0 < mean.low <= mean.high < float("inf"):
            end = _bar_end(stages)
            axes.hlines(y, mean.low / unit_us, min(mean.high, end) / unit_us, color=INK, linewidth=1.1, zorder=4)
        axes.annotate(
            measured(total / unit_us),
            (min(end / unit_us, axes.get_xlim()[1]), y),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
            color=INK,
        )
    if settings:
        set_even_ticks(axes.xaxis)
    else:
        axes.set_xticks([])
    axes.set_xlabel(f"Mean time, {unit}")
    axes.set_title("mean, by stage")


def _bar_end(stages: Stages) -> float:
    """Where a bar with its interval ends, in µs; an interval is cut at twice the bar, or it would shrink all others."""
    total = sum(time for _, time in parts_us(stages))
    mean = stages.response_us_mean
    return max(total, min(mean.high, 2 * total)) if mean and mean.n > 1 else total


def _draw_marks(axes: Axes, settings: Sequence[Stages], middles: Sequence[float]) -> None:
    times = _percentiles(settings)
    unit, unit_us = span_unit(times)
    low, high = min(times) / unit_us / 1.4, max(times) / unit_us * 1.4
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    for stages, y in zip(settings, middles, strict=True):
        style, both = look(stages.transport), (stages.total_us_p50, stages.total_us_p99)
        if both[0] and both[1]:
            axes.hlines(y, both[0].value / unit_us, both[1].value / unit_us, color=FAINT, linewidth=2.5, zorder=1)
        for at, marker in zip(both, (style.marker, "|"), strict=True):
            if at is None:
                continue
            if at.n > 1 and 0 < at.low <= at.high < float("inf"):
                ends = max(at.low / unit_us, low), min(at.high / unit_us, high)
                axes.hlines(y, *ends, color=style.colour, linewidth=1, alpha=0.75, zorder=2)
            size, edge = (9.0, 1.8) if marker == "|" else (5.0, 1.0)
            axes.plot(
                [at.value / unit_us], [y], marker=marker, markersize=size, mew=edge, color=style.colour, linestyle=""
            )
    set_log_ticks(axes.xaxis, log_ticks(low, high, _MARKS_INCHES, 0.33))
    axes.set_xlabel(f"Time, {unit}")
    axes.set_title("server’s percentiles")


def _percentiles(settings: Iterable[Stages]) -> list[float]:
    both = ((stages.total_us_p50, stages.total_us_p99) for stages in settings)
    return [at.value for pair in both for at in pair if at is not None]


def _write_name(frame: Frame, stages: Stages, name: str, label_inches: float, y: float) -> None:
    style, start = look(stages.transport), 0.1 / WIDTH_INCHES
    mark = Line2D(
        [start + 0.05 / WIDTH_INCHES],
        [y],
        color=style.colour,
        marker=style.marker,
        markersize=5,
        linestyle="",
        transform=frame.figure.transFigure,
    )
    frame.figure.add_artist(mark)
    x = (0.25 + label_inches) / WIDTH_INCHES
    frame.figure.text(x, y, name, ha="right", va="center", fontsize=_LABEL_SIZE, color=INK)


def _segment(name: str, x: float = 0, y: float = 0, width: float = 1, height: float = 1) -> Rectangle:
    """A stage's rectangle, at its left edge's middle; any will do as its sample in the legend."""
    rest = name == REST
    place = 0.0 if rest else (_NAMES.index(name) + 0.15) / (len(_NAMES) - 0.7)
    return Rectangle(
        (x, y - height / 2),
        width,
        height,
        facecolor="white" if rest else to_hex(matplotlib.colormaps[RAMP](place)),
        edgecolor=QUIET if rest else "white",
        hatch="/////" if rest else None,
        linewidth=0.6 if rest else 0.4,
        label=name,
        zorder=2,
    )


def _legend(settings: Sequence[Stages]) -> list[Line2D | Patch]:
    present = {name for stages in settings for name, _ in parts_us(stages)}
    entries: list[Line2D | Patch] = [_segment(name) for name in (*_NAMES, REST) if name in present]
    if any(stages.total_us_p50 for stages in settings):
        entries.append(Line2D([], [], color=QUIET, marker="o", linestyle="", label="server, median"))
    if any(stages.total_us_p99 for stages in settings):
        entries.append(
            Line2D(
                [], [], color=QUIET, marker="|", markersize=9, mew=1.8, linestyle="", label="server, 99th percentile"
            )
        )
    return entries


def _sentences(settings: Sequence[Stages]) -> Iterator[str]:
    if not settings:
        yield "No setting had its stages timed."
        return
    yield "Bars: mean times, one stage after another; the number is their sum."
    refused = [f"{stages.label} by gate {_numbers(stages)}" for stages in settings if stages.refused_by]
    if refused:
        yield f"{REFUSED_MARK} Refused, so that nothing is concluded from its times: {'; '.join(refused)}."
    if any(stages.load_limited for stages in settings):
        yield f"{LIMITED_MARK} In some run the clients took over 80 % of their core: the client’s part is large."
    means = [stages.response_us_mean for stages in settings if stages.response_us_mean]
    if means:
        yield "Hatched: what the client’s mean response has beyond the server’s stages."
    over = [stages.label for stages in settings if _over(stages)]
    if over:
        yield f"The stages add up to more than the client waited, so that no rest is drawn: {'; '.join(over)}."
    estimates = [at for s in settings for at in (s.response_us_mean, s.total_us_p50, s.total_us_p99) if at]
    if any(at.n > 1 for at in estimates):
        runs = sorted({at.n for at in estimates})
        number = f"{runs[0]}" if runs[0] == runs[-1] else f"{runs[0]} to {runs[-1]}"
        yield f"Thin lines: 95 % intervals over {number} runs (Student’s t) of the mean response and the percentiles."
    if _percentiles(settings):
        yield "Median and 99th percentile: of the server’s stages together, request by request, on a logarithmic axis."
    if any(stages.preparation_us is None for stages in settings):
        yield "Where no decoding is shown it was not timed apart."


def _over(stages: Stages) -> bool:
    return stages.response_us_mean is not None and stages.response_us_mean.value < server_us(stages)


def text_alternative(title: str, settings: Sequence[Stages]) -> str:
    """What the picture shows: for every setting all its segments, and its percentiles."""
    return f"{title}. " + " ".join(_spoken(stages) for stages in settings)


def _spoken(stages: Stages) -> str:
    texts = [f"{name} {_time(time)}" for name, time in parts_us(stages)]
    for name, at in (("median", stages.total_us_p50), ("99th percentile", stages.total_us_p99)):
        if at is not None:
            texts.append(f"the server’s {name} {_time(at.value)}")
    refused = f" (refused by gate {_numbers(stages)})" if stages.refused_by else ""
    return (
        f"{stages.label}{refused}: mean {_time(sum(time for _, time in parts_us(stages)))}, of it {', '.join(texts)}."
    )


def _numbers(stages: Stages) -> str:
    return ", ".join(map(str, stages.refused_by))


def _time(time_us: float) -> str:
    unit, unit_us = time_unit(time_us)
    return f"{measured(time_us / unit_us)} {unit}"
