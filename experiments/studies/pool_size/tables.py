"""The tables of the report: prediction beside measurement of every arm, tails, ladders, demands. Pure."""

from collections.abc import Sequence

from experiments.design.demands import Demands
from experiments.show import tables
from experiments.show.content import Section, Seen
from experiments.show.numbers import NOTHING, has_interval, number, percent, times_between
from experiments.show.tables import Table
from experiments.studies.pool_size.answers import compared
from experiments.studies.pool_size.beside import (
    TAIL_WITHIN,
    THROUGHPUT_WITHIN,
    Beside,
    Ladder,
    beside,
    of_clients,
    of_pools,
)
from experiments.studies.pool_size.sweeps import AIO, model_of, named, work_of

LIMITS = {"gil": "interpreter", "cores": "cores", "lock": "lock", "workers": "pool"}
"""Words for the resource that is busy first."""


def sections(seen: Seen) -> tuple[Section, ...]:
    """Sections of every arm, hits and misses."""
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
    """Table of every closed loop."""
    lines = []
    for each in every:
        seen = each.throughput_hz
        if each.is_open or seen is None or each.ratio is None:
            continue
        off = each.ratio.value - 1
        lines.append(
            (
                model_of(each.setting),
                named(work_of(each.setting)),
                LIMITS.get(each.foretold.limit, each.foretold.limit),
                NOTHING if model_of(each.setting) == AIO else str(each.workers),
                str(each.clients),
                number(each.foretold.throughput_hz),
                number(seen.value),
                times_between(seen, 1) if has_interval(seen) else NOTHING,
                f"{100 * off:+.1f} %",
                "yes" if abs(off) <= THROUGHPUT_WITHIN else "**no**",
            )
        )
    head = ("model", "work in a request", "busy first", "threads", "clients", "foretold, /s", "measured, /s")
    return Table((*head, "95 % interval", "off by", f"within {percent(THROUGHPUT_WITHIN)}"), tuple(lines), 3).markdown


def tail_table(every: Sequence[Beside]) -> str:
    """Table of every open loop."""
    lines = [
        (
            model_of(each.setting),
            named(work_of(each.setting)),
            NOTHING if model_of(each.setting) == AIO else str(each.workers),
            percent(round(each.share, 2)),
            number(float(str(each.setting["rate_hz"]))),
            number(each.throughput_hz.value) if each.throughput_hz else NOTHING,
            number(1000 * each.foretold.response_s),
            NOTHING if each.p99_s is None else number(1000 * each.p99_s),
            NOTHING if each.tail_ratio is None else f"{100 * (each.tail_ratio - 1):+.0f} %",
            NOTHING if each.tail_ratio is None else "yes" if abs(each.tail_ratio - 1) <= TAIL_WITHIN else "**no**",
        )
        for each in every
        if each.share is not None
    ]
    head = ("model", "work in a request", "threads", "of the capacity", "due, /s", "answered, /s")
    times = ("99th percentile foretold, ms", "measured, ms", "off by", f"within {percent(TAIL_WITHIN)}")
    return Table((*head, *times), tuple(lines), 2).markdown


def ladder_table(ladders: Sequence[Ladder]) -> str:
    """Table of each row's smallest pool, and smallest number of clients, that is enough."""
    lines = tuple(
        (
            each.what,
            each.beside,
            f"{each.noun}s {', '.join(map(str, each.steps))}",
            str(each.steps[each.foretold]),
            str(each.steps[each.seen]),
            "yes" if each.is_hit else "**no**",
        )
        for each in ladders
    )
    note = "Enough is 95 % of the most of these steps. One step off may be chance, where two steps are nearly equal."
    head = ("row", "with", "tried", "foretold", "measured", "within one step")
    return Table(head, lines, 3, (note,)).markdown


def demands_table(every: Sequence[Beside]) -> str:
    """Table of the demands of a request for each model and work, as they were found before the sweep."""
    found: dict[str, Demands] = {each.what: each.foretold.demands for each in every}
    lines = tuple(
        (what, *(number(1e6 * part) for part in (of.gil_s, of.free_s, of.wait_s, of.overhead_s)))
        for what, of in found.items()
    )
    note = (
        "Of one request, as one client found it of one worker; the work itself is what was asked for. On an event loop "
        "what lets the interpreter go holds the loop."
    )
    head = ("model: work", "holding the interpreter, µs", "letting it go, µs", "waiting, µs", "outside the worker, µs")
    return Table(head, lines, 1, (note,)).markdown
