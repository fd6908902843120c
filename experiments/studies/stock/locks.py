"""Time for which requests wait for the catalog's lock, by locking strategy and request type.

The servers stamp the stages of every request, which costs about 1 µs a request. The wait of a block is the mean over
the block's requests. The wait of several blocks is the mean of the blocks' waits. Texts also have the least and the
greatest wait of a block. Waits have no verdict. A wait ends when the thread runs again. So a wait includes the time of
other threads and programs that ran meanwhile. Blocks that a gate refuses for an arm are left out. The functions are
pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from experiments.design.arms import Arm
from experiments.judge import ratios
from experiments.judge.verdicts import Judgement
from experiments.show.numbers import counted, number
from experiments.studies.stock.sweeps import clients_of
from experiments.studies.stock.wording import counted_stages, label

MUTEX = "mutex"

REQUESTS = ("lookup", "trade")

CAVEAT = (
    "A wait includes the time of other threads that ran meanwhile, and stamping costs about 1 µs a request. Brackets: "
    "the least and the greatest mean of a block. Waits have no verdict."
)


@dataclass(frozen=True, slots=True)
class LockWait:
    """Waits of one request type for the lock, on one arm (a server under a load): a mean for each block. At least one
    block has a mean."""

    arm: Arm
    request: str
    waits_us: tuple[float, ...]
    shares: Mapping[int, float]
    """Mean wait of each block ÷ mean latency of the block, by the block's number."""
    locked: bool
    """True where at least one request took a lock."""

    @property
    def locking(self) -> str:
        """Name of the locking strategy."""
        return self.arm.setting.text("locking")

    @property
    def wait_us(self) -> float:
        """Mean wait over the blocks, in µs."""
        return fmean(self.waits_us)

    @property
    def share(self) -> float:
        """Share of the latency that the wait takes, as a mean over the blocks, from 0 to 1."""
        return fmean(self.shares.values())

    @property
    def numbers(self) -> str:
        """Text of the numbers: ``0.22 µs (0.19 to 0.25 in 3 blocks), 0.15 % of its latency``."""
        least, greatest = number(min(self.waits_us)), number(max(self.waits_us))
        many = counted(len(self.waits_us), "block")
        spread = many if len(self.waits_us) == 1 else f"{least} to {greatest} in {many}"
        return f"{number(self.wait_us)} µs ({spread}), {number(100 * self.share)} % of its latency"


def lock_waits(judgement: Judgement) -> tuple[LockWait, ...]:
    """Waits of every arm and request type for which the server stamped stages."""
    found = (_of(judgement, arm, request) for arm in judgement.sweep.arms for request in REQUESTS)
    return tuple(each for each in found if each is not None)


def lock_details(judgement: Judgement) -> tuple[str, ...]:
    """Sentences on three things: the waits for the mutex on each transport, the longest wait under every other
    strategy, and the largest share of the latency that a wait takes.
    """
    waits = lock_waits(judgement)
    if not waits:
        return ("No lock wait was stamped.",)
    return (*_mutex(waits), *_others(waits), *_largest(waits), CAVEAT)


def trade_wait(judgement: Judgement) -> Iterator[str]:
    """Sentence on a Trade's wait for the mutex on gRPC. Empty where no wait was stamped."""
    if (wait := mutex_wait(judgement, "trade")) is not None:
        where = f"With {clients_of(wait.arm.connections)} on gRPC a Trade waits"
        yield f"{where} {number(wait.wait_us)} µs for the lock, {number(100 * wait.share)} % of its latency."


def mutex_wait(judgement: Judgement, request: str) -> LockWait | None:
    """Wait of a request type for the mutex on gRPC. None where no wait was stamped."""
    own = (each for each in lock_waits(judgement) if (each.locking, each.request) == (MUTEX, request))
    return next((each for each in own if each.arm.setting["transport"] == "grpc"), None)


def _of(judgement: Judgement, arm: Arm, request: str) -> LockWait | None:
    sweep, stamped = judgement.sweep, counted_stages(judgement, arm, request)
    means = ((each.number, ratios.arm_mean_us(sweep, each, sweep.places[arm], request)) for each in judgement.blocks)
    means_us = {number: mean_us for number, mean_us in means if mean_us is not None}
    waits_us = {number: each.lock_wait.mean_us for number, each in stamped.items() if number in means_us}
    shares = {number: wait_us / means_us[number] for number, wait_us in waits_us.items()}
    locked = any(stamped[number].locked for number in waits_us)
    return LockWait(arm, request, tuple(waits_us.values()), shares, locked) if waits_us else None


def _mutex(waits: tuple[LockWait, ...]) -> Iterator[str]:
    for wait in waits:
        if wait.locking == MUTEX:
            where = f"on {label(wait.arm)} with {clients_of(wait.arm.connections)}"
            yield f"A {wait.request.capitalize()} waits for the mutex {where}: {wait.numbers}."


def _others(waits: tuple[LockWait, ...]) -> Iterator[str]:
    """Sentences, one for each strategy under which a request took a lock, without the mutex. A sentence has the longest
    wait of a request type, and names the request types that take no lock.
    """
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
            f"The largest share of the latency: {number(100 * largest.share)} %, for a {largest.request.capitalize()} "
            f"under {largest.locking} on {label(largest.arm)}."
        )
