"""Planted results for the study: a transport of known cost, and a server that meets its predictions."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from experiments.design.arms import Arm
from experiments.design.factors import SQLITE
from experiments.judge.verdicts import Judgement, judge
from experiments.kinds.prediction import Foretold
from experiments.results.observed import Block, Window
from experiments.show.content import Seen
from experiments.studies.pool_size import POOL_SIZE
from experiments.studies.pool_size.design import BUSY, basis, pool_lookups, pool_one, pool_size
from experiments.studies.pool_size.prediction import foretell
from tests.unit.experiments.blocks import World, blocks

SCALE = POOL_SIZE.scales["quick"]

ALONE_US, ALONE_CPU_US = 100.0, 40.0
BUSY_CPU_US = 20.0
WAIT_CPU_US, LATE_US = 25.0, 75.0
COMMIT_CPU_US, COMMIT_US = 100.0, 1000.0

Off = Callable[[Arm], float]
"""Ratio of an arm's throughput to its prediction."""


def never(_: Arm) -> float:
    """No arm is off."""
    return 1.0


@cache
def first() -> Judgement:
    """One client's results with one worker, in three blocks."""
    sweep = pool_one(replace(SCALE, looks=(3,)))
    found = blocks(sweep, 3, World(lambda arm, _: _alone_us(arm), block_noise=0.0, slice_noise=0.0))
    return judge(sweep, [_with_cpu(block, sweep.arms) for block in found])


def _alone_us(arm: Arm) -> float:
    """Response time of an arm that predictions rest on."""
    if arm.connections == BUSY:
        return 900.0
    if arm.setting["store"] == SQLITE:
        return ALONE_US + COMMIT_CPU_US + COMMIT_US
    io_ms = float(str(arm.setting["io_ms"]))
    return ALONE_US + (1000.0 * io_ms + WAIT_CPU_US + LATE_US if io_ms else 0.0)


@cache
def told(arm: Arm) -> Foretold:
    """The prediction for an arm that is written down before the sweep."""
    return foretell(first(), arm.setting)


@cache
def seen(off: Off = never, number: int = 10, slower: float = 1.0) -> Seen:
    """The main part with this number of blocks. ``slower`` is the factor by which the machine is slower in the sweep
    than before it. Blocks do not differ, so that no tail is simulated that was simulated before the sweep."""
    main = _main(off, number, slower)
    after = {"pool_one": first(), "pool_lookups": of_lookups(never, number)}
    return Seen(main, after, foretold=[told(arm) for arm in main.sweep.arms])


@cache
def _main(off: Off, number: int, slower: float) -> Judgement:
    scale = replace(SCALE, foretell=lambda setting: told(Arm(setting)))
    sweep = pool_size(scale)
    bases = {each for arm in sweep.arms for each in basis(arm.setting)}

    def window(arm: Arm) -> tuple[Window, ...]:
        answered_hz = told(replace(arm, copy=0)).throughput_hz * off(arm) / slower
        rate_hz = arm.setting["rate_hz"]
        rate = rate_hz if isinstance(rate_hz, float) else None
        return (Window(rate, rate or answered_hz, answered_hz, 0, 0, None, 0.4),)

    def mean_us(arm: Arm, _: str) -> float:
        if arm in bases:
            return slower * _alone_us(arm)
        return slower * 1e6 * arm.connections / (told(replace(arm, copy=0)).throughput_hz * off(arm))

    world = World(mean_us, block_noise=0.0, slice_noise=0.0, effective=2000.0, windows=window)
    found = blocks(sweep, number, world)
    return judge(sweep, [_with_cpu(_with_threads(block), sweep.arms, slower) for block in found])


@cache
def of_lookups(slower: Callable[[Arm], float], number: int = 10) -> Judgement:
    """The part on Lookups. ``slower`` is the factor by which each arm is slower."""
    sweep = pool_lookups(SCALE)
    flat = World(lambda arm, _: 1000.0 * slower(arm), block_noise=0.002, slice_noise=0.002)
    return judge(sweep, [_with_threads(block) for block in blocks(sweep, number, flat)])


def _with_threads(block: Block) -> Block:
    """Servers with threads enough for the largest pool."""
    return replace(block, servers=[each and replace(each, threads=100) for each in block.servers])


def _with_cpu(block: Block, arms: tuple[Arm, ...], slower: float = 1.0) -> Block:
    """The server's processor time of each slice."""

    def cpu_us(arm: Arm) -> float:
        own_us = BUSY_CPU_US if arm.connections == BUSY else ALONE_CPU_US
        own_us += COMMIT_CPU_US if arm.setting["store"] == SQLITE else 0.0
        return own_us + (WAIT_CPU_US if arm.setting["io_ms"] else 0.0)

    slices = block.slices
    spent = [
        round(1000 * slower * cpu_us(arms[arm]) * count) for arm, count in zip(slices.arm, slices.requests, strict=True)
    ]
    return replace(block, slices=replace(slices, server_cpu_ns=spent))
