"""The graphs of the document, 1 to 5, with their axes. Beside each of 1 to 4: the same cell by the original's timer."""

from collections.abc import Iterator, Sequence

from experiments.design.arms import Arm
from experiments.judge.delivery import interval
from experiments.judge.points import points
from experiments.judge.stats import Estimate
from experiments.kinds.delivery import DeliveryRow
from experiments.results.observed import ALL
from experiments.show.content import Seen
from experiments.show.figures import bars
from experiments.show.figures.style import Picture
from experiments.studies.sockets.original import GRAPHS
from experiments.studies.sockets.sweeps import APIS, of, throughput_of, words
from experiments.studies.sockets.wording import delivered


def graphs(seen: Seen) -> Sequence[Picture]:
    """Graphs 1 to 5."""
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
    throughput = [(api, interval(delivered(seen).rows, throughput_of(api), _received_hz)) for api in APIS]
    panel = bars.Panel("Counted at the receiver", "Messages a second", list(_bars(throughput, 1.0)))
    return (*drawn, bars.picture("graph_5", "Graph 5. Throughput, 100 KB, as fast as one client can", [panel]))


def _received_hz(row: DeliveryRow) -> float:
    return row.received_hz


def _bars(means: Sequence[tuple[str, Estimate | None]], unit: float) -> Iterator[bars.Bar]:
    for api, value in means:
        if value is not None:
            yield bars.Bar(api, value.over(unit))
