"""Cost of waiting for the catalog's lock: from the stages that servers stamped, by strategy and request type.

A block's wait is the mean over its requests. For several blocks, the mean of these waits is told, with the least and
the greatest. No verdict is asked of waits. A wait ends when the thread runs again. So it includes the time of other
threads and programs that ran meanwhile. Stamping costs about 1 µs a request. Blocks that a gate refuses for an arm are
left out. Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from experiments.design.arms import Arm
from experiments.judge import ratios
from experiments.judge.gates import arm_refusals
from experiments.judge.verdicts import Judgement
from experiments.show.numbers import counted, number
from experiments.studies.stock.sweeps import clients_of
from experiments.studies.stock.wording import label

MUTEX = "mutex"

REQUESTS = ("lookup", "trade")

CAVEAT = (
    "A wait also holds what else ran meanwhile, and stamping it costs about 1 µs. "
    "Brackets: the least and the greatest block; no verdict is asked of waits."
)


@dataclass(frozen=True, slots=True)
class LockWait:
    """Waits of one request type under one strategy: a value for each block; at least one block."""

    arm: Arm
    request: str
    waits_us: tuple[float, ...]
    shares: Mapping[int, float]
    """Shares of the mean latency of the same block, by the blocks' numbers."""
    locked: bool
    """True where any of the requests took a lock."""

    @property
    def locking(self) -> str:
        """Name of the strategy."""
        return self.arm.setting.text("locking")

    @property
    def wait_us(self) -> float:
        """Mean wait of the blocks."""
        return sum(self.waits_us) / len(self.waits_us)

    @property
    def share(self) -> float:
        """Mean share of the blocks."""
        return sum(self.shares.values()) / len(self.shares)

    @property
    def numbers(self) -> str:
        """Words for the numbers: ``0.22 µs (0.19 to 0.25 in 3 blocks), 0.15 % of its latency``."""
        least, greatest = number(min(self.waits_us)), number(max(self.waits_us))
        many = counted(len(self.waits_us), "block")
        spread = many if len(self.waits_us) == 1 else f"{least} to {greatest} in {many}"
        return f"{number(self.wait_us)} µs ({spread}), {number(100 * self.share)} % of its latency"


def lock_waits(judgement: Judgement) -> tuple[LockWait, ...]:
    """Every arm and request type that has stamped stages."""
    found = (_of(judgement, arm, request) for arm in judgement.sweep.arms for request in REQUESTS)
    return tuple(each for each in found if each is not None)


def lock_details(judgement: Judgement) -> tuple[str, ...]:
    """Sentences on the mutex on each transport, then on the larger wait under every other strategy, then on the largest
    wait."""
    waits = lock_waits(judgement)
    if not waits:
        return ("No lock wait was stamped.",)
    return (*_mutex(waits), *_others(waits), *_largest(waits), CAVEAT)


def trade_wait(judgement: Judgement) -> Iterator[str]:
    """Sentence on a Trade's wait for the mutex on gRPC, where it was stamped."""
    for wait in lock_waits(judgement):
        if (wait.locking, wait.request, wait.arm.setting["transport"]) == (MUTEX, "trade", "grpc"):
            where = f"With {clients_of(wait.arm.connections)} on gRPC a Trade waits"
            yield f"{where} {number(wait.wait_us)} µs for the lock, {number(100 * wait.share)} % of its latency."


def _of(judgement: Judgement, arm: Arm, request: str) -> LockWait | None:
    sweep, place = judgement.sweep, judgement.sweep.arms.index(arm)
    waits, shares, locked = [], {}, 0
    for block in judgement.blocks:
        stages = block.arms[place].stages.get(request)
        latency_us = ratios.arm_mean_us(sweep, block, place, request)
        if stages is None or latency_us is None or any(arm_refusals(sweep, block, arm)):
            continue
        waits.append(stages.lock_wait.mean_us)
        shares[block.number] = stages.lock_wait.mean_us / latency_us
        locked += stages.locked
    return LockWait(arm, request, tuple(waits), shares, locked > 0) if waits else None


def _mutex(waits: tuple[LockWait, ...]) -> Iterator[str]:
    for wait in waits:
        if wait.locking == MUTEX:
            where = f"on {label(wait.arm)} with {clients_of(wait.arm.connections)}"
            yield f"A {wait.request.capitalize()} waits for the mutex {where}: {wait.numbers}."


def _others(waits: tuple[LockWait, ...]) -> Iterator[str]:
    """Sentences on each other strategy, by the request type that waits longer."""
    for locking in dict.fromkeys(wait.locking for wait in waits if wait.locking != MUTEX):
        own = [wait for wait in waits if wait.locking == locking]
        longest = max(own, key=lambda wait: wait.wait_us)
        free = "".join(f" A {wait.request.capitalize()} takes no lock." for wait in own if not wait.locked)
        if longest.locked:
            yield f"Under {locking}, a {longest.request.capitalize()} waits: {longest.numbers}.{free}"


def _largest(waits: tuple[LockWait, ...]) -> Iterator[str]:
    largest = max(waits, key=lambda wait: wait.share)
    if largest.locked:
        yield (
            f"The largest share of all: {number(100 * largest.share)} %, a {largest.request.capitalize()} under "
            f"{largest.locking} on {label(largest.arm)}."
        )
