"""Figures and tables of the study, each with predictions and measurements. Pure functions."""

import math
from collections.abc import Sequence

from experiments.design.demands import Demands
from experiments.judge.stats import Estimate
from experiments.show import tables
from experiments.show.content import Section, Seen
from experiments.show.figures import curves, off, ratios
from experiments.show.figures.curves import Line, Panel, Scale
from experiments.show.figures.off import Off
from experiments.show.figures.style import Picture
from experiments.show.numbers import NOTHING, counted, number, percent, times_between
from experiments.show.tables import Table
from experiments.studies.pool_size.answers import compared
from experiments.studies.pool_size.beside import (
    TAIL_WITHIN,
    THROUGHPUT_WITHIN,
    Beside,
    Ladder,
    beside,
    gains,
    grouped,
    of_clients,
    of_pools,
)
from experiments.studies.pool_size.design import AIO, POOLS, SOCKETS, named

FORETOLD = "predicted, from one client of one worker"

PANELS = 4
"""Largest number of panels in a figure. Further panels are left out."""


def pictures(seen: Seen) -> tuple[Picture, ...]:
    """Figures of all questions of the main part."""
    every = beside(seen)
    lookups = seen.after.get("pool_lookups")
    judged = () if lookups is None else compared(lookups)
    return (
        ratios.picture("lookups", "A pure Lookup with more threads ÷ with one", judged),
        effect(seen),
        pools(every),
        prediction(every),
        tails(every),
        loop(every),
    )


def effect(seen: Seen) -> Picture:
    """Figure of the throughput of 16 threads ÷ the throughput of one thread, over the share of waiting."""
    found = gains(seen)
    line = Line(
        "16 threads ÷ 1 thread",
        "sockets",
        tuple((100 * each.share, each.measured) for each in found),
        tuple((100 * each.share, each.foretold) for each in found),
    )
    ticks = tuple((float(each), str(each)) for each in range(0, 101, 20))
    x, y = "Waiting, % of a request's time with one thread", "Throughput, 16 threads ÷ 1"
    scale = Scale(x, y, ticks, FORETOLD, log_x=False, holds_formula=True)
    title = "Where more threads begin to gain: 1 ms of computing, then a wait"
    return curves.picture("effect", title, scale, [Panel(f"{SOCKETS}, 16 clients", [line])] if found else [])


def pools(every: Sequence[Beside]) -> Picture:
    """Figure of the throughput over the pool's size. Each work with three pools or more has a panel, and each model has
    a line."""
    closed = [each for each in every if not each.is_open and each.model != AIO]
    panels = []
    for work, of_work in grouped(closed, lambda each: each.work).items():
        most = max(each.clients for each in of_work)
        models = grouped(of_work, lambda each: each.model)
        lines = [_line([each for each in own if each.clients == most], model) for model, own in models.items()]
        lines = [line for line in lines if len(line.points) > 1]
        if any(len(line.points) > 2 for line in lines):
            panels.append(Panel(f"{named(work)}, {counted(most, 'client')}", lines))
    ticks = tuple((float(each), str(each)) for each in POOLS)
    scale = Scale("Threads in the pool", "Replies a second", ticks, FORETOLD, log_y=True, holds_formula=True)
    return curves.picture("pools", "Throughput of every pool, predicted and measured", scale, panels[:PANELS])


def prediction(every: Sequence[Beside]) -> Picture:
    """Figure with a ratio for every arm of a closed loop: measured throughput ÷ predicted throughput."""
    closed = grouped((each for each in every if not each.is_open), lambda each: each.what)
    rows = [
        Off(what, [(f"{each.workers}/{each.clients}", each.ratio) for each in own if each.ratio is not None])
        for what, own in closed.items()
    ]
    title = "Throughput, measured ÷ predicted: every arm of a closed loop"
    return off.picture("prediction", title, THROUGHPUT_WITHIN, [row for row in rows if row.ratios], "threads/clients")


def tails(every: Sequence[Beside]) -> Picture:
    """Figure of the 99th percentile over the load, for open loops, with a panel for each model and work."""
    panels = []
    for what, own in grouped((each for each in every if each.is_open), lambda each: each.what).items():
        at = [(100 * (each.share_now or 0), each.foretold.response_s, each.p99_s) for each in own]
        told = [(place, 1000 * response_s) for place, response_s, _ in at if math.isfinite(response_s)]
        measured = ((place, p99_s.over(0.001)) for place, _, p99_s in at if p99_s is not None)
        seen = sorted(measured, key=lambda point: point[0])
        panels.append(Panel(f"{what}, {_load(own)}", [Line("", own[0].setting.text("transport"), seen, told)]))
    ticks = tuple((float(each), str(each)) for each in (30, 50, 70, 90))
    x, y = "Load, % of the predicted capacity", "99th percentile of response times, ms"
    scale = Scale(x, y, ticks, FORETOLD, log_x=False, log_y=True, holds_formula=True)
    return curves.picture("tails", "An open loop: the 99th percentile of response times", scale, panels[:PANELS])


def _load(own: Sequence[Beside]) -> str:
    """Text on the number of threads and the largest rate of a row's open loops."""
    most = max(own, key=lambda each: each.share or 0)
    threads = "" if most.model == AIO else f"{counted(most.workers, 'thread')}, "
    return f"{threads}up to {number(float(str(most.setting['rate_hz'])))}/s"


def loop(every: Sequence[Beside]) -> Picture:
    """Figure of the throughput over the number of clients, for gRPC. Each model and work has its own panel, so that no
    line hides another line. Works without an event loop are left out."""
    closed = [each for each in every if not each.is_open and each.setting.text("transport").startswith("grpc")]
    panels = []
    for work, of_work in grouped(closed, lambda each: each.work).items():
        models = grouped(of_work, lambda each: each.model)
        for model, own in models.items() if AIO in models else ():
            pool = max(each.workers for each in own)
            name = "event loop" if model == AIO else f"{model.partition(', ')[2]}, {counted(pool, 'thread')}"
            line = _line([each for each in own if each.workers == pool], "", "clients")
            if line.points:
                panels.append(Panel(f"{name}: {named(work)}", [line]))
    ticks = tuple((float(each), str(each)) for each in (1, 16, 64))
    scale = Scale("Clients", "Replies a second", ticks, FORETOLD, log_x=False, holds_formula=True)
    return curves.picture("loop", "gRPC on threads and on an event loop", scale, panels[:PANELS])


def _line(own: Sequence[Beside], name: str, over: str = "workers") -> Line:
    """Line of a figure: the measured points of one model, and the model's predictions. ``over``: quantity of the axis,
    ``workers`` or ``clients``."""

    def place(of: Beside) -> float:
        return float(of.clients if over == "clients" else of.workers)

    ascending = sorted(own, key=place)
    return Line(
        name.partition(", ")[2],
        ascending[0].setting.text("transport") if ascending else "",
        tuple((place(each), each.throughput_hz) for each in ascending if each.throughput_hz is not None),
        tuple((place(each), each.foretold.throughput_hz) for each in ascending),
    )


LIMITS = {"gil": "interpreter", "cores": "cores", "workers": "pool"}
"""Words for the resource that limits the throughput in a prediction, by the resource's name."""


def sections(seen: Seen) -> tuple[Section, ...]:
    """Sections with tables: predicted throughputs, predicted tails, the smallest sufficient pools and clients, demands,
    and the comparisons of pure Lookups if measured."""
    every = beside(seen)
    told = [
        Section("Prediction beside measurement", throughput_table(every)),
        Section("Tails: prediction beside measurement", tail_table(every), ("tails",)),
        Section("The least that is enough", ladder_table((*of_pools(every), *of_clients(every)))),
        Section("What a request needs", demands_table(every)),
    ]
    if "pool_lookups" in seen.after:
        lookups = seen.after["pool_lookups"]
        told.append(Section("A pure Lookup, by turns", tables.comparisons(lookups, compared(lookups)).markdown))
    return tuple(told)


def throughput_table(every: Sequence[Beside]) -> str:
    """Table of the foretold and the measured throughput of every closed loop."""
    lines = [
        (
            each.model,
            named(each.work),
            LIMITS.get(each.foretold.limit, each.foretold.limit),
            _threads(each),
            str(each.clients),
            number(each.foretold.throughput_hz),
            number(each.throughput_hz.value),
            times_between(each.throughput_hz, 1),
            f"{100 * (each.ratio.value - 1):+.1f} %",
            "yes" if each.is_hit else "**no**",
        )
        for each in every
        if not each.is_open and each.throughput_hz is not None and each.ratio is not None
    ]
    head = ("model", "work in a request", "limited by", "threads", "clients", "predicted, /s", "measured, /s")
    return Table((*head, "95 % interval", "off by", f"within {percent(THROUGHPUT_WITHIN)}"), tuple(lines), 3).markdown


def tail_table(every: Sequence[Beside]) -> str:
    """Table of the foretold and the measured 99th percentile of every open loop."""
    lines = [
        (
            each.model,
            named(each.work),
            _threads(each),
            percent(round(each.share, 2)),
            NOTHING if each.share_now is None else percent(round(each.share_now, 2)),
            number(float(str(each.setting["rate_hz"]))),
            number(each.throughput_hz.value) if each.throughput_hz else NOTHING,
            number(1000 * each.foretold.response_s) if math.isfinite(each.foretold.response_s) else "without end",
            NOTHING if each.p99_s is None else number(1000 * each.p99_s.value),
            NOTHING if each.p99_s is None else times_between(each.p99_s, 0.001),
            *_tail_error(each.tail_ratio),
        )
        for each in every
        if each.share is not None
    ]
    shares = ("load ÷ capacity predicted before the sweep", "÷ predicted in the sweep")
    head = ("model", "work in a request", "threads", *shares, "due, /s", "answered, /s")
    times = ("99th percentile predicted, ms", "measured, ms", "95 % interval", "off by")
    return Table((*head, *times, f"within {percent(TAIL_WITHIN)}"), tuple(lines), 2).markdown


def _tail_error(ratio: Estimate | None) -> tuple[str, str]:
    """Two texts for a 99th percentile: the error of its prediction, and ``yes`` where the error is small."""
    if ratio is None:
        return NOTHING, NOTHING
    return f"{100 * (ratio.value - 1):+.0f} %", "yes" if abs(ratio.value - 1) <= TAIL_WITHIN else "**no**"


def _threads(each: Beside) -> str:
    return NOTHING if each.model == AIO else str(each.workers)


def ladder_table(ladders: Sequence[Ladder]) -> str:
    """Table of ladders: the smallest sufficient pool, or number of clients, as foretold and as measured."""
    lines = tuple(
        (
            each.what,
            each.beside,
            f"{each.noun}s {', '.join(map(str, each.steps))}",
            str(each.steps[each.foretold]),
            str(each.steps[each.seen]),
            _between(each),
            NOTHING if not each.can_miss else "yes" if each.is_hit else "**no**",
        )
        for each in ladders
    )
    note = (
        "A step is sufficient with 95 % of the highest throughput of these steps. By intervals: steps that can be the "
        "smallest sufficient step, by 95 % intervals. "
        f"{NOTHING} where every step is within one step of the predicted step."
    )
    head = ("row", "with", "tried", "predicted", "measured", "by intervals", "within one step")
    return Table(head, lines, 3, (note,)).markdown


def _between(of: Ladder) -> str:
    """Text of the steps that may be the smallest sufficient step, by the intervals of the measurements: ``4 to 16``."""
    ends = dict.fromkeys((of.steps[of.earliest], of.steps[of.latest]))
    return " to ".join(map(str, ends))


def demands_table(every: Sequence[Beside]) -> str:
    """Table of the demands of a request for each model and work, as measured in the sweep's blocks."""
    found: dict[str, Demands] = {each.what: each.foretold.demands for each in every}
    lines = tuple(
        (what, *(number(1e6 * part) for part in (of.gil_s, of.free_s, of.wait_s, of.overhead_s)))
        for what, of in found.items()
    )
    note = (
        "Demands of one request, measured by one client of one worker. The work itself counts with its declared time. "
        "On an event loop, work that releases the interpreter still blocks the loop."
    )
    head = ("model: work", "holding the interpreter, µs", "releasing it, µs", "waiting, µs", "outside the worker, µs")
    return Table(head, lines, 1, (note,)).markdown
