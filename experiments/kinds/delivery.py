"""Runs that receivers report on: each on a fresh server, which says at its end what it received, and when.

A **cell** is a setting and for how many seconds its client sends. Its server is asked for nothing else, so that all it
tells is of that run. Pure.
"""

import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.kinds.block import Block

START_S = 0.5
"""Seconds for a run beside its own, about."""


@dataclass(frozen=True, slots=True)
class DeliveryCell:
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
class DeliveryPlan:
    """Plan of such runs. Raises ValueError for one that cannot be carried out."""

    study: str
    part: str
    cells: tuple[DeliveryCell, ...]
    blocks: int
    seed: int = 1

    def __post_init__(self) -> None:
        if not self.cells or len({each.setting for each in self.cells}) != len(self.cells):
            raise ValueError("a plan of receivers needs at least one cell, and each cell once")
        if min(self.blocks, *(min(each.seconds, each.blocks or 1) for each in self.cells)) < 1:
            raise ValueError("a plan of receivers needs at least one block, and one second in each cell")
        for each in self.cells:
            if each.arm.connections != 1:
                raise ValueError(f"{each.setting}: allowed: one client with one connection")

    @property
    def lasts_s(self) -> float:
        """Seconds for all blocks, about."""
        numbers = range(1, self.blocks + 1)
        return sum(self.cells[place].seconds + START_S for number in numbers for place in self.order(number))

    def order(self, number: int) -> tuple[int, ...]:
        """The cells of a block by their places, in the order in which they run."""
        places = [place for place, each in enumerate(self.cells) if each.blocks is None or number <= each.blocks]
        random.Random(f"{self.seed}/received/{number}").shuffle(places)
        return tuple(places)


@dataclass(frozen=True, slots=True)
class Delivered:
    """One run, as the receiver saw it and as the sender did. Times are nanoseconds, added up."""

    seconds: tuple[int, ...]
    """Messages that came in each whole second since the first."""
    timed: int
    """Messages that the receiver timed: all but the first."""
    answer_ns: int
    """Of those: from when a message had come until its reply was sent."""
    cycle_ns: int
    """Of those: the same from before the receive, so that waiting for the message is in it."""
    answered: int
    """Messages that the sender had a reply to, all but the first; 0 where nothing comes back."""
    response_ns: int
    """Of those: from the send to the whole reply, at the sender."""


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One run of one block. A mean is None where nothing is counted in it."""

    block: int
    cell: DeliveryCell
    received_hz: float
    """Messages a second, mean of the whole seconds."""
    seconds: tuple[int, ...]
    """Messages of each of them."""
    answer_us: float | None
    cycle_us: float | None
    response_us: float | None


def rows(plan: DeliveryPlan, block: Block[Delivered]) -> Iterator[DeliveryRow]:
    """A row for each run."""
    for run in block.runs:
        told = run.seen
        yield DeliveryRow(
            block=block.number,
            cell=plan.cells[run.place],
            received_hz=statistics.fmean(told.seconds),
            seconds=told.seconds,
            answer_us=_mean_us(told.answer_ns, told.timed),
            cycle_us=_mean_us(told.cycle_ns, told.timed),
            response_us=_mean_us(told.response_ns, told.answered),
        )


def _mean_us(total_ns: int, count: int) -> float | None:
    return total_ns / count / 1000 if count else None
