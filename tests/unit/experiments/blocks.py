"""Blocks as a sweep would observe them, made from known means: for tests of what is concluded, said and drawn.

``World`` says what is true of the arms; ``blocks`` draws a sweep's slices, and fills each with requests whose mean is
that truth times lognormal noise of its block and of its slice. The same seed gives the same blocks.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from clients.load.record.times import Times
from experiments.design.arms import Arm
from experiments.design.factors import parsed_mix
from experiments.design.slots import order
from experiments.design.sweep import Sweep
from experiments.results.observed import (
    ALL,
    KEPT,
    Answered,
    ArmSeen,
    Block,
    RoundSeen,
    ServerSeen,
    SliceColumns,
    Window,
)
from experiments.results.stages import StageSummary, StageTimes

COUNTED_NS = 20_000_000
"""Of a slice."""

STAGES = {"queue_wait": 0.3, "preparation": 0.2, "lock_wait": 0.1, "service": 0.25, "reply": 0.15, "total": 1.0}
"""Shares of the time in the server."""

ANSWERED = 400
"""Requests of each type in an arm's histogram of a block."""

SPREAD = 0.4
"""Of the logarithm of one request's time."""


def _none(_: Arm) -> int:
    return 0


def _unlimited(_: Arm) -> float:
    return 0.4


@dataclass(frozen=True, slots=True)
class World:
    """What is true of every arm."""

    mean_us: Callable[[Arm, str], float]
    """Of a request type."""
    block_noise: float = 0.004
    """Standard deviation of the logarithm of a block's mean."""
    slice_noise: float = 0.03
    """The same of a slice's, beside its block's."""
    requests: int = 40
    """Counted in a slice, of each request type."""
    effective: float = 300.0
    """Independent requests that an arm's requests of a block are worth."""
    errors: Callable[[Arm], int] = _none
    """Requests of a block that fail, of each type."""
    client_share: Callable[[Arm], float] = _unlimited
    """Of the load side's core."""
    answered_hz: Callable[[Arm], float] | None = None
    """Replies a second in the windows of an arm that has a rate; None: all that were due."""
    stages: bool = False
    """Whether servers stamped their requests."""
    robbed_rounds: int = 0
    """Rounds of each block in which the hypervisor took the cores."""
    lost: tuple[int, ...] = ()
    """The fates of the first slices of each block."""


def blocks(sweep: Sweep, number: int, world: World, seed: int = 1) -> tuple[Block, ...]:
    """So many blocks."""
    return tuple(block(sweep, each, world, seed) for each in range(1, number + 1))


def block(sweep: Sweep, number: int, world: World, seed: int = 1) -> Block:
    """One block."""
    rng = random.Random(f"{seed} {number}")
    drift = {arm: rng.gauss(0, world.block_noise) for arm in sweep.arms}
    return Block(
        number=number,
        attempt=1,
        started_at="2026-01-01T00:00:00+00:00",
        duration_s=3.0,
        pinned=True,
        calibration_us=2000.0,
        slices=_slices(sweep, number, world, drift, rng),
        arms=tuple(_arm(arm, world, drift[arm], rng) for arm in sweep.arms),
        servers=tuple(
            ServerSeen(10, max(arm.connections for arm in sweep.arms if arm.server == server), 40.0, 2.0)
            for server in sweep.servers
        ),
        rounds=tuple(RoundSeen(0.2, 50 * (each < world.robbed_rounds)) for each in range(sweep.rounds)),
        cores=2,
    )


def requests_of(arm: Arm) -> tuple[str, ...]:
    """The request types that an arm sends."""
    return tuple(parsed_mix(arm.setting.text("mix")))


def _slices(sweep: Sweep, number: int, world: World, drift: Mapping[Arm, float], rng: random.Random) -> SliceColumns:
    slots = tuple(order(sweep, f"{sweep.seed} {number}"))
    fates = [*world.lost, *[KEPT] * (len(slots) - len(world.lost))]
    types = dict.fromkeys(name for arm in sweep.arms for name in requests_of(arm))
    counts: dict[str, list[int]] = {name: [] for name in (*types, ALL)}
    sums: dict[str, list[int]] = {name: [] for name in (*types, ALL)}
    busy: list[int] = []
    for _, _, place in slots:
        arm = sweep.arms[place]
        noise = drift[arm] + rng.gauss(0, world.slice_noise)
        own = {
            name: round(world.requests * 1000 * world.mean_us(arm, name) * np.exp(noise)) for name in requests_of(arm)
        }
        for name in types:
            counts[name].append(world.requests if name in own else 0)
            sums[name].append(own.get(name, 0))
        counts[ALL].append(world.requests * len(own))
        sums[ALL].append(sum(own.values()))
        busy.append(round(0.3 * sum(own.values())))
    arms = [place for _, _, place in slots]
    return SliceColumns(
        round=[each for each, _, _ in slots],
        appearance=[each for _, each, _ in slots],
        arm=arms,
        fate=fates,
        counted_ns=[COUNTED_NS] * len(slots),
        requests=counts[ALL],
        active_ns=[COUNTED_NS] * len(slots),
        server_cpu_ns=busy,
        client_cpu_ns=[round(COUNTED_NS * world.client_share(sweep.arms[place])) for place in arms],
        wire_bytes=[200 * count for count in counts[ALL]],
        counts=counts,
        sums_ns=sums,
    )


def _arm(arm: Arm, world: World, drift: float, rng: random.Random) -> ArmSeen:
    answered = {name: _answered(world, world.mean_us(arm, name) * np.exp(drift), arm, rng) for name in requests_of(arm)}
    of_all = Times()
    for each in answered.values():
        of_all.merge(each.times)
    errors = {kind: count * len(answered) for each in answered.values() for kind, count in each.errors.items()}
    answered[ALL] = Answered(of_all, {}, errors, sum(each.effective for each in answered.values()))
    return ArmSeen(
        answered=answered,
        span_ns=of_all.sum_ns,
        updates=100 if arm.setting["updater"] else 0,
        windows=_windows(arm, world),
        stages={name: _stages(world, arm, name) for name in answered} if world.stages else {},
    )


def _answered(world: World, mean_us: float, arm: Arm, rng: random.Random) -> Answered:
    values = np.random.default_rng(rng.getrandbits(32)).lognormal(0, SPREAD, ANSWERED)
    times = Times()
    times.record((values / values.mean() * mean_us * 1000).astype(np.int64))
    errors = world.errors(arm)
    return Answered(times, {}, {"unavailable": errors} if errors else {}, world.effective)


def _windows(arm: Arm, world: World) -> tuple[Window, ...]:
    rate_hz = arm.setting["rate_hz"]
    if not isinstance(rate_hz, int | float):
        return ()
    answered_hz = world.answered_hz(arm) if world.answered_hz else float(rate_hz)
    return (Window(float(rate_hz), float(rate_hz), answered_hz, 0, 0, 20.0),)


def _stages(world: World, arm: Arm, request: str) -> StageSummary:
    names = requests_of(arm) if request == ALL else (request,)
    total = 0.6 * sum(world.mean_us(arm, name) for name in names) / len(names)
    times = {stage: StageTimes(total * share, total * share, None) for stage, share in STAGES.items()}
    return StageSummary(count=1000, locked=1000, threads=5, violations=0, violation_share=0.0, **times)
