"""Delivery runs: a new server receives messages. At its end, the server reports the number and the times of the
messages.

A **cell** is a setting and the number of seconds for which its client sends. Each run has a new server, so the server's
report is on the messages of one run only. The functions are pure.
"""

import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.kinds.block import Block

START_S = 0.5
"""Estimated time for the start and the end of a run, in seconds."""


@dataclass(frozen=True, slots=True)
class DeliveryCell:
    """A setting with one client, and the time in seconds for which the client sends."""

    setting: Setting
    seconds: int
    blocks: int | None = None
    """Number of blocks in which the cell runs, beginning with the first block. None if the cell runs in all blocks. A
    cell with little variation needs fewer blocks."""


@dataclass(frozen=True, slots=True)
class DeliveryPlan:
    """Plan of delivery runs. Raises ValueError for an invalid plan, such as a cell with several connections."""

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
        """Estimated time of all blocks, in seconds."""
        numbers = range(1, self.blocks + 1)
        return sum(self.cells[place].seconds + START_S for number in numbers for place in self.order(number))

    def order(self, number: int) -> tuple[int, ...]:
        """Indices in ``cells``, one for each cell that runs in block ``number``, in random order."""
        places = [place for place, each in enumerate(self.cells) if each.blocks is None or number <= each.blocks]
        random.Random(f"{self.seed}/received/{number}").shuffle(places)
        return tuple(places)


@dataclass(frozen=True, slots=True)
class Delivered:
    """Reports of the receiver and the sender on one run. Times are sums in nanoseconds."""

    seconds: tuple[int, ...]
    """Number of received messages in each whole second after the first message."""
    timed: int
    """Number of timed messages at the receiver, without the first message. 0 if the client sends without a rate: then
    the receiver times only the first message."""
    answer_ns: int
    """Sum of times over the timed messages. Each time begins when the message arrives, and ends when its reply was
    sent."""
    cycle_ns: int
    """Sum of times over the timed messages. Each time begins with the receive call, which waits for the message, and
    ends when the reply was sent."""
    answered: int
    """Number of messages with a reply, without the first message. 0 for a pattern without replies."""
    response_ns: int
    """Sum of times over the answered messages. Each time begins with the send, and ends when the sender has the whole
    reply."""


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """Results of one run in one block. A mean is None if there are no messages."""

    block: int
    cell: DeliveryCell
    received_hz: float
    """Received messages per second: the mean over the whole seconds."""
    seconds: tuple[int, ...]
    """Number of received messages in each whole second."""
    # means over messages, in microseconds; ``Delivered`` has the sums and explains the times
    answer_us: float | None
    cycle_us: float | None
    response_us: float | None


def rows(plan: DeliveryPlan, block: Block[Delivered]) -> Iterator[DeliveryRow]:
    """Rows of a block: one row for each run."""
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
