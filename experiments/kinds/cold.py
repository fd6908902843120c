"""Cold runs: a new client process makes N calls on a new connection. The functions are pure.

A **cell** is a setting and a number of calls N. A block has several runs of each cell, in random order. A run connects
once, and its first call is slow. So the mean time over the N calls of a run is a + b ÷ N: a is the time of a later
call, and b is the extra time of the first call. With a larger N the mean is smaller, although no call is faster. A
block starts new servers, and warms up each server with calls that do not count. So only the client is cold.
"""

import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from clients.load.record.cold_run import ColdRun
from experiments.design.arms import Arm, ServerKey
from experiments.design.setting import Setting
from experiments.design.sweep import SERVERS_MAX
from experiments.kinds.block import Block
from experiments.peers import PEER_CLIENT

BLOCK_S, RUN_S, PEER_RUN_S, CALL_S = 3.0, 0.4, 0.04, 1e-4
"""Estimated times in seconds. ``BLOCK_S``: the start of a block's servers. ``RUN_S``: a process of our client, without
its calls. ``PEER_RUN_S``: a process of a peer's client, without its calls. ``CALL_S``: one call."""


@dataclass(frozen=True, slots=True)
class ColdCell:
    """A setting with one client, the number of calls of a run, and the number of runs in a block.

    A run of few calls is shorter, but its mean varies more. So a cell with few calls has more runs.
    """

    setting: Setting
    calls: int
    runs: int = 1


@dataclass(frozen=True, slots=True)
class ColdPlan:
    """Plan of cold runs. Raises ValueError for an invalid plan, such as a cell with several connections."""

    study: str
    part: str
    cells: tuple[ColdCell, ...]
    blocks: int
    seed: int = 1
    warm_up_calls: int = 200
    """Number of calls that warm up each server before the first run."""

    def __post_init__(self) -> None:
        if not self.cells or len({(each.setting, each.calls) for each in self.cells}) != len(self.cells):
            raise ValueError("cold cells: at least one, each once")
        if len(self.servers) > SERVERS_MAX:
            raise ValueError(f"{len(self.servers)} servers in a block, allowed: {SERVERS_MAX}")
        if min(self.blocks, self.warm_up_calls, *(min(each.calls, each.runs) for each in self.cells)) < 1:
            raise ValueError("cold runs, blocks and calls: at least one of each")
        for each in self.cells:
            of = each.setting
            if Arm(of).connections != 1 or of["connection"] != "kept-alive" or of["rate_hz"] or of["updater"]:
                raise ValueError(f"{of}: allowed: one client, one kept-alive connection, a closed loop, no updater")

    @property
    def servers(self) -> tuple[ServerKey, ...]:
        """Keys of the server processes of a block. Each key occurs once."""
        return tuple(dict.fromkeys(Arm(each.setting).server for each in self.cells))

    @property
    def lasts_s(self) -> float:
        """Estimated time of all blocks, in seconds."""
        return self.blocks * (BLOCK_S + sum(map(_lasts_s, self.cells)))

    def order(self, number: int) -> tuple[int, ...]:
        """Indices in ``cells``, one for each run of block ``number``, in random order. A cell with several runs occurs
        several times."""
        places = [place for place in range(len(self.cells)) for _ in range(self.cells[place].runs)]
        random.Random(f"{self.seed}/cold/{number}").shuffle(places)
        return tuple(places)


def _lasts_s(cell: ColdCell) -> float:
    start_s = PEER_RUN_S if cell.setting["client"] == PEER_CLIENT else RUN_S
    return cell.runs * (start_s + cell.calls * CALL_S)


@dataclass(frozen=True, slots=True)
class ColdRow:
    """Results of one cell in one block. Times are in microseconds: means over the runs in which all calls were
    answered."""

    block: int
    cell: ColdCell
    runs: int
    errors: int
    """Number of calls without a valid reply, in all runs of the cell. A run with such a call does not count in the
    means."""
    connect_us: float
    first_call_us: float
    rest_us_mean: float | None
    """Mean time of the calls after the first call. None if a run has only one call."""
    mean_us: float
    """Mean time of all calls of a run, including the first call."""
    with_connect_us: float
    """Mean time of all calls of a run, including the time of connecting."""


def rows(plan: ColdPlan, block: Block[ColdRun]) -> Iterator[ColdRow]:
    """Rows of a block: one row for each cell that has at least one run in which all calls were answered."""
    for place, cell in enumerate(plan.cells):
        own = [run.seen for run in block.runs if run.place == place]
        whole = [each for each in own if not each.errors and each.rest == cell.calls - 1]
        first_ns = [each.first_ns for each in whole if each.first_ns is not None]
        if not first_ns:
            continue
        connect_us = statistics.fmean(each.connect_ns for each in whole) / 1000
        first_us = statistics.fmean(first_ns) / 1000
        rest_us = statistics.fmean(each.rest_ns for each in whole) / 1000
        yield ColdRow(
            block=block.number,
            cell=cell,
            runs=len(whole),
            errors=sum(sum(each.errors.values()) for each in own),
            connect_us=connect_us,
            first_call_us=first_us,
            rest_us_mean=rest_us / (cell.calls - 1) if cell.calls > 1 else None,
            mean_us=(first_us + rest_us) / cell.calls,
            with_connect_us=(connect_us + first_us + rest_us) / cell.calls,
        )
