"""The figures of the study ``pools``: the document's tables and its JMeter tables, drawn beside ours in one style.

The document draws nothing. Its tables 1 and 2 are lines over the pool here, one figure for a column that a conclusion
is about; its figures 1 and 2, pictures of JMeter's tables, are one figure of throughput.
"""

from collections.abc import Iterator, Sequence

from experiments.judge.stats import exact
from experiments.judge.stress import StressJudged
from experiments.judge.table import OF_THE_LOAD, TableJudged
from experiments.kinds.table import Cell
from experiments.show.content import Seen
from experiments.show.figures import curves
from experiments.show.figures.curves import Line, Panel, Scale
from experiments.show.figures.style import Picture
from experiments.studies.pools import original
from experiments.studies.pools.sweeps import CONNECTIONS, LANGUAGES, POOLS, VERBS

COLUMNS = {
    "response_ms": ("response", "Mean time of a request", "Mean time, ms", True),
    "cpu_percent": ("processor", "Processor use of the server, all cores free", "Processor, % of a core", False),
    "memory_percent": ("memory", "Memory of the server", "Memory, % of all", True),
}
"""A column of tables 1 and 2: the figure's name, title and quantity, and whether ours is pinned."""

LIMITED = "hollow: the load was at its limit, and is part of it"


def pictures(seen: Seen) -> tuple[Picture, ...]:
    """A figure for each column and request; throughput under stress."""
    drawn: list[Picture] = []
    if (cells := seen.of(TableJudged)) is not None:
        for quantity, (name, title, unit, pinned) in COLUMNS.items():
            ticks = [(float(pool), str(pool)) for pool in POOLS]
            scale = Scale("Threads in the pool", unit, ticks, hollow=LIMITED, columns=2, shared=False)
            panels = {verb: list(_panels(cells, quantity, verb, pinned)) for verb in VERBS}
            for verb, own in panels.items():
                told = f"{title}: {verb.upper()}, by the size of its pool"
                drawn.append(curves.picture(f"{name}_{verb}", told, scale, own, list(panels.values())))
    if (stress := seen.of(StressJudged)) is not None:
        drawn.append(_stress(stress))
    return tuple(drawn)


def _panels(seen: TableJudged, quantity: str, verb: str, pinned: bool) -> Iterator[Panel]:
    """For each number of connections the document's panel and ours: each language over the pool."""
    for connections in CONNECTIONS:
        levels = (pinned, verb, connections)
        own = [c for c in seen.plan.cells if (c.pinned, c.setting["mix"], c.setting["connections"]) == levels]
        ours = [_line(seen, quantity, language, own) for language in LANGUAGES]
        table = [row for row in original.TABLES[verb] if row.connections == connections]
        theirs = [
            _series(language, [(float(row.pool), _printed(row, quantity)) for row in lines], quantity in OF_THE_LOAD)
            for language in LANGUAGES
            if (lines := [row for row in table if row.language == language])
        ]
        if any(line.points for line in ours):
            yield Panel(f"{connections:,} connections: the document", theirs)
            yield Panel(f"{connections:,} connections: here", [line for line in ours if line.points])


def _series(language: str, points: Sequence[tuple[float, float]], limited: bool = False) -> Line:
    """Line of the document: its load was at its limit in every cell."""
    return Line(language.capitalize(), "", [(x, exact(y)) for x, y in points], hollow=[x for x, _ in points] * limited)


def _printed(row: original.Row, quantity: str) -> float:
    """Value of a column of the document; means that break Little's law are replaced by those of their totals."""
    return row.little_ms if quantity == "response_ms" else float(getattr(row, quantity))


def _line(seen: TableJudged, quantity: str, language: str, cells: Sequence[Cell]) -> Line:
    own = sorted((c for c in cells if c.setting["language"] == language), key=lambda c: c.setting.whole("workers"))
    found = [(float(c.setting.whole("workers")), value) for c in own if (value := seen.estimate(c, quantity))]
    limited = [float(c.setting.whole("workers")) for c in own if quantity in OF_THE_LOAD and seen.is_load_limited(c)]
    return Line(language.capitalize(), "", found, hollow=limited)


def _stress(seen: StressJudged) -> Picture:
    """Requests a second of each kind, and in total."""
    kinds = {kind: float(place) for place, kind in enumerate(dict.fromkeys(row.kind for row in seen.rows))}
    theirs = [
        _series(
            each,
            [
                (kinds[row.kind], row.throughput_hz)
                for row in original.JMETER
                if row.language == each and row.kind in kinds
            ],
        )
        for each in ("rust", "go")
    ]
    ours = [
        Line(
            server.text("language").capitalize(),
            "",
            [(kinds[row.kind], row.throughput_hz) for row in seen.rows if row.server == server],
        )
        for server in seen.plan.servers
    ]
    scale = Scale(
        "Kind of request, all at once",
        "Requests a second",
        [(place, kind.replace(" data", "")) for kind, place in kinds.items()],
        log_x=False,
        joined=False,
        shared=False,
    )
    panels = [Panel("The document", theirs), Panel("Here, on a scale of its own", ours)]
    return curves.picture("stress", "Throughput under stress", scale, panels)
