"""Tables of cells: one server runs at a time, under one load after the other. The functions are pure.

A **cell** is a server under a load of a given number of requests. A **start** is a server process. One process serves
all cells with the same server options, number of connections and pinning. Since one server runs at a time, a table may
have more servers than a sweep's block. A table also shows two values that can be measured only if no other server runs:
the server's share of the cores, and its memory under load. A block measures every cell once. The starts are in random
order, and so are the cells of each start. A **ratio** compares pairs of cells. A block's value of a ratio is the mean
of the log-ratios of the pairs. Ratios are declared before the first block.
"""

import random
from dataclasses import dataclass

from experiments.design.arms import Arm
from experiments.design.levels import Level
from experiments.design.limits import BLOCKS_MAX
from experiments.design.setting import Setting

CLIENT = "c-http"
"""Load program of the cells. The program ends after a given number of requests. It reports the time of connecting
separately."""

SAMPLED_S = 0.1
"""Time in seconds between two readings of a server's processor time and memory."""

SHORT_SAMPLED_S = 0.01
"""Time in seconds between two readings in a short cell."""

SHORT_S = 1.0
"""Limit in seconds: a cell that takes less time is short."""

TURNS_MIN = 5
"""Smallest number of counted requests for each connection. Near the end of a cell, some connections already have no
more requests, so the mean response time is less than connections ÷ throughput. With 5 requests or more for each
connection, the difference is at most a tenth."""

START_S, CELL_S, ANSWERED_HZ = 0.25, 0.1, 8000.0
"""Estimates. ``START_S``: seconds for the start of a server. ``CELL_S``: seconds for a cell, without its requests.
``ANSWERED_HZ``: answered requests per second."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Server under a load of ``requests`` requests, after a warm-up that does not count."""

    setting: Setting
    requests: int
    pinned: bool = True
    """True if the server runs on one core, and the load on another core. If False, both may use all cores."""

    @property
    def warm_up(self) -> int:
        """Number of requests of the warm-up: one for each connection, but at least 100 requests in all."""
        return max(100, self.setting.whole("connections"))

    @property
    def start(self) -> tuple[tuple[tuple[str, Level], ...], int, bool]:
        """Key of the cell's server process. Cells with equal keys share one process."""
        return Arm(self.setting).server[0], self.setting.whole("connections"), self.pinned


@dataclass(frozen=True, slots=True)
class CellRatio:
    """Ratio ``above`` ÷ ``below`` of pairs of cells. Two cells at the same position in ``above`` and ``below`` are a
    pair."""

    name: str
    title: str
    above: tuple[int, ...]
    """Indices in ``TablePlan.cells`` of the cells in the numerator."""
    below: tuple[int, ...]
    """Indices in ``TablePlan.cells`` of the cells in the denominator."""
    quantity: str
    """Name of the quantity that is compared, one of ``judge.table.QUANTITIES``."""
    family: str = "headline"
    """Family of ratios that share one correction for multiple tests."""


@dataclass(frozen=True, slots=True)
class TablePlan:
    """Plan of cells and ratios. Raises ValueError for an invalid plan, for example if a ratio has an unknown cell."""

    study: str
    part: str
    cells: tuple[Cell, ...]
    ratios: tuple[CellRatio, ...]
    blocks: int
    seed: int = 1

    def __post_init__(self) -> None:
        if not self.cells or len(set(self.cells)) != len(self.cells):
            raise ValueError("cells: at least one, each once")
        if not 1 <= self.blocks <= BLOCKS_MAX:
            raise ValueError(f"{self.blocks} blocks, allowed: 1 to {BLOCKS_MAX}")
        for each in self.cells:
            of = each.setting
            if of["client"] != CLIENT or of["rate_hz"] is not None or of["clients"] != 1 or each.requests < 1:
                raise ValueError(f"{of}: allowed: client={CLIENT}, one client, a closed loop of one request or more")
            if each.requests < TURNS_MIN * of.whole("connections"):
                raise ValueError(f"{of}: {each.requests} requests, allowed: {TURNS_MIN} for each connection or more")
        if len({each.name for each in self.ratios}) != len(self.ratios):
            raise ValueError("two ratios of one name")
        places = set(range(len(self.cells)))
        for ratio in self.ratios:
            if len(ratio.above) != len(ratio.below) or not ratio.above or not places >= {*ratio.above, *ratio.below}:
                raise ValueError(f"{ratio.name}: allowed: as many cells above as below, all of them measured")

    @property
    def lasts_s(self) -> float:
        """Estimated time of all blocks, in seconds."""
        starts = len({each.start for each in self.cells})
        requests = sum(each.warm_up + each.requests for each in self.cells)
        return self.blocks * (START_S * starts + CELL_S * len(self.cells) + requests / ANSWERED_HZ)

    def order(self, number: int) -> tuple[int, ...]:
        """Indices in ``cells``: the random order in which block ``number`` measures the cells. Cells of one server
        process stay together."""
        return tuple(place for start in self.starts(number) for place in start)

    def starts(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Server processes of block ``number``, in random order. Each process is a tuple: the indices in ``cells`` of
        the cells that the process serves, in random order."""
        starts: dict[object, list[int]] = {}
        for place, cell in enumerate(self.cells):
            starts.setdefault(cell.start, []).append(place)
        rng = random.Random(f"{self.seed}/cells/{number}")
        shuffled = rng.sample(list(starts.values()), len(starts))
        return tuple(tuple(rng.sample(places, len(places))) for places in shuffled)


@dataclass(frozen=True, slots=True)
class CellSeen:
    """Observation of one cell in one block.

    Fields whose names begin with ``load`` include the warm-up. The other times and bytes are of the counted requests,
    if the field does not say otherwise.
    """

    requests: int
    """Number of counted requests with the right reply."""
    errors: int
    """Number of errors. Errors in the warm-up count too."""
    total_s: float
    """Time in seconds from the start of the first counted request to the end of the last counted request."""
    response_us: float
    """Mean response time, in µs. The time of connecting is included."""
    connect_us: float
    """Mean time of connecting, in µs. The rest of ``response_us`` is the processing."""
    received_bytes: int
    sent_bytes: int
    load_requests: int
    """Number of answered requests, including the warm-up."""
    load_s: float
    """Duration of the load, including the warm-up."""
    server_cpu_s: float
    """Processor time of the server during ``load_s``."""
    client_cpu_s: float
    """Processor time of the client during ``load_s``."""
    sampled_s: float
    """Time in seconds from the first sample to the last sample. At the first sample the server was already busy."""
    sampled_cpu_s: float
    """Processor time of the server from the first sample to the last sample."""
    cpu_samples: tuple[float, ...]
    """Processor time of the server in each interval between two samples, as a share of one core. The intervals are
    nearly equally long."""
    memory_samples_mib: tuple[float, ...]
    """Resident memory in MiB, read at the end of each interval of ``cpu_samples``."""
