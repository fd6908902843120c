"""Figures and tables of the study: the document's own with ours in them, figures that explain them, and its faults."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from experiments.judge.points import Point
from experiments.judge.stats import Estimate, exact
from experiments.judge.verdicts import Judged
from experiments.results.environment import UNKNOWN, Environment
from experiments.show import tables
from experiments.show.content import Section, Seen
from experiments.show.figures import bars, costs, curves, ratios
from experiments.show.figures.style import Picture, label
from experiments.show.numbers import NOTHING, number, ratio_words, times_between
from experiments.show.tables import Table
from experiments.studies.sort import one_off
from experiments.studies.sort.design import (
    ALGORITHMS,
    CALLS,
    LENGTHS,
    MEAN_US,
    MECHANISMS,
    MERGE,
    PARAMETERS,
    QUICK,
)
from experiments.studies.sort.measured import Measured, measured

BESIDE = {
    "sort_array_len": "Go, longer arrays: gRPC ÷ net/rpc, 10,000 numbers ÷ 1,000",
    "sort_python": "Python, seven numbers: merge sort ÷ quicksort, mechanism ÷ mechanism",
}
"""Titles of the figures for parts that were measured beside the main part."""

RTT = "Mean round-trip time, µs"

_EQUALS = " = ".replace(" ", "\N{NO-BREAK SPACE}")


def pictures(seen: Seen) -> Sequence[Picture]:
    """Figures of the main part."""
    found = measured(seen)
    headline = [each for each in found.judged.values() if _is_of(each, "headline", "sort", found)]
    pictures = [ratios.picture("answers", "Go, seven numbers: gRPC ÷ net/rpc, merge sort ÷ quicksort", headline)]
    panels = {calls: _panels(found, calls) for calls in CALLS}
    alike = [panel for of_calls in panels.values() for panel in of_calls]
    for calls, own in panels.items():
        title = f"N = {calls:,}: mean round-trip time of {calls:,} calls"
        pictures.append(bars.picture(f"figure_{calls}", title, own, alike))
    pictures += [_one_off(found), _array_len(found), _mechanisms(found)]
    for name, title in BESIDE.items():
        if name in seen.after:
            compared = [each for each in seen.after[name].judged.values() if each.comparison.kind != "same"]
            pictures.append(ratios.picture(name, title, compared))
    return [*pictures, _same(found)]


def array_len(seen: Seen) -> Sequence[Picture]:
    """Figures of the part on long arrays."""
    found = measured(seen)
    return [_array_len(found), _same(found)]


def python_sort(seen: Seen) -> Sequence[Picture]:
    """Figures of the part on Python."""
    found = measured(seen)
    return [_mechanisms(found), _same(found)]


def python_array_len(seen: Seen) -> Sequence[Picture]:
    """Figure of Python's longer arrays."""
    return [_array_len(measured(seen))]


def _is_of(judged: Judged, family: str, part: str, found: Measured) -> bool:
    own = found.parts.get(part)
    return own is not None and judged in list(own.comparisons(family))


def _panels(found: Measured, calls: int) -> list[bars.Panel]:
    """Panels of one figure of the document: mean by mechanism and algorithm.

    The first panel has the document's means. The next two have ours: connected as the document connects, and before.
    """
    theirs = [
        bars.Bar(mechanism, exact(MEAN_US[mechanism, algorithm, calls]), name)
        for mechanism, (algorithm, name) in product(MECHANISMS, ALGORITHMS.items())
    ]
    panels = [bars.Panel("The document's", RTT, theirs)]
    for title, before in (("Ours, as the document connects", False), ("Ours, connected before", True)):
        own = [
            bars.Bar(mechanism, mean, name)
            for mechanism, (algorithm, name) in product(MECHANISMS, ALGORITHMS.items())
            for mean in (
                one_off.mean(found.cold, mechanism, algorithm, calls, not before and one_off.as_original(mechanism)),
            )
            if mean is not None
        ]
        panels.append(bars.Panel(title, RTT, own))
    return panels


def _one_off(found: Measured) -> Picture:
    """Our mean against 1 ÷ N: a row of panels for each algorithm. gRPC connects in the first call, or before."""
    readings = (("net-rpc", False), ("grpc", True), ("grpc", False))
    panels = []
    for (algorithm, name), (mechanism, with_connect) in product(ALGORITHMS.items(), readings):
        how = "connecting in the first call" if with_connect else "connected before"
        lines = list(_fitted(found, mechanism, algorithm, with_connect))
        paid = one_off.paid(found.cold, mechanism, algorithm, with_connect)
        title = f"{label(mechanism)}, {name}, {how}"
        if paid is not None:
            title += f": b = {number(paid.fit.once_us.value)} µs".replace(" = ", _EQUALS)
        panels.append(curves.Panel(title, lines))
    ticks = [(1 / calls, f"1/{calls}") for calls in CALLS]
    scale = curves.Scale("1 ÷ N", RTT, ticks, formula="fit: a + b ÷ N", columns=3)
    return curves.picture("one_off", "Our mean against 1 ÷ N: b is paid once, and spread over N calls", scale, panels)


def _fitted(found: Measured, mechanism: str, algorithm: str, with_connect: bool) -> Iterator[curves.Line]:
    paid = one_off.paid(found.cold, mechanism, algorithm, with_connect)
    if paid is None:
        return
    means = [(calls, one_off.mean(found.cold, mechanism, algorithm, calls, with_connect)) for calls in CALLS]
    places = [10 ** (-4 + step / 20) for step in range(41)]
    yield curves.Line(
        "",
        mechanism,
        [(1 / calls, mean) for calls, mean in means if mean is not None],
        [(place, paid.fit.at(1 / place)) for place in places],
    )


def _transports(found: Measured, language: str) -> Sequence[str]:
    """Transports of a language's servers in these results. An older recording may have a transport that this version
    lacks."""
    own = (each.text("transport") for each in found.points if each["language"] == language.lower())
    return sorted(dict.fromkeys(own))


def _point(found: Measured, language: str, transport: str, algorithm: str, length: int = 0) -> Point | None:
    levels = {"language": language.lower(), "transport": transport, "mix": algorithm, "array_len": length}
    return next((of for each, of in found.points.items() if levels.items() <= dict(each.levels).items()), None)


def _array_len(found: Measured) -> Picture:
    """Mean against the length of the array, beside N log N through the longest."""
    panels = []
    for (algorithm, name), language in product(ALGORITHMS.items(), ("Go", "Python")):
        lines = []
        for transport in _transports(found, language):
            seen = [(length, _point(found, language, transport, algorithm, length)) for length in LENGTHS]
            means = [(float(length), point.mean_us) for length, point in seen if point is not None and point.mean_us]
            if means:
                lines.append(curves.Line("", transport, means, _n_log_n(means[-1])))
        panels.append(curves.Panel(f"{language}, {name}", lines))
    scale = curves.Scale(
        "Numbers in the array",
        RTT,
        [(float(length), f"{length:,}") for length in LENGTHS],
        formula="N log N, through the longest",
        log_y=True,
    )
    return curves.picture("array_len", "Mean round-trip time against the length of the array", scale, panels)


def _n_log_n(last: tuple[float, Estimate]) -> list[tuple[float, float]]:
    length, mean = last
    places = [10 ** (2 + step / 10) for step in range(21)]
    return [(x, mean.value * x * math.log(x) / (length * math.log(length))) for x in places if x <= 1.01 * length]


def _mechanisms(found: Measured) -> Picture:
    """Every server on the textbook's array, warm; languages differ in client and server, so each has a panel."""
    panels = []
    for language in ("Go", "Python"):
        rows = []
        for transport, (algorithm, name) in product(_transports(found, language), ALGORITHMS.items()):
            point = _point(found, language, transport, algorithm)
            if point is not None and point.mean_us is not None:
                rows.append(costs.Row(f"{label(transport)}, {name}", transport, point.mean_us))
        if rows:
            panels.append(costs.Panel(f"{language}: mean round-trip time, µs", rows))
    title = "Mechanisms within Go and within Python: seven numbers, warm, each language on its own scale"
    return costs.picture("mechanisms", title, panels)


def _same(found: Measured) -> Picture:
    twins = []
    for each in (judged for judged in found.judged.values() if judged.comparison.kind == "same"):
        of = each.comparison.above.setting
        numbers = f"{of.whole('array_len'):,} numbers" if of.whole("array_len") else "seven numbers"
        what = of.text("language").capitalize(), label(of.text("transport")), ALGORITHMS[of.text("mix")], numbers
        twins.append(replace(each, comparison=replace(each.comparison, title=", ".join(what))))
    return ratios.picture("same", "A/A pairs: one server ÷ a second start of it", twins)


AS_DOCUMENT = " *"
"""Mark of a mean that was measured as the document measured it: connected before, or in the first call."""

OF_PARTS: Mapping[str, str] = {"sort_array_len": "Longer arrays", "sort_python": "Python"}
"""Headings for parts that were measured beside the main part."""


def sections(seen: Seen) -> Sequence[Section]:
    """Sections of the main part."""
    found = measured(seen)
    told = [Section("Parameters", parameters(seen.environment).markdown)]
    if found.cold:
        told.append(Section("Results, as the document has them", results(found).markdown, _figures()))
        told.append(Section("What is paid once", paid_once(found).markdown))
        told.append(Section("The document's faults, in our data", faults(found).markdown))
    for name, title in OF_PARTS.items():
        if name in seen.after:
            beside = seen.after[name]
            table = tables.comparisons(beside, tuple(beside.judged.values())).markdown
            told.append(Section(title, table, (name,)))
    return told


def _figures() -> tuple[str, ...]:
    return tuple(f"figure_{calls}" for calls in CALLS)


def parameters(of: Environment | None) -> Table:
    """The document's table of parameters, and ours, filled in from what was recorded."""
    ours = dict.fromkeys(PARAMETERS, UNKNOWN) if of is None else _parameters(of)
    lines = tuple((name, theirs, ours[name]) for name, theirs in PARAMETERS.items())
    return Table(("Parameter", "The document", "Here"), lines, 3)


def _parameters(of: Environment) -> dict[str, str]:
    busy = f"load {of.before.load_1_min:g} before"
    values = (
        f"{of.cpu_model}, {of.cores} cores used, {of.memory_mib / 1024:.0f} GiB",
        f"{of.system}, {of.kernel}",
        ", ".join((of.languages.get("go", "Go unknown"), of.python)),
        f"up: {tables.interfaces(of)}; all traffic is on the loopback",
        of.power,
        f"{UNKNOWN if of.processes is None else of.processes}, {busy}",
    )
    return dict(zip(PARAMETERS, values, strict=True))


def results(found: Measured) -> Table:
    """The 12 cells: the document's means, ours connected before, and ours connecting in the first call."""
    lines = []
    for calls, mechanism, (algorithm, name) in product(CALLS, MECHANISMS, ALGORITHMS.items()):
        cells: list[str] = []
        for with_connect in (False, True):
            mean, interval = _mean(one_off.mean(found.cold, mechanism, algorithm, calls, with_connect))
            cells += (mean + AS_DOCUMENT * (with_connect == one_off.as_original(mechanism)), interval)
        theirs = f"{MEAN_US[mechanism, algorithm, calls]:g}"
        lines.append((f"{calls:,}", label(mechanism), name, theirs, *cells))
    what, interval = ("N", "Mechanism", "Algorithm", "The document, µs"), "95 % interval"
    ours = "Ours, connected before, µs", interval, "Ours, connecting in the first call, µs", interval
    note = f"{AS_DOCUMENT} As the document connects: before its loop on net/rpc, inside its first timed call on gRPC."
    return Table((*what, *ours), tuple(lines), 3, (note,))


def _mean(of: Estimate | None) -> tuple[str, str]:
    return (NOTHING, NOTHING) if of is None else (number(of.value), times_between(of, 1))


def paid_once(found: Measured) -> Table:
    """The fit a + b ÷ N of each mechanism and algorithm, for each way to connect, beside what was timed."""
    lines = []
    for mechanism, algorithm, with_connect in product(MECHANISMS, ALGORITHMS, (False, True)):
        paid = one_off.paid(found.cold, mechanism, algorithm, with_connect)
        if paid is not None:
            how = "in its first call" if with_connect else "before"
            seen = (*_mean(paid.fit.each_us), *_mean(paid.fit.once_us), *_mean(paid.seen_us))
            off = f"{100 * paid.fit.off_share:.0f}"
            lines.append((label(mechanism), ALGORITHMS[algorithm], how, *seen, off))
    what, interval = ("Mechanism", "Algorithm", "Connects"), "95 % interval"
    fit = "a, µs a call", interval, "b, µs once", interval, "Timed once, µs", interval, "Fit is off by, %"
    note = (
        "Timed once: the first call over the others, and connecting where it counts. Where b is over it, the next "
        "calls are slow too: a fresh program warms up over its first hundreds of calls."
    )
    return Table((*what, *fit), tuple(lines), 3, (note,))


def faults(found: Measured) -> Table:
    """Table of the faults of the document's method, and of their effect on our own numbers."""
    return Table(("Fault", "Shown by"), tuple(_faults(found)), 2)


def _faults(found: Measured) -> Iterator[tuple[str, str]]:
    calls = one_off.calls_ratio(found.cold, "grpc", MERGE, CALLS[0], CALLS[2])
    grown = found.judged.get("growth_grpc_merge")
    times = None if grown is None else ratio_words(grown.typical)[0]
    longer = "" if times is None else f" 10,000 numbers take {times} times as long as 1,000."
    yield (
        "N was the number of calls, and is read as the size of the input",
        f"gRPC, merge sort, 100 calls ÷ 10,000, the same seven numbers: {_ratio(calls)}.{longer}",
    )
    for mechanism in MECHANISMS:
        paid = one_off.paid(found.cold, mechanism, MERGE, one_off.as_original(mechanism))
        if paid is not None:
            share = paid.fit.once_us.value / CALLS[0] / paid.fit.at(CALLS[0])
            yield (
                f"N calls share what is paid once; the fall is larger, its cause open ({label(mechanism)})",
                f"Of its mean of 100 calls, {100 * share:.0f} % is paid once; of 10,000, "
                f"{100 * paid.fit.once_us.value / CALLS[2] / paid.fit.at(CALLS[2]):.1f} %.",
            )
        first = one_off.first_pays(found.cold, mechanism)
        theirs = MEAN_US[mechanism, MERGE, CALLS[0]] / MEAN_US[mechanism, QUICK, CALLS[0]]
        yield (
            f"Merge sort always ran before quicksort, on one connection ({label(mechanism)})",
            f"The first 100 calls ÷ the next 900, the same algorithm: {_ratio(first)}. Merge sort ÷ "
            f"quicksort in fresh runs: {_ratio(one_off.algorithms_ratio(found.cold, mechanism, CALLS[0]))}. "
            f"The document: {theirs:.2f}.",
        )
    readings = [one_off.mechanisms_ratio(found.cold, MERGE, CALLS[0], connecting) for connecting in (True, False)]
    yield (
        "gRPC connected inside its first timed call, net/rpc before its loop",
        f"gRPC ÷ net/rpc, merge sort, 100 calls: so {_ratio(readings[0])}; both before {_ratio(readings[1])}.",
    )
    yield (
        "gRPC's loop threw its errors away: a call that fails soon counts as a fast one",
        f"Here every reply is checked, and a client ends at its first error. {found.requests():,} replies were counted "
        f"beside the cold runs, {found.errors():,} errors.",
    )


def _ratio(of: Estimate | None) -> str:
    if of is None:
        return "not measured"
    value, ends = ratio_words(of)
    return f"{value} ({ends})"
