"""Planted results for the study: mean times by arm, the clients' processor share, cold runs."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from clients.load.record.cold_run import ColdRun
from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.judge.cold import ColdJudged, judged
from experiments.judge.verdicts import Judgement, judge
from experiments.results.observed import ALL, Block, Window
from experiments.show.content import Seen
from experiments.studies.greeter.design import LABELS, ONE, TWO, asynchronous, cold, greeter
from experiments.studies.study import Scale
from tests.unit.experiments.apart_seen import cold_block
from tests.unit.experiments.blocks import blocks
from tests.unit.experiments.studies.stock.judgements import planted

SCALE = Scale(rounds=3, looks=(10, 14), clients=(1, 2))

ALONE = Scale(rounds=3, looks=(10, 14), clients=(1, 2), peers=frozenset())
"""Scale without the peer in C++."""

CPP, PYTHON = LABELS

MEANS_US: Mapping[Setting, float] = {
    ONE[CPP]: 100.0,
    TWO[CPP]: 150.0,
    asynchronous(CPP): 100.0,
    asynchronous(CPP, 10): 200.0,
    ONE[PYTHON]: 300.0,
    TWO[PYTHON]: 450.0,
    asynchronous(PYTHON): 390.0,
    asynchronous(PYTHON, 10): 1200.0,
}
"""Two clients have 1.5 times the latency: each has 0.67 of the rate, and the server 1.33 times."""

CPU_SHARE = 0.4
"""Share of the wall clock that the clients compute."""

FIRST_US, CONNECT_US, REST_US = 500.0, 1500.0, 100.0


@cache
def seen(
    *means_us: tuple[Setting, float],
    number: int = 10,
    scale: Scale = SCALE,
    cpu_share: float = CPU_SHARE,
    first_us: float = FIRST_US,
    connect_us: float = CONNECT_US,
) -> Seen:
    """The part with this number of blocks, and as many of cold runs. ``means_us``: means of arms that differ from
    ``MEANS_US``."""
    main = _judged(means_us, number, scale, cpu_share)
    return Seen(main, runs=(rows(scale, number, first_us, connect_us),))


@cache
def _judged(means_us: tuple[tuple[Setting, float], ...], number: int, scale: Scale, cpu_share: float) -> Judgement:
    """The sweep of these means: tests of other things share it."""
    means, sweep = dict(MEANS_US) | dict(means_us), greeter(scale)
    of_arms = {arm: means.get(arm.setting, 250.0) for arm in sweep.arms}
    world = planted(of_arms, windows={arm: [_window(arm, mean_us)] for arm, mean_us in of_arms.items()})
    return judge(sweep, [_with_clocks(block, sweep.arms, cpu_share) for block in blocks(sweep, number, world)])


def _window(arm: Arm, mean_us: float) -> Window:
    """A window, and the rate that each client of a peer's program reports."""
    clients, rate_hz = arm.setting.whole("clients"), 1e6 * arm.setting.whole("in_flight") / mean_us
    own = [rate_hz] * clients if arm.setting["client"] == "peer" else []
    return Window(None, rate_hz * clients, rate_hz * clients, 0, 0, None, 0.1, clients_hz=own)


def _with_clocks(block: Block, arms: tuple[Arm, ...], cpu_share: float) -> Block:
    """The clocks that belong to a block's times: the wall clock of calls under way at once, and the clients' time."""
    at_once = [arm.connections * arm.setting.whole("in_flight") for arm in arms]
    slices = block.slices
    wall_ns = [round(total / at_once[place]) for total, place in zip(slices.sums_ns[ALL], slices.arm, strict=True)]
    cpu_ns = [round(cpu_share * each) for each in wall_ns]
    return replace(block, slices=replace(slices, active_ns=wall_ns, client_cpu_ns=cpu_ns))


def rows(scale: Scale, number: int, first_us: float, connect_us: float) -> ColdJudged:
    """Runs in which the calls behind the first take ``REST_US``; Python's and our client's take thrice as long."""
    plan, found = cold(scale), []
    for block in range(1, number + 1):
        runs = []
        for place, cell in enumerate(plan.cells):
            ns = (1000 if cell.setting == ONE[CPP] else 3000) * (1 + block / 1000)
            times_ns = (round(connect_us * ns), round(first_us * ns), round(999 * REST_US * ns))
            runs.append((place, ColdRun(*times_ns, 999, {"OK": 1000}, {})))
        found.append(cold_block(block, runs))
    return judged(plan, found)
