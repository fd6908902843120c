"""The figures of ``pool_size``: each has predictions and measurements. Pure."""

from collections.abc import Sequence

from experiments.judge.stats import exact
from experiments.show.content import Seen
from experiments.show.figures import curves, off, ratios
from experiments.show.figures.curves import Line, Panel, Scale
from experiments.show.figures.off import Off
from experiments.show.figures.style import Picture
from experiments.show.numbers import counted
from experiments.studies.pool_size.answers import compared
from experiments.studies.pool_size.beside import THROUGHPUT_WITHIN, Beside, beside
from experiments.studies.pool_size.effect import gains
from experiments.studies.pool_size.sweeps import AIO, POOLS, SHARES, SOCKETS, model_of, named, work_of

FORETOLD = "foretold, before it was measured"

PANELS = 4
"""Most panels that are drawn side by side: those of the first rows."""


def pictures(seen: Seen) -> tuple[Picture, ...]:
    """Figures of every question."""
    every = beside(seen)
    lookups = seen.after.get("pool_lookups")
    return (
        ratios.picture(
            "lookups", "A pure Lookup with more threads ÷ with one", () if lookups is None else compared(lookups)
        ),
        effect(seen),
        pools(every),
        prediction(every),
        tails(every),
        loop(every),
    )


def effect(seen: Seen) -> Picture:
    """Throughput of 16 threads ÷ that of one, by the share of waiting."""
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
    title = "Where more threads begin to gain: 1 ms of computing, and a longer and longer wait"
    return curves.picture("effect", title, scale, [Panel(f"{SOCKETS}, 16 clients", [line])] if found else [])


def pools(every: Sequence[Beside]) -> Picture:
    """Throughput over the pool's size: a panel for each work, a line for each model."""
    closed = [each for each in every if not each.is_open and model_of(each.setting) != AIO]
    panels = []
    for work in dict.fromkeys(work_of(each.setting) for each in closed):
        of_work = [each for each in closed if work_of(each.setting) == work]
        most = max(each.clients for each in of_work)
        models = dict.fromkeys(model_of(each.setting) for each in of_work)
        lines = [_line(model, [each for each in of_work if each.clients == most], model) for model in models]
        lines = [line for line in lines if len(line.points) > 1]
        if any(len(line.points) > 2 for line in lines):
            panels.append(Panel(f"{named(work)}, {counted(most, 'client')}", lines))
    ticks = tuple((float(each), str(each)) for each in POOLS)
    scale = Scale("Threads in the pool", "Replies a second", ticks, FORETOLD, log_y=True, holds_formula=True)
    return curves.picture("pools", "Throughput of every pool, foretold and measured", scale, panels[:PANELS])


def prediction(every: Sequence[Beside]) -> Picture:
    """Measured ÷ foretold throughput of every closed loop."""
    closed = [each for each in every if not each.is_open]
    rows = [
        Off(what, [each.ratio for each in closed if each.what == what and each.ratio is not None])
        for what in dict.fromkeys(each.what for each in closed)
    ]
    title = "Throughput, measured ÷ foretold: every arm of a closed loop"
    return off.picture("prediction", title, THROUGHPUT_WITHIN, [row for row in rows if row.ratios])


def tails(every: Sequence[Beside]) -> Picture:
    """The 99th percentile at shares of the capacity: a panel for each row."""
    opened = [each for each in every if each.share is not None]
    panels = []
    for what in dict.fromkeys(each.what for each in opened):
        measured, told = [], []
        own = [each for each in opened if each.what == what]
        for each in own:
            place = 100 * min(SHARES, key=lambda share: abs(share - (each.share or 0)))
            told.append((place, 1000 * each.foretold.response_s))
            if each.p99_s is not None:
                measured.append((place, exact(1000 * each.p99_s)))
        panels.append(
            Panel(
                what, [Line("", own[0].setting.text("transport"), sorted(measured, key=lambda point: point[0]), told)]
            )
        )
    ticks = tuple((100 * share, f"{100 * share:.0f}") for share in SHARES)
    x, y = "Load, % of the capacity", "99th percentile of response times, ms"
    scale = Scale(x, y, ticks, FORETOLD, log_x=False, log_y=True, holds_formula=True)
    return curves.picture("tails", "An open loop: the 99th percentile of response times", scale, panels[:PANELS])


def loop(every: Sequence[Beside]) -> Picture:
    """Throughput over clients, for gRPC's models with the same work."""
    closed = [each for each in every if not each.is_open and each.setting.text("transport").startswith("grpc")]
    panels = []
    for work in dict.fromkeys(work_of(each.setting) for each in closed if model_of(each.setting) == AIO):
        of_work = [each for each in closed if work_of(each.setting) == work]
        lines = []
        for model in dict.fromkeys(model_of(each.setting) for each in of_work):
            own = [each for each in of_work if model_of(each.setting) == model]
            pool = max(each.workers for each in own)
            name = "event loop" if model == AIO else f"{model.partition(', ')[2]}, {counted(pool, 'thread')}"
            lines.append(_line(model, [each for each in own if each.workers == pool], name, "clients"))
        if any(len(line.points) > 1 for line in lines):
            panels.append(Panel(named(work), [line for line in lines if line.points]))
    ticks = tuple((float(each), str(each)) for each in (1, 4, 16, 64))
    scale = Scale("Clients", "Replies a second", ticks, FORETOLD, log_y=True, holds_formula=True)
    return curves.picture("loop", "gRPC on threads and on an event loop", scale, panels[:PANELS])


def _line(model: str, own: Sequence[Beside], name: str, over: str = "workers") -> Line:
    """Measured points of one model, beside their predictions."""
    ascending = sorted((each for each in own if model_of(each.setting) == model), key=lambda each: _place(each, over))
    return Line(
        name if over == "clients" else name.partition(", ")[2],
        ascending[0].setting.text("transport"),
        tuple((_place(each, over), each.throughput_hz) for each in ascending if each.throughput_hz is not None),
        tuple((_place(each, over), each.foretold.throughput_hz) for each in ascending),
    )


def _place(of: Beside, over: str) -> float:
    return float(of.clients if over == "clients" else of.workers)
