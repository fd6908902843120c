"""Runs that receivers report on: each on a fresh server, which says at its end what it received, and when.

A **cell** is a setting and the number of seconds for which its client sends. Nothing else is sent to its server, so
that the server's report is of that run alone. Pure.
"""

import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.kinds.block import Block

START_S = 0.5
"""Seconds, about, for the rest of a run: its start and its end."""


@dataclass(frozen=True, slots=True)
class DeliveryCell:
    """A setting with one client, the seconds of its sends, and the number of blocks that have the cell."""

    setting: Setting
    seconds: int
    blocks: int | None = None
    """Number of the first blocks that have the cell; None: all blocks. A cell that varies little needs fewer."""


@dataclass(frozen=True, slots=True)
class DeliveryPlan:
    """Plan of delivery runs. Raises ValueError for a plan that cannot be carried out."""

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
            if Arm(each.setting).connections != 1:
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
    """One run, as the receiver and the sender report it. Times are sums in nanoseconds."""

    seconds: tuple[int, ...]
    """Messages that came in each whole second after the first message."""
    timed: int
    """Messages that the receiver timed: all but the first."""
    answer_ns: int
    """Sum over the timed messages: from the arrival of a message until its reply was sent."""
    cycle_ns: int
    """The same sum from before each receive, so that the wait for the message is in it."""
    answered: int
    """Messages to which the sender got a reply, without the first; 0 where no replies come back."""
    response_ns: int
    """Sum over these messages, at the sender: from the send until the whole reply had come."""


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One run of one block. A mean is None where it has nothing to count."""

    block: int
    cell: DeliveryCell
    received_hz: float
    """Messages a second: the mean of the whole seconds."""
    seconds: tuple[int, ...]
    """Messages of each whole second."""
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
