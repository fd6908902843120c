"""Tables of cells: a server at a time under one load after the other, a fresh process for each server and connections.

A table may have more servers than a block may hold alive. It also shows figures that need a server by itself: its share
of the cores, and its memory while it works. A block measures every cell once. Its **starts** come in random order.
Cells of one start differ in the requests alone, and come in random order too. A **ratio** compares cells with cells: a
block's value is the mean of the log-ratios of its pairs. Ratios are declared with the cells, before anything is
measured. Pure.
"""

import random
from dataclasses import dataclass

from experiments.design.arms import Arm
from experiments.design.levels import Level
from experiments.design.limits import BLOCKS_MAX
from experiments.design.setting import Setting

CLIENT = "c-http"
"""Program that sends the load of cells. It ends after a given number of requests, and tells connecting from the
rest."""

SAMPLED_S = 0.1
"""Seconds between two readings of a server's processor time and memory …"""

SHORT_SAMPLED_S = 0.01
"""… and in a cell that is shorter than ``SHORT_S``."""

SHORT_S = 1.0

TURNS_MIN = 5
"""Fewest counted requests for each connection. While the last N requests are under way connections become idle, so that
the mean is under N ÷ throughput, by a tenth at most."""

START_S, CELL_S, ANSWERED_HZ = 0.25, 0.1, 8000.0
"""Seconds for the start of a server, and for a cell beside its requests; requests a second. All are estimates."""

Quantity = str
"""Name of the quantity that is compared, in ``judge.table.QUANTITIES``."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A server under a load of a number of requests. Requests of a warm-up, which do not count, are sent before."""

    setting: Setting
    requests: int
    pinned: bool = True
    """True where server and load have a core each; else both may use all cores."""

    @property
    def warm_up(self) -> int:
        """Requests of the warm-up: one on each connection, and 100 at least."""
        return max(100, self.setting.whole("connections"))

    @property
    def start(self) -> tuple[tuple[tuple[str, Level], ...], int, bool]:
        """Key of the cell's server process. Cells with the same key share one process."""
        return Arm(self.setting).server[0], self.setting.whole("connections"), self.pinned


@dataclass(frozen=True, slots=True)
class CellRatio:
    """Ratio above ÷ below, pair by pair: the first of ``above`` with the first of ``below``, and so on."""

    name: str
    title: str
    above: tuple[int, ...]
    """Cells by their places in the plan."""
    below: tuple[int, ...]
    quantity: Quantity
    family: str = "headline"
    """Ratios of one family are corrected together."""


@dataclass(frozen=True, slots=True)
class TablePlan:
    """Plan of cells and ratios. Raises ValueError for one that cannot be measured."""

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
        """Seconds for all blocks, about."""
        starts = len({each.start for each in self.cells})
        requests = sum(each.warm_up + each.requests for each in self.cells)
        return self.blocks * (START_S * starts + CELL_S * len(self.cells) + requests / ANSWERED_HZ)

    def order(self, number: int) -> tuple[int, ...]:
        """The places of a block's cells, in the order in which they run."""
        return tuple(place for start in self.starts(number) for place in start)

    def starts(self, number: int) -> tuple[tuple[int, ...], ...]:
        """The starts of a block in order, each as the places of its cells in order."""
        starts: dict[object, list[int]] = {}
        for place, cell in enumerate(self.cells):
            starts.setdefault(cell.start, []).append(place)
        rng = random.Random(f"{self.seed}/cells/{number}")
        shuffled = rng.sample(list(starts.values()), len(starts))
        return tuple(tuple(rng.sample(places, len(places))) for places in shuffled)


@dataclass(frozen=True, slots=True)
class CellSeen:
    """One cell in one block. Times and bytes are of its counted requests; fields of the load have the warm-up too."""

    requests: int
    """Counted requests that got the right reply."""
    errors: int
    """Errors of the load."""
    total_s: float
    """Time from the beginning of the first counted request to the end of the last one."""
    response_us: float
    connect_us: float
    """Mean time of connecting. The rest of ``response_us`` is processing."""
    received_bytes: int
    sent_bytes: int
    load_requests: int
    """Answered requests of the whole load …"""
    load_s: float
    """… its duration …"""
    server_cpu_s: float
    """… the server's processor time in it …"""
    client_cpu_s: float
    """… and the client's processor time."""
    sampled_s: float
    """Time from the first sample to the last one. The server was at work at the first …"""
    sampled_cpu_s: float
    """… and took this processor time until the last …"""
    cpu_samples: tuple[float, ...]
    """… which is these shares of a core, from each sample to the next one. Their times are nearly equal."""
    memory_samples_mib: tuple[float, ...]
    """Resident memory at the end of each."""
