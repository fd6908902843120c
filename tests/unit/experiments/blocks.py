"""Blocks as a sweep would observe them, made from known means: for tests of what is concluded, said and drawn.

``World`` says what is true of the arms. ``blocks`` draws a sweep's slices, and fills each with requests. Their mean is
that truth times lognormal noise of the block and of the slice. The same seed gives the same blocks.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import numpy as np

from clients.load.record.times import Times
from experiments.design.arms import Arm, Comparison, Group
from experiments.design.levels import parsed_mix
from experiments.design.limits import LIMITS
from experiments.design.slots import order, seed_of
from experiments.design.sweep import Slices, Sweep, Windows
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

BESIDE_OTHERS = replace(LIMITS, steal_share=2.0)
"""Limits for a test on real servers: other tests run beside it, and no round of it is left out for them."""


def on_servers(turns: Slices | Windows, *arms: Arm, rounds: int = 1) -> Sweep:
    """A sweep of one group, to be measured on real servers."""
    return Sweep("try", "try", (Group(arms),), (), rounds, (1,), turns=turns, limits=BESIDE_OTHERS)


PAIRS_NEAR_1, PAIRS = 60, 15
"""Fewest pairs of slices in a block: where the ratio is expected within 10 % of 1, and elsewhere."""


def pairs(sweep: Sweep, comparison: Comparison) -> int:
    """Pairs of slices that a block gives a comparison, if none is lost."""
    holding = (each for each in sweep.groups if comparison.above in each.arms and comparison.below in each.arms)
    return sum(group.times * -(-sweep.rounds // group.every) for group in holding)


COUNTED_NS = 20_000_000
"""Counted length of a slice."""

SERVER_SHARE = 0.3
"""Share of a request's time that its server computes."""

ANSWERED = 400
"""Requests of each type in an arm's histogram of a block."""

_WIRE_BYTES = {"sockets": 200}
"""Bytes of a request by transport; 400 for others."""

SPREAD = 0.4
"""Deviation of the logarithm of one request's time."""


@dataclass(frozen=True, slots=True)
class World:
    """The truth of every arm."""

    mean_us: Callable[[Arm, str], float]
    """Mean of a request type."""
    block_noise: float = 0.004
    """Standard deviation of the logarithm of a block's mean."""
    slice_noise: float = 0.03
    """Deviation of a slice, beside that of its block."""
    shared_noise: float = 0.0
    """Deviation that the slices of one appearance of a group share."""
    requests: int | None = 40
    """Counted requests of each type in a slice; None: as many as fill it."""
    cpu_ns: int | None = None
    """The server's processor time for each request; None: ``SERVER_SHARE`` of its time."""
    effective: float = 300.0
    """Independent requests that an arm's requests of a block are worth."""
    errors: Callable[[Arm], int] = lambda _: 0
    """Requests of a block that fail, of each type."""
    client_share: Callable[[Arm], float] = lambda _: 0.4
    """Share of its core that the load takes."""
    windows: Callable[[Arm], tuple[Window, ...]] = lambda _: ()
    stages: Callable[[Arm], Mapping[str, StageSummary]] = lambda _: {}
    """What the servers of an arm stamped, by request type."""
    later: Callable[[Arm], float] = lambda _: 1.0
    """Factor by which an arm is slower in the second half of each block's rounds."""
    pauses: Callable[[Arm], float] = lambda _: 1.0
    """Factor by which the first slice of an arm is slower, in each block."""
    robbed_rounds: int = 0
    """Rounds of each block in which the hypervisor took the cores, 50 ticks in each …"""
    foreign_ticks: int | None = None
    """… or foreign processes did, this number, where it is given."""
    lost: tuple[int, ...] = ()
    """The fates of the first slices of each block."""


def blocks(sweep: Sweep, number: int, world: World, seed: int = 1) -> tuple[Block, ...]:
    """This number of blocks."""
    return tuple(block(sweep, each, world, seed) for each in range(1, number + 1))


def block(sweep: Sweep, number: int, world: World, seed: int = 1, attempt: int = 1) -> Block:
    """One block. It begins ten seconds after the one before, and a second attempt in the middle between them."""
    began = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=10 * number + 5 * attempt - 15)
    rng = random.Random(f"{seed} {number}")
    drift = {arm: rng.gauss(0, world.block_noise) for arm in sweep.arms}
    return Block(
        number=number,
        attempt=attempt,
        started_at=began.isoformat(),
        duration_s=3.0,
        pinned=True,
        calibration_us=2000.0,
        slices=_slices(sweep, (number, attempt), world, drift, rng),
        arms=tuple(_arm(arm, world, drift[arm], rng) for arm in sweep.arms),
        servers=tuple(
            ServerSeen(20, max(arm.connections for arm in sweep.arms if arm.server == server), 40.0)
            for server in sweep.servers
        ),
        rounds=tuple(_round(world, each < world.robbed_rounds) for each in range(sweep.rounds)),
        cores=2,
    )


def _round(world: World, is_robbed: bool) -> RoundSeen:
    if world.foreign_ticks is None:
        return RoundSeen(0.2, 50 * is_robbed)
    return RoundSeen(0.2, 0, world.foreign_ticks * is_robbed)


def stage_summary(wait_us: float, locked: int = 1000, queue_us: float = 5.0) -> StageSummary:
    """Stages of a thousand requests that waited these times for the lock, and for a thread."""
    other = StageTimes(10.0)
    wait, queue = StageTimes(wait_us), StageTimes(queue_us)
    total = StageTimes(30.0 + wait_us + queue_us)
    return StageSummary(1000, locked, 5, queue, other, wait, other, other, total, 0)


def requests_of(arm: Arm) -> tuple[str, ...]:
    """The request types that an arm sends."""
    return tuple(parsed_mix(arm.setting.text("mix")))


def _slices(
    sweep: Sweep, of: tuple[int, int], world: World, drift: Mapping[Arm, float], rng: random.Random
) -> SliceColumns:
    arms, slots = sweep.arms, tuple(order(sweep, seed_of(sweep, *of)))
    fates = [*world.lost, *[KEPT] * (len(slots) - len(world.lost))]
    of_arms = [{name: 1000 * world.mean_us(arm, name) for name in requests_of(arm)} for arm in arms]
    types = dict.fromkeys(name for each in of_arms for name in each)
    counts: dict[str, list[int]] = {name: [] for name in (*types, ALL)}
    sums: dict[str, list[int]] = {name: [] for name in (*types, ALL)}
    busy: list[int] = []
    paused: set[int] = set()
    shared = {
        each: rng.gauss(0, world.shared_noise) if world.shared_noise else 0.0
        for each in dict.fromkeys((turn, each) for turn, each, _ in slots)
    }
    for turn, appearance, place in slots:
        arm = arms[place]
        times = math.exp(drift[arm] + shared[turn, appearance] + rng.gauss(0, world.slice_noise))
        times *= world.later(arm) if turn >= sweep.rounds // 2 else 1.0
        times *= 1.0 if place in paused else world.pauses(arm)
        paused.add(place)
        means_ns = {name: mean * times for name, mean in of_arms[place].items()}
        sent = {name: world.requests or max(1, round(COUNTED_NS / mean)) for name, mean in means_ns.items()}
        own = {name: round(sent[name] * mean) for name, mean in means_ns.items()}
        for name in types:
            counts[name].append(sent.get(name, 0))
            sums[name].append(own.get(name, 0))
        counts[ALL].append(sum(sent.values()))
        sums[ALL].append(sum(own.values()))
        busy.append(round(SERVER_SHARE * sum(own.values())) if world.cpu_ns is None else world.cpu_ns * counts[ALL][-1])
    places = [place for _, _, place in slots]
    return SliceColumns(
        round=[each for each, _, _ in slots],
        appearance=[each for _, each, _ in slots],
        arm=places,
        fate=fates,
        counted_ns=[COUNTED_NS] * len(slots),
        requests=counts[ALL],
        active_ns=[COUNTED_NS] * len(slots),
        server_cpu_ns=busy,
        client_cpu_ns=[round(COUNTED_NS * world.client_share(arms[place])) for place in places],
        wire_bytes=[
            _WIRE_BYTES.get(arms[place].setting.text("transport"), 400) * count
            for place, count in zip(places, counts[ALL], strict=True)
        ],
        counts=counts,
        sums_ns=sums,
    )


def _arm(arm: Arm, world: World, drift: float, rng: random.Random) -> ArmSeen:
    answered = {
        name: _answered(world, world.mean_us(arm, name) * math.exp(drift), arm, rng) for name in requests_of(arm)
    }
    of_all = Times()
    for each in answered.values():
        of_all.merge(each.times)
    errors = {kind: count * len(answered) for each in answered.values() for kind, count in each.errors.items()}
    answered[ALL] = Answered(of_all, {}, errors, sum(each.effective for each in answered.values()))
    return ArmSeen(
        answered=answered,
        span_ns=of_all.sum_ns,
        updates=100 if arm.setting["updater"] else 0,
        windows=world.windows(arm),
        stages=world.stages(arm),
    )


def _answered(world: World, mean_us: float, arm: Arm, rng: random.Random) -> Answered:
    errors = world.errors(arm)
    times = _times(mean_us, rng.getrandbits(32))
    return Answered(times, {}, {"unavailable": errors} if errors else {}, world.effective)


@lru_cache(2_000)
def _times(mean_us: float, seed: int) -> Times:
    """A histogram with this mean, to be read: worlds that differ in few arms share the others' histograms."""
    values = np.random.default_rng(seed).lognormal(0, SPREAD, ANSWERED)
    times = Times()
    times.record((values / values.mean() * mean_us * 1000).astype(np.int64))
    return times
