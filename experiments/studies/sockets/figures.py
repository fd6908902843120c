"""The graphs of the document, 1 to 5, with their axes; ratios; its faults with the evidence of our data. Pure.

Beside each of graphs 1 to 4 stands the same cell by the original's timer.
"""

from collections.abc import Iterator, Sequence

from experiments.design.arms import Arm
from experiments.judge.delivery import interval
from experiments.judge.points import points
from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judgement
from experiments.results.observed import ALL
from experiments.show.content import Seen
from experiments.show.figures import bars, ratios
from experiments.show.figures.style import Picture
from experiments.show.numbers import number, percent, times_between
from experiments.show.tables import Table
from experiments.studies.sockets.design import (
    APIS,
    BASE,
    GRAPHS,
    HEADLINE,
    NAMES,
    SIZES,
    SUCCESSOR,
    SUCCESSOR_OF,
    of,
    ratio_name,
    throughput_of,
    words,
)
from experiments.studies.sockets.wording import Spread, brief, delivered, spread

SOONEST = "question_1"
"""Name of the figure of the first question."""


def graphs(seen: Seen) -> Sequence[Picture]:
    """Graphs 1 to 5, and every API beside Berkeley sockets."""
    found = points(seen.main.sweep, seen.main.blocks)
    means = {arm: point.mean_us for (arm, request), point in found.items() if request == ALL}
    panels = {}
    for cell in GRAPHS:
        client = [(api, means.get(Arm(of(api, *cell)))) for api in APIS]
        receiver = [(api, interval(delivered(seen).rows, of(api, *cell), lambda row: row.cycle_us)) for api in APIS]
        panels[cell] = (
            bars.Panel("At the client", "Mean response time, ms", list(_bars(client, 1000.0))),
            bars.Panel(
                "As the original timed it: from message to message",
                "Mean time at the receiver, ms",
                list(_bars(receiver, 1000.0)),
            ),
        )
    alike = [panel for of_cell in panels.values() for panel in of_cell]
    drawn = [
        bars.picture(
            f"graph_{GRAPHS[cell]}", f"Graph {GRAPHS[cell]}. Response time of messages, {words(*cell)}", own, alike
        )
        for cell, own in panels.items()
    ]
    throughput = [
        (api, interval(delivered(seen).rows, throughput_of(api), lambda row: row.received_hz)) for api in APIS
    ]
    panel = bars.Panel("Counted at the receiver", "Messages a second", list(_bars(throughput, 1.0)))
    last = bars.picture("graph_5", "Graph 5. Throughput, 100 KB, as fast as one client can", [panel])
    return (*drawn, last, _soonest(seen.main))


def _soonest(judgement: Judgement) -> Picture:
    names = [ratio_name(api, BASE, cell) for cell in GRAPHS for api in APIS if api != BASE]
    title = f"Which API answers soonest? Each ÷ {NAMES[BASE]}. {NAMES[SUCCESSOR]} succeeds {NAMES[SUCCESSOR_OF]}"
    return ratios.picture(SOONEST, title, [judgement.judged[name] for name in names if name in judgement.judged])


def _bars(means: Sequence[tuple[str, Estimate | None]], unit: float) -> Iterator[bars.Bar]:
    for api, value in means:
        if value is not None:
            yield bars.Bar(api, value.over(unit))


READ_BYTES, REPLY_BYTES = 99_999, 18
"""Bytes in appendix B: read at once by its Berkeley server, and sent as its answer."""

NOT_MEASURED = "Not measured in this run."


def fault_table(seen: Seen) -> str:
    """Table of faults: each with the evidence of our data, and what is done here."""
    lines = (
        (
            "The timer begins before the receive (appendices A to C)",
            _timer(seen),
            "A time begins just before the send, at the client",
        ),
        (
            f"Berkeley reads once, up to {READ_BYTES:,} bytes (appendix B)",
            _partial_read(),
            "Every message is read whole; runs whose bytes do not add up are refused",
        ),
        (
            f"Berkeley replies {REPLY_BYTES} bytes, the others the whole message",
            f"Its replies are {percent(REPLY_BYTES / SIZES[0])} and {percent(REPLY_BYTES / SIZES[1])} of the others’.",
            "All echo in full, and the client compares every reply",
        ),
        (
            "TCP_NODELAY is set on nanomsg alone (appendix C)",
            "Not varied here, so nothing is concluded about it.",
            "Set on all, on both sides",
        ),
        (
            "REP on ZeroMQ against PAIR on nanomsg against a raw stream",
            _patterns(seen),
            "The same pattern on all; the other is a level of `pattern`",
        ),
        (
            "An “interval” that crosses zero (graphs 1 to 4)",
            _crossing(seen.main),
            "Intervals are of logarithms, over blocks",
        ),
        (
            "Hour after hour, one API after the other",
            "What the machine does in that hour is the API’s.",
            "By turns, in random order, in windows of a second or less",
        ),
    )
    return Table(("fault", "what our data say", "here"), lines, 3).markdown


def _timer(seen: Seen) -> str:
    cell = next(iter(GRAPHS))
    cycle = interval(delivered(seen).rows, of(BASE, *cell), lambda row: row.cycle_us)
    true = interval(delivered(seen).rows, of(BASE, *cell), lambda row: row.response_us)
    if cycle is None or true is None:
        return NOT_MEASURED
    return (
        f"{NAMES[BASE]}, {words(*cell)}: the timer reads {number(cycle.value / 1000)} ms where the client waits "
        f"{number(true.value / 1000)} ms. The other {100 * (1 - true.value / cycle.value):.1f} % is idle."
    )


def _partial_read() -> str:
    reads = -(-SIZES[1] // READ_BYTES)
    return f"A message of {SIZES[1]:,} bytes takes {reads} reads at least: {reads} replies, and {reads} samples."


def _patterns(seen: Seen) -> str:
    part = seen.after.get("socket_patterns")
    told = [] if part is None else [brief(each) for each in part.comparisons(HEADLINE)]
    return " ".join(told) or f"{NOT_MEASURED} `python -m experiments run socket_patterns`"


def _crossing(judgement: Judgement) -> str:
    found = tuple(spreads(judgement))
    if not found:
        return NOT_MEASURED
    low = sum(each.low_us < 0 for each in found)
    return f"Mean − 1.96 standard deviations of single samples lies under zero in {low} of {len(found)} of our cells."


def spreads(judgement: Judgement) -> Iterator[Spread]:
    """Spread of each API, rate and size that was measured."""
    for cell in GRAPHS:
        for api in APIS:
            found = spread(judgement, of(api, *cell))
            if found is not None:
                yield found


def spread_table(judgement: Judgement) -> str:
    """Table of the samples' spread beside the interval of the mean."""
    lines = tuple(
        (
            NAMES[each.of.text("transport")],
            words(float(each.of.text("rate_hz")), each.of.whole("size")),
            f"{each.samples:,}",
            number(each.mean_us),
            number(each.deviation_us),
            number(each.low_us),
            times_between(each.mean, 1),
        )
        for each in spreads(judgement)
    )
    head = (
        "API",
        "messages",
        "samples",
        "mean, µs",
        "standard deviation, µs",
        "mean − 1.96 of them",
        "interval of the mean",
    )
    seconds = getattr(judgement.sweep.turns, "duration_s", 0.0)
    note = (
        f"A sample is the mean of a window of {seconds:g} s. Single samples spread far. That they reach under "
        "zero says nothing of the mean, whose 95 % interval over blocks is in the last column."
    )
    return Table(head, lines, 2, (note,)).markdown
