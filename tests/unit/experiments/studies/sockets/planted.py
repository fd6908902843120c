"""Planted results for the study: means by API, and receivers' reports."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from experiments.design.arms import Arm
from experiments.judge.delivery import DeliveryJudged
from experiments.judge.verdicts import Judgement, judge
from experiments.kinds.delivery import DeliveryRow
from experiments.show.content import Seen
from experiments.studies.sockets.design import APIS, received, sockets
from experiments.studies.study import Scale
from tests.unit.experiments.blocks import World, blocks

SCALE = Scale(rounds=5, looks=(10, 14), clients=(1,))

MEANS_US = {"berkeley": 100.0, "zeromq": 200.0, "nanomsg": 150.0, "nng": 180.0}

RECEIVED_HZ = {"berkeley": 20_000.0, "zeromq": 12_000.0, "nanomsg": 8_000.0, "nng": 9_000.0}

CYCLE_US = 33_000.0


def seen(
    means_us: Mapping[str, float] = MEANS_US, received_hz: Mapping[str, float] = RECEIVED_HZ, number: int = 10
) -> Seen:
    """A judged sweep with these means by API, 100 KB half as slow again; and the receivers' reports."""
    return Seen(_judged(tuple(means_us.items()), number), runs=(DeliveryJudged(rows(received_hz)),))


def of_world(world: World, scale: Scale = SCALE) -> Seen:
    """The study of another world."""
    sweep = sockets(scale)
    return Seen(judge(sweep, blocks(sweep, 10, world)), runs=(DeliveryJudged(rows(RECEIVED_HZ, scale)),))


@cache
def _judged(means_us: tuple[tuple[str, float], ...], number: int) -> Judgement:
    """The sweep of these means: tests of claims on other things share it."""
    of, sweep = dict(means_us), sockets(SCALE)

    def mean_us(arm: Arm, _: str) -> float:
        return of[arm.setting.text("transport")] * (1.5 if arm.setting["size"] == 100_000 else 1.0)

    return judge(sweep, blocks(sweep, number, World(mean_us, block_noise=0.01, slice_noise=0.02, effective=2000.0)))


def with_rows(of: Seen, rows_: Sequence[DeliveryRow], is_whole: bool = True) -> Seen:
    """The study with other delivery reports."""
    return replace(of, runs=(DeliveryJudged(rows_, is_whole),))


def rows(received_hz: Mapping[str, float], scale: Scale = SCALE) -> tuple[DeliveryRow, ...]:
    """A row for each cell and block: the throughputs vary by 2 % from block to block."""
    plan, found = received(scale), []
    for block in range(1, plan.blocks + 1):
        for place in plan.order(block):
            cell = plan.cells[place]
            api = cell.setting.text("transport")
            hz = received_hz.get(api, 1.0) * (1 + 0.02 * (-1) ** (block + APIS.index(api) // 2))
            one_way = cell.setting["pattern"] == "one-way"
            times = (None, None, None) if one_way else (20.0, CYCLE_US, MEANS_US[api])
            found.append(DeliveryRow(block, cell, hz, (round(hz),) * cell.seconds, *times))
    return tuple(found)
