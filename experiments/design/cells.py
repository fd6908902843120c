"""Cells: one server at a time under one load after the other, a fresh process for each server and connections.

For tables that have more servers than a block may hold alive, and for what only a server by itself shows: its share of
the cores, its memory while it works. A block measures every cell once. Its **starts** come in random order, and within
a start its cells do, which differ in the requests alone. A **ratio** compares cells with cells: a block's value is the
mean of the log-ratios of its pairs. Ratios are declared with the cells, before anything is seen. Pure.
"""

import random
from dataclasses import dataclass

from experiments.design.arms import Arm
from experiments.design.levels import Level
from experiments.design.setting import Setting
from experiments.design.sweep import BLOCKS_MAX

CLIENT = "c-http"
"""Program that loads cells: it ends after a given number of requests, and tells the time of connecting from the
rest."""

SAMPLED_S = 0.1
"""Seconds between two readings of a server's processor time and memory …"""

SHORT_SAMPLED_S = 0.01
"""… and in a cell of under ``SHORT_S``."""

SHORT_S = 1.0

TURNS_MIN = 5
"""Fewest counted requests for each connection. Behind the last N requests connections are idle: by that the mean is
under N ÷ throughput, by a tenth at most."""

Quantity = str
"""Quantity that is compared: the name of one of ``judge.cells.QUANTITIES``."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A server under a load of a number of requests. Other requests, which count nowhere, are sent and end before
    them."""

    setting: Setting
    requests: int
    pinned: bool = True
    """True where server and load have a core each; else both are free on all cores."""

    @property
    def warm_up(self) -> int:
        """Requests sent beforehand: one on each connection, and 100 at least."""
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
    above: tuple[Cell, ...]
    below: tuple[Cell, ...]
    quantity: Quantity
    family: str = "headline"
    """Ratios of one family are corrected together."""


@dataclass(frozen=True, slots=True)
class Cells:
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
        known = set(self.cells)
        for ratio in self.ratios:
            if len(ratio.above) != len(ratio.below) or not ratio.above or not known >= {*ratio.above, *ratio.below}:
                raise ValueError(f"{ratio.name}: allowed: as many cells above as below, all of them measured")

    def order(self, number: int) -> tuple[tuple[int, ...], ...]:
        """The starts of a block in order, each as the places of its cells in order."""
        starts: dict[object, list[int]] = {}
        for place, cell in enumerate(self.cells):
            starts.setdefault(cell.start, []).append(place)
        rng = random.Random(f"{self.seed}/cells/{number}")
        shuffled = rng.sample(list(starts.values()), len(starts))
        return tuple(tuple(rng.sample(places, len(places))) for places in shuffled)
