"""Made-up cells: two servers, and blocks whose numbers follow from a test's values."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from experiments.design.setting import setting
from experiments.kinds.block import Block, Run
from experiments.kinds.table import Cell, CellRatio, CellSeen, TablePlan
from experiments.results.observed import RoundSeen

BASE = setting(service="entity", transport="http1", connection="per-request", mix="get", client="c-http")

FEW, MANY = (Cell(BASE.but(workers=workers), requests=100) for workers in (2, 64))
PUT = Cell(BASE.but(workers=2, mix="put"), requests=100)
FREE = Cell(BASE.but(workers=2), requests=100, pinned=False)

CELLS = (FEW, MANY, PUT, FREE)

RATIO = CellRatio("pool", "64 threads ÷ 2", (1,), (0,), "response_ms")
"""The cell with many threads ÷ that with few."""

QUIET = RoundSeen(1.0, 0)


def plan(blocks: int = 6, ratios: Sequence[CellRatio] = (RATIO,), cells: Sequence[Cell] = CELLS) -> TablePlan:
    """A plan of all these cells."""
    return TablePlan("study", "part", tuple(cells), tuple(ratios), blocks)


SEEN = CellSeen(
    requests=100,
    errors=0,
    total_s=0.5,
    response_us=1000.0,
    connect_us=400.0,
    received_bytes=10240,
    sent_bytes=5120,
    load_requests=300,
    load_s=2.0,
    server_cpu_s=0.6,
    client_cpu_s=0.4,
    sampled_s=1.0,
    sampled_cpu_s=0.3,
    cpu_samples=(0.2, 0.5, 0.3, 0.25, 0.25),
    memory_samples_mib=(10.0, 30.0, 20.0, 20.0, 20.0),
)


def block(
    number: int, of: TablePlan, seen: Callable[[Cell], CellSeen] = lambda _: SEEN, machine: RoundSeen = QUIET
) -> Block[CellSeen]:
    """A block in which each cell was seen so."""
    runs = tuple(Run(place, seen(cell), machine) for place, cell in enumerate(of.cells))
    return Block(number, "2024-01-01", 1.0, 2, 1000.0, runs)


def slower(cell: Cell, by: float) -> CellSeen:
    """The cell with many threads takes this multiple of the time."""
    return replace(SEEN, response_us=1000.0 * by) if cell == MANY else SEEN
