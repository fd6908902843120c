"""Cold runs: a number of calls of a fresh client process on a fresh connection, several runs a block, in random order.

A **cell** is a setting and a number of calls N. What is paid once, for connecting and for the first call, is spread
over the N of a run; so a mean over all of a run's calls falls with N as a + b ÷ N, though no call has become faster. A
block starts its servers afresh, and warms them by calls that count nowhere: only the client is cold. Pure.
"""

import random
from dataclasses import dataclass

from experiments.design.arms import Arm, ServerKey
from experiments.design.setting import Setting
from experiments.design.sweep import SERVERS_MAX


@dataclass(frozen=True, slots=True)
class ColdCell:
    """A setting with one client, the number of calls in a run, and the number of runs in a block.

    A mean of few calls varies more, and costs less: such a cell wants more runs.
    """

    setting: Setting
    calls: int
    runs: int = 1

    @property
    def arm(self) -> Arm:
        """The same setting as an arm, which is the form that is started."""
        return Arm(self.setting)


@dataclass(frozen=True, slots=True)
class Cold:
    """Plan of cold runs. Raises ValueError for one that cannot be carried out."""

    study: str
    part: str
    cells: tuple[ColdCell, ...]
    blocks: int
    seed: int = 1
    warm_up_calls: int = 200
    """Calls of an uncounted run on each server, before the others."""

    def __post_init__(self) -> None:
        if not self.cells or len({(each.setting, each.calls) for each in self.cells}) != len(self.cells):
            raise ValueError("cold cells: at least one, each once")
        if len(self.servers) > SERVERS_MAX:
            raise ValueError(f"{len(self.servers)} servers in a block, allowed: {SERVERS_MAX}")
        if min(self.blocks, self.warm_up_calls, *(min(each.calls, each.runs) for each in self.cells)) < 1:
            raise ValueError("cold runs, blocks and calls: at least one of each")
        for each in self.cells:
            of = each.setting
            if each.arm.connections != 1 or of["connection"] != "kept-alive" or of["rate_hz"] or of["updater"]:
                raise ValueError(f"{of}: allowed: one client, one kept-alive connection, a closed loop, no updater")

    @property
    def servers(self) -> tuple[ServerKey, ...]:
        """Every server process of a block once."""
        return tuple(dict.fromkeys(each.arm.server for each in self.cells))

    def order(self, number: int) -> tuple[int, ...]:
        """The places of a block's cells, each as often as it has runs, in the order in which they run."""
        places = [place for place in range(len(self.cells)) for _ in range(self.cells[place].runs)]
        random.Random(f"{self.seed}/cold/{number}").shuffle(places)
        return tuple(places)
