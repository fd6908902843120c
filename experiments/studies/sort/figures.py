"""The figures of the study ``sort``: the document's three, with its axes, and figures that explain them."""

import math
from collections.abc import Iterator, Sequence
from itertools import product

from experiments.judge.stats import Estimate, exact
from experiments.judge.verdicts import Judged
from experiments.show.content import Seen
from experiments.show.figures import bars, costs, curves, ratios
from experiments.show.figures.style import Picture, label
from experiments.studies.sort import one_off
from experiments.studies.sort.measured import Measured, measured
from experiments.studies.sort.original import CALLS, MEAN_US
from experiments.studies.sort.sweeps import ALGORITHMS, LENGTHS, MECHANISMS, TRANSPORTS, go, python

BESIDE = {"sort_array_len": "Longer arrays: ratios", "sort_python": "Python: ratios"}
"""Figures of the comparisons of parts that were measured beside the main one."""

RTT = "Mean round-trip time, µs"


def main(seen: Seen) -> Sequence[Picture]:
    """Figures of the main part."""
    found = measured(seen)
    headline = [each for each in found.judged.values() if _is_of(each, "headline", "sort", found)]
    pictures = [ratios.picture("answers", "Ratios that answer the questions", headline)]
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
    """Panels of one of the document's figures: mean by mechanism and algorithm, theirs beside ours in both readings."""
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
    """Mean against 1 ÷ N, in both readings of gRPC."""
    readings = (("net-rpc", False), ("grpc", True), ("grpc", False))
    panels = []
    for mechanism, with_connect in readings:
        how = "connecting in the first call" if with_connect else "connected before"
        lines = [line for each in ALGORITHMS for line in _fitted(found, mechanism, each, with_connect)]
        theirs = [(1 / calls, MEAN_US[mechanism, algorithm, calls]) for algorithm, calls in product(ALGORITHMS, CALLS)]
        shown = theirs if with_connect == one_off.as_original(mechanism) else []
        panels.append(curves.Panel(f"{label(mechanism)}, {how}", lines, shown))
    ticks = [(1 / calls, f"1/{calls}") for calls in CALLS]
    scale = curves.Scale("1 ÷ N", RTT, ticks, formula="fit: a + b ÷ N")
    return curves.picture("one_off", "Mean against 1 ÷ N: what is paid once, spread over N calls", scale, panels)


def _fitted(found: Measured, mechanism: str, algorithm: str, with_connect: bool) -> Iterator[curves.Line]:
    paid = one_off.paid(found.cold, mechanism, algorithm, with_connect)
    if paid is None:
        return
    means = [(calls, one_off.mean(found.cold, mechanism, algorithm, calls, with_connect)) for calls in CALLS]
    places = [10 ** (-4 + step / 20) for step in range(41)]
    yield curves.Line(
        ALGORITHMS[algorithm],
        mechanism,
        [(1 / calls, mean) for calls, mean in means if mean is not None],
        [(place, paid.fit.at(1 / place)) for place in places],
    )


def _array_len(found: Measured) -> Picture:
    """Mean against the length of the array, beside N log N through the longest."""
    panels = []
    of_languages = (("Go", MECHANISMS, go), ("Python", TRANSPORTS, python))
    for (algorithm, name), (language, transports, of) in product(ALGORITHMS.items(), of_languages):
        lines = []
        for transport in transports:
            seen = [(length, found.points.get(of(transport, algorithm, length))) for length in LENGTHS]
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
    """Every server on the textbook's array, warm."""
    rows = []
    for language, transports, of in (("Go", MECHANISMS, go), ("Python", TRANSPORTS, python)):
        for transport, (algorithm, name) in product(transports, ALGORITHMS.items()):
            point = found.points.get(of(transport, algorithm))
            if point is not None and point.mean_us is not None:
                rows.append(costs.Row(f"{language}, {label(transport)}, {name}", transport, point.mean_us))
    panels = [costs.Panel(f"{RTT}, seven numbers, warm", rows)] if rows else []
    return costs.picture("mechanisms", "Every mechanism, in Go and in Python", panels)


def _same(found: Measured) -> Picture:
    twins = [each for each in found.judged.values() if each.comparison.kind == "same"]
    return ratios.picture("same", "A/A pairs: one setting, started as two servers", twins)
