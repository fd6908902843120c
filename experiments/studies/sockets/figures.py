"""Graphs 1 to 5 with the document's axes, a figure of ratios, and a table of the document's faults with our evidence.

Each of graphs 1 to 4 has a second panel: the same rate and size by the original's timer. The functions are pure.
"""

from collections.abc import Sequence

from experiments.design.arms import Arm
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
from experiments.studies.sockets.wording import Spread, brief, reported, spread

SOONEST = "question_1"
"""Name of the figure for the first question."""


def graphs(seen: Seen) -> Sequence[Picture]:
    """Graphs 1 to 5, and the figure of the ratios of every API to Berkeley sockets."""
    found = points(seen.main.sweep, seen.main.blocks)
    means = {arm: point.mean_us for (arm, request), point in found.items() if request == ALL}
    panels = {}
    for cell in GRAPHS:
        client = [(api, means.get(Arm(of(api, *cell)))) for api in APIS]
        receiver = [(api, reported(seen, of(api, *cell), "cycle_us")) for api in APIS]
        panels[cell] = (
            bars.Panel("At the client", "Mean response time, ms", _bars(client, 1000.0)),
            bars.Panel(
                "As the original timed it: from message to message",
                "Mean time at the receiver, ms",
                _bars(receiver, 1000.0),
            ),
        )
    alike = [panel for of_cell in panels.values() for panel in of_cell]
    drawn = [
        bars.picture(f"graph_{graph}", f"Graph {graph}. Response time of messages, {words(*cell)}", panels[cell], alike)
        for cell, graph in GRAPHS.items()
    ]
    throughput = [(api, reported(seen, throughput_of(api), "received_hz")) for api in APIS]
    panel = bars.Panel("Counted at the receiver", "Messages a second", _bars(throughput, 1.0))
    last = bars.picture("graph_5", "Graph 5. Throughput, 100 KB, as fast as one client can", [panel])
    return (*drawn, last, _soonest(seen.main))


def _soonest(judgement: Judgement) -> Picture:
    names = [ratio_name(api, BASE, cell) for cell in GRAPHS for api in APIS if api != BASE]
    title = f"Which API answers soonest? Times ÷ {NAMES[BASE]}. {NAMES[SUCCESSOR]} replaces {NAMES[SUCCESSOR_OF]}"
    return ratios.picture(SOONEST, title, [judgement.judged[name] for name in names if name in judgement.judged])


def _bars(means: Sequence[tuple[str, Estimate | None]], unit: float) -> list[bars.Bar]:
    return [bars.Bar(api, value.over(unit)) for api, value in means if value is not None]


READ_BYTES, REPLY_BYTES = 99_999, 18
"""Number of bytes that the Berkeley server of appendix B reads in one call, and size of its reply in bytes."""

NOT_MEASURED = "Not measured in this run."


def fault_table(seen: Seen) -> str:
    """Table of the document's faults. A line has a fault, the evidence of our data, and our own method."""
    reads = -(-SIZES[1] // READ_BYTES)
    lines = (
        (
            "The timer begins before the receive (appendices A to C)",
            _timer(seen),
            "A time begins just before the send, at the client",
        ),
        (
            f"Berkeley reads once, up to {READ_BYTES:,} bytes (appendix B)",
            f"A message of {SIZES[1]:,} bytes takes {reads} reads at least: {reads} replies, and {reads} samples.",
            "Every message is read whole; runs whose bytes do not add up are refused",
        ),
        (
            f"Berkeley replies {REPLY_BYTES} bytes, the others the whole message",
            f"The replies of Berkeley are {percent(REPLY_BYTES / SIZES[0])} and {percent(REPLY_BYTES / SIZES[1])} of "
            "the others’.",
            "All APIs send the whole message back, and the client compares every reply",
        ),
        (
            "TCP_NODELAY is set on nanomsg alone (appendix C)",
            "Not varied here, so nothing is concluded about it.",
            "Set on all APIs, on both sides",
        ),
        (
            "ZeroMQ has REP, nanomsg has PAIR, Berkeley has a raw stream",
            _patterns(seen),
            "The same pattern on all APIs; the other pattern is a level of `pattern`",
        ),
        (
            "An “interval” that crosses zero (graphs 1 to 4)",
            crossing(seen.main) or NOT_MEASURED,
            "Intervals are of logarithms, over blocks",
        ),
        (
            "The APIs one after the other, for an hour each",
            "A disturbance of the machine in that hour counts for one API alone.",
            "APIs by turns, in random order, in windows of a second or less",
        ),
    )
    return Table(("fault", "what our data say", "here"), lines, 3).markdown


def _timer(seen: Seen) -> str:
    cell = next(iter(GRAPHS))
    cycle, true = (reported(seen, of(BASE, *cell), each) for each in ("cycle_us", "response_us"))
    if cycle is None or true is None:
        return NOT_MEASURED
    return (
        f"{NAMES[BASE]}, {words(*cell)}: the timer reads {number(cycle.value / 1000)} ms where the client waits "
        f"{number(true.value / 1000)} ms. So {100 * (1 - true.value / cycle.value):.1f} % of the timer's time is "
        "waiting for the next message."
    )


def _patterns(seen: Seen) -> str:
    part = seen.after.get("socket_patterns")
    told = [] if part is None else [brief(each) for each in part.comparisons(HEADLINE)]
    return " ".join(told) or f"{NOT_MEASURED} `python -m experiments run socket_patterns`"


def crossing(judgement: Judgement) -> str | None:
    """Sentence on the number of cells in which the mean − 1.96 standard deviations of single samples is below zero. A
    cell is an API at a rate and size. None where no cell was measured."""
    found = spreads(judgement)
    low = sum(each.low_us < 0 for each in found)
    deviations = "Mean − 1.96 standard deviations of single samples"
    return f"{deviations} lies under zero in {low} of {len(found)} of our cells." if found else None


def spreads(judgement: Judgement) -> list[Spread]:
    """Spread of the window means, one for each measured API, rate and size."""
    found = (spread(judgement, of(api, *cell)) for cell in GRAPHS for api in APIS)
    return [each for each in found if each is not None]


def spread_table(judgement: Judgement) -> str:
    """Table of the spread of samples and the interval of the mean, for each API, rate and size."""
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
        "mean − 1.96 deviations",
        "interval of the mean",
    )
    seconds = getattr(judgement.sweep.turns, "duration_s", 0.0)
    note = (
        f"A sample is the mean of a window of {seconds:g} s. The spread of single samples is not the error of the "
        "mean. The last column has the mean's 95 % interval over blocks."
    )
    return Table(head, lines, 2, (note,)).markdown
