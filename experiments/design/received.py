"""Runs that receivers report on: each on a fresh server, which says at its end what it received, and when.

A **cell** is a setting and for how many seconds its client sends. Its server is asked for nothing else, so that all it
tells is of that run. Pure.
"""

import random
from dataclasses import dataclass

from experiments.design.arms import Arm
from experiments.design.setting import Setting


@dataclass(frozen=True, slots=True)
class ReceivedCell:
    """A setting with one client, how long it sends, and the number of blocks that have it."""

    setting: Setting
    seconds: int
    blocks: int | None = None
    """Number of the first blocks that have it; None for all. A cell that varies little needs fewer."""

    @property
    def arm(self) -> Arm:
        """The same setting as an arm, which is the form that is started."""
        return Arm(self.setting)


@dataclass(frozen=True, slots=True)
class Received:
    """Plan of such runs. Raises ValueError for one that cannot be carried out."""

    study: str
    part: str
    cells: tuple[ReceivedCell, ...]
    blocks: int
    seed: int = 1

    def __post_init__(self) -> None:
        if not self.cells or len({each.setting for each in self.cells}) != len(self.cells):
            raise ValueError("cells of receivers: at least one, each once")
        if min(self.blocks, *(min(each.seconds, each.blocks or 1) for each in self.cells)) < 1:
            raise ValueError("blocks and seconds of receivers: at least one of each")
        for each in self.cells:
            if each.arm.connections != 1:
                raise ValueError(f"{each.setting}: allowed: one client with one connection")

    def order(self, number: int) -> tuple[int, ...]:
        """The cells of a block by their places, in the order in which they run."""
        places = [place for place, each in enumerate(self.cells) if each.blocks is None or number <= each.blocks]
        random.Random(f"{self.seed}/received/{number}").shuffle(places)
        return tuple(places)
