"""The figures of the study ``pools``: the document's tables and its JMeter tables, drawn beside ours in one style.

The document draws nothing. Its tables 1 and 2 are lines over the pool here, one figure for a column that a conclusion
is about; its figures 1 and 2, pictures of JMeter's tables, are one figure of throughput.
"""

from collections.abc import Sequence

from experiments.judge.stats import Estimate
from experiments.judge.stress import StressJudged
from experiments.judge.table import CellsJudged
from experiments.kinds.table import Cell
from experiments.show.content import Seen
from experiments.show.figures import beside
from experiments.show.figures.beside import Axis, Row, Series
from experiments.show.figures.style import Picture
from experiments.studies.pools import original
from experiments.studies.pools.sweeps import CONNECTIONS, LANGUAGES, POOLS, VERBS

COLUMNS = {
    "response_ms": ("response", "Mean time of a request", "ms", True),
    "cpu_percent": ("processor", "The server's processor, all cores free", "% of a core", False),
    "memory_percent": ("memory", "The server's memory", "% of the machine's", True),
}
"""A column of tables 1 and 2: the figure's name, title and unit, and whether ours is pinned."""

POOL_AXIS = "threads of the pool"


def pictures(seen: Seen) -> tuple[Picture, ...]:
    """A figure for each column and request; throughput under stress."""
    drawn: list[Picture] = []
    if (cells := seen.of(CellsJudged)) is not None:
        for quantity, (name, title, unit, pinned) in COLUMNS.items():
            for verb in VERBS:
                rows = [_row(cells, quantity, verb, each, pinned) for each in CONNECTIONS]
                axis = Axis(POOL_AXIS, unit, {float(pool): str(pool) for pool in POOLS})
                told = f"{title}: {verb.upper()}, over the pool"
                drawn.append(beside.picture(f"{name}_{verb}", told, axis, [row for row in rows if row.ours]))
    if (stress := seen.of(StressJudged)) is not None:
        drawn.append(_stress(stress))
    return tuple(drawn)


def _row(seen: CellsJudged, quantity: str, verb: str, connections: int, pinned: bool) -> Row:
    """Row of panels: each language over the pool, at this number of connections."""
    own = [
        cell
        for cell in seen.plan.cells
        if (cell.pinned, cell.setting["mix"], cell.setting["connections"]) == (pinned, verb, connections)
    ]
    ours = [Series(each.capitalize(), _line(seen, quantity, each, own)) for each in LANGUAGES]
    table = [row for row in original.TABLES[verb] if row.connections == connections]
    theirs = [
        Series(language.capitalize(), [(float(row.pool), _exact(_printed(row, quantity))) for row in lines])
        for language in LANGUAGES
        if (lines := [row for row in table if row.language == language])
    ]
    return Row(f"{connections:,} connections", theirs, [line for line in ours if line.points])


def _printed(row: original.Row, quantity: str) -> float:
    """Value of a column of the document; means that break Little's law are replaced by those of their totals."""
    return row.little_ms if quantity == "response_ms" else float(getattr(row, quantity))


def _line(seen: CellsJudged, quantity: str, language: str, cells: Sequence[Cell]) -> list[tuple[float, Estimate]]:
    found = []
    for cell in cells:
        value = seen.estimate(cell, quantity) if cell.setting["language"] == language else None
        if value is not None:
            found.append((float(cell.setting.whole("workers")), value))
    return sorted(found, key=lambda point: point[0])


def _exact(value: float) -> Estimate:
    return Estimate(value, value, value, 1)


def _stress(seen: StressJudged) -> Picture:
    """Requests a second of each kind, and in total."""
    kinds = list(dict.fromkeys(row.kind for row in seen.rows))
    ticks = {float(place): kind.replace(" data", "") for place, kind in enumerate(kinds)}
    theirs = [
        Series(
            language.capitalize(),
            [
                (float(kinds.index(row.kind)), _exact(row.throughput_hz))
                for row in original.JMETER
                if row.language == language and row.kind in kinds
            ],
        )
        for language in ("rust", "go")
    ]
    ours = [
        Series(
            server.text("language").capitalize(),
            [(float(kinds.index(row.kind)), row.throughput_hz) for row in seen.rows if row.server == server],
        )
        for server in seen.plan.servers
    ]
    axis = Axis("kind of request, all at once", "requests a second", ticks, joined=False)
    return beside.picture("stress", "Throughput under stress", axis, [Row("All kinds at once", theirs, ours)])
