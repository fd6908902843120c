"""Figures and tables of the study.

The figures and tables of the document are drawn again, with our means beside the document's means. Further figures
explain the means. A table has the faults of the document's method.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from experiments.judge.stats import Estimate, exact
from experiments.results.environment import UNKNOWN, Environment
from experiments.show import tables
from experiments.show.content import Section, Seen
from experiments.show.figures import bars, costs, curves, ratios
from experiments.show.figures.style import Picture, label
from experiments.show.numbers import NOTHING, number, ratio_with_ends, ratio_words, times_between
from experiments.show.tables import Table
from experiments.studies.sort.answers import Measured, as_original, measured
from experiments.studies.sort.design import (
    ALGORITHMS,
    CALLS,
    HEADLINE,
    LENGTHS,
    MEAN_US,
    MECHANISMS,
    MERGE,
    PARAMETERS,
    QUICK,
)

BESIDE = {
    "sort_array_len": ("Longer arrays", "Go, longer arrays: gRPC ÷ net/rpc, 10,000 numbers ÷ 1,000"),
    "sort_python": ("Python", "Python, seven numbers: merge sort ÷ quicksort, mechanism ÷ mechanism"),
}
"""Heading of the section and title of the figure, by the name of a part that is measured after the main part."""

RTT = "Mean round-trip time, µs"

_EQUALS = " = ".replace(" ", "\N{NO-BREAK SPACE}")


def pictures(seen: Seen) -> Sequence[Picture]:
    """Figures of the main part."""
    found = measured(seen)
    title = "Go, seven numbers: gRPC ÷ net/rpc, merge sort ÷ quicksort"
    pictures = [ratios.picture("answers", title, list(seen.main.comparisons(HEADLINE)))]
    panels = {calls: _panels(found, calls) for calls in CALLS}
    alike = [panel for of_calls in panels.values() for panel in of_calls]
    for calls, own in panels.items():
        title = f"N = {calls:,}: mean round-trip time of {calls:,} calls"
        pictures.append(bars.picture(f"figure_{calls}", title, own, alike))
    pictures += [_one_off(found), _array_len(found), _mechanisms(found)]
    for name, (_, title) in BESIDE.items():
        if name in seen.after:
            compared = [each for each in seen.after[name].judged.values() if each.comparison.kind != "same"]
            pictures.append(ratios.picture(name, title, compared))
    return [*pictures, _same(found)]


def array_len(seen: Seen) -> Sequence[Picture]:
    """Figures of the part ``sort_array_len``, on arrays of different lengths."""
    found = measured(seen)
    return [_array_len(found), _same(found)]


def python_sort(seen: Seen) -> Sequence[Picture]:
    """Figures of the part ``sort_python``, on Python's transports."""
    found = measured(seen)
    return [_mechanisms(found), _same(found)]


def python_array_len(seen: Seen) -> Sequence[Picture]:
    """Figure of the part ``sort_python_array_len``, on longer arrays on Python's transports."""
    return [_array_len(measured(seen))]


def _panels(found: Measured, calls: int) -> list[bars.Panel]:
    """Panels of one figure of the document. The figure has the mean by mechanism and algorithm for one N (``calls``).

    The first panel has the document's means. The second panel has our means with the document's way to connect. The
    third panel has our means of runs that connect before their first call.
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
            if (mean := found.mean(mechanism, algorithm, calls, not before and as_original(mechanism)))
        ]
        panels.append(bars.Panel(title, RTT, own))
    return panels


def _one_off(found: Measured) -> Picture:
    """Figure of our mean against 1 ÷ N, with a row of panels for each algorithm. gRPC has two panels in a row:
    connecting in the first call, and connecting before the first call."""
    panels = []
    for (algorithm, name), (mechanism, with_connect) in product(
        ALGORITHMS.items(), (("net-rpc", False), ("grpc", True), ("grpc", False))
    ):
        title = f"{label(mechanism)}, {name}, {'connecting in the first call' if with_connect else 'connected before'}"
        lines = []
        if once := found.paid(mechanism, algorithm, with_connect):
            b_us = once.fit.once_us
            title += f": b = {number(b_us.value)} µs".replace(" = ", _EQUALS) if b_us.low > 0 else ": no b is shown"
            means = [(calls, found.mean(mechanism, algorithm, calls, with_connect)) for calls in CALLS]
            points = [(1 / calls, mean) for calls, mean in means if mean is not None]
            places = [10 ** (-4 + step / 20) for step in range(41)]
            lines = [curves.Line("", mechanism, points, [(place, once.fit.at(1 / place)) for place in places])]
        panels.append(curves.Panel(title, lines))
    ticks = [(1 / calls, f"1/{calls}") for calls in CALLS]
    scale = curves.Scale("1 ÷ N, for runs of N calls", RTT, ticks, formula="fit: a + b ÷ N", columns=3)
    return curves.picture("one_off", "Our mean against 1 ÷ N: b is paid once, and spread over N calls", scale, panels)


def _means(found: Measured, language: str, algorithm: str) -> dict[str, dict[int, Estimate]]:
    """Mean times of the calls that sort with an algorithm on a language's servers: by transport, then by length of the
    array. The transports come from the recording. A recording may have a transport that this version lacks.
    """
    means: dict[str, dict[int, Estimate]] = {}
    for of, point in found.points.items():
        if of["language"] == language.lower() and of["mix"] == algorithm and point.mean_us:
            means.setdefault(of.text("transport"), {}).setdefault(of.whole("array_len"), point.mean_us)
    return means


def _array_len(found: Measured) -> Picture:
    """Figure of the mean against the length of the array, with the curve N log N through the mean of the longest
    array."""
    panels = []
    for (algorithm, name), language in product(ALGORITHMS.items(), ("Go", "Python")):
        lines = []
        for transport, means in sorted(_means(found, language, algorithm).items()):
            if points := [(float(length), means[length]) for length in LENGTHS if length in means]:
                lines.append(curves.Line("", transport, points, _n_log_n(points[-1])))
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
    """Figure of the mean of every warm server on the textbook's array. Each language has a panel, since client and
    server differ by language."""
    panels = []
    for language in ("Go", "Python"):
        rows = [
            costs.Row(f"{label(transport)}, {name}", transport, means[0])
            for algorithm, name in ALGORITHMS.items()
            for transport, means in _means(found, language, algorithm).items()
            if 0 in means
        ]
        if rows:
            rows.sort(key=lambda row: row.transport)
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
"""Mark of a mean in a table. A marked mean is of runs that connect as the document's runs on this mechanism do: before
the first call, or within the first call."""


def sections(seen: Seen) -> Sequence[Section]:
    """Sections of the main part."""
    found = measured(seen)
    told = [Section("Parameters", parameters(seen.environment).markdown)]
    if found.cold:
        figures = tuple(f"figure_{calls}" for calls in CALLS)
        told.append(Section("Results, as the document has them", results(found).markdown, figures))
        told.append(Section("One-off cost of a run", paid_once(found).markdown))
        faults = Table(("Fault", "Shown by"), tuple(_faults(found)), 2)
        told.append(Section("The document's faults, in our data", faults.markdown))
    for name, (title, _) in BESIDE.items():
        if name in seen.after:
            beside = seen.after[name]
            told.append(Section(title, tables.comparisons(beside, beside.judged.values()).markdown, (name,)))
    return told


def parameters(of: Environment | None) -> Table:
    """Table of the document's parameters, and of our parameters from the record of the machine. ``of``: the record.
    Without a record our parameters are unknown."""
    ours: tuple[str, ...] = (UNKNOWN,) * len(PARAMETERS)
    if of is not None:
        busy = f"load {of.before.load_1_min:g} before"
        ours = (
            f"{of.cpu_model}, {of.cores} cores used, {of.memory_mib / 1024:.0f} GiB",
            f"{of.system}, {of.kernel}",
            ", ".join((of.languages.get("go", "Go unknown"), of.python)),
            f"up: {tables.interfaces(of)}; all traffic is on the loopback",
            of.power,
            f"{UNKNOWN if of.processes is None else of.processes}, {busy}",
        )
    lines = tuple((*theirs, own) for theirs, own in zip(PARAMETERS.items(), ours, strict=True))
    return Table(("Parameter", "The document", "Here"), lines, 3)


def results(found: Measured) -> Table:
    """Table of the 12 cells (mechanism, algorithm, N): the document's means, and our means for both ways to connect."""
    lines = []
    for calls, mechanism, (algorithm, name) in product(CALLS, MECHANISMS, ALGORITHMS.items()):
        cells: list[str] = []
        for with_connect in (False, True):
            mean, interval = _mean(found.mean(mechanism, algorithm, calls, with_connect))
            cells += (mean + AS_DOCUMENT * (with_connect == as_original(mechanism)), interval)
        theirs = f"{MEAN_US[mechanism, algorithm, calls]:g}"
        lines.append((f"{calls:,}", label(mechanism), name, theirs, *cells))
    what, interval = ("N", "Mechanism", "Algorithm", "The document, µs"), "95 % interval"
    ours = "Ours, connected before, µs", interval, "Ours, connecting in the first call, µs", interval
    note = f"{AS_DOCUMENT} As the document connects: before its loop on net/rpc, inside its first timed call on gRPC."
    return Table((*what, *ours), tuple(lines), 3, (note,))


def _mean(of: Estimate | None) -> tuple[str, str]:
    return (NOTHING, NOTHING) if of is None else (number(of.value), times_between(of, 1))


def paid_once(found: Measured) -> Table:
    """Table of the fit a + b ÷ N and of the measured one-off cost, for each mechanism, algorithm and way to connect."""
    lines = []
    for mechanism, (algorithm, name), connects in product(
        MECHANISMS, ALGORITHMS.items(), ("before", "in its first call")
    ):
        if once := found.paid(mechanism, algorithm, connects != "before"):
            seen = (*_mean(once.fit.each_us), *_mean(once.fit.once_us), *_mean(once.seen_us))
            lines.append((label(mechanism), name, connects, *seen, f"{100 * once.fit.off_share:.0f}"))
    what, interval = ("Mechanism", "Algorithm", "Connects"), "95 % interval"
    fit = "a, µs a call", interval, "b, µs once", interval, "Timed once, µs", interval, "Fit is off by, %"
    note = (
        "Timed once: the time of the first call minus the time of a later call, and the time of connecting where it "
        "counts. Where b is larger, the next calls are slow too: a fresh program warms up over its first hundreds of "
        "calls. Where b is smaller, later calls were slower than early calls in these runs."
    )
    return Table((*what, *fit), tuple(lines), 3, (note,))


def _faults(found: Measured) -> Iterator[tuple[str, str]]:
    """Lines of the table of faults. A line has a fault of the document's method, and the effect that this fault would
    have on our own numbers.
    """
    calls = found.calls_ratio("grpc", MERGE, CALLS[0], CALLS[2])
    grown = found.judged.get("growth_grpc_merge")
    longer = "" if grown is None else f" 10,000 numbers take {ratio_words(grown.typical)[0]} times as long as 1,000."
    yield (
        "N was the number of calls, and the text reads N as the size of the input",
        f"gRPC, merge sort, 100 calls ÷ 10,000, the same seven numbers: {_ratio(calls)}.{longer}",
    )
    for mechanism in MECHANISMS:
        if once := found.paid(mechanism, MERGE, as_original(mechanism)):
            few, many = (100 * once.seen_us.value / calls / once.fit.at(calls) for calls in (CALLS[0], CALLS[2]))
            yield (
                "N calls share the one-off cost; the document's fall is larger, for an unknown reason "
                f"({label(mechanism)})",
                f"The one-off cost is {few:.0f} % of the mean of 100 calls, and {many:.1f} % of the mean of 10,000.",
            )
        theirs = MEAN_US[mechanism, MERGE, CALLS[0]] / MEAN_US[mechanism, QUICK, CALLS[0]]
        yield (
            f"Merge sort always ran before quicksort, on one connection ({label(mechanism)})",
            f"The first 100 calls ÷ the next 900, the same algorithm: "
            f"{_ratio(found.first_pays(mechanism))}. Merge sort ÷ quicksort in fresh runs: "
            f"{_ratio(found.algorithms_ratio(mechanism, CALLS[0]))}. The document: {theirs:.2f}.",
        )
    so, both_before = (found.mechanisms_ratio(MERGE, CALLS[0], each) for each in (True, False))
    yield (
        "gRPC connected inside its first timed call; net/rpc connected before its timed loop",
        f"gRPC ÷ net/rpc, merge sort, 100 calls: as the document connects {_ratio(so)}; both connected before "
        f"{_ratio(both_before)}.",
    )
    requests = sum(point.times.count for point in found.points.values())
    errors = sum(point.errors for point in found.points.values()) + sum(row.errors for row in found.cold)
    yield (
        "gRPC's loop threw its errors away: a call that failed early counted as a fast call",
        f"Here every reply is checked, and a client ends at its first error. {requests:,} replies were counted "
        f"beside the cold runs, {errors:,} errors.",
    )


def _ratio(of: Estimate | None) -> str:
    return "not measured" if of is None else ratio_with_ends(of)
