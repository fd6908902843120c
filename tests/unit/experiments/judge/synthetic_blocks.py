"""Blocks with a known truth: every slice answers with its arm's mean, with a given noise. The order is the real one
(``slots.draw``). ``with_slices`` and ``with_arm`` change a block for one test."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from clients.load.record.times import Times
from experiments.design.arms import Arm, Comparison, Group, twins
from experiments.design.setting import read
from experiments.design.sweep import Sweep
from experiments.judge.ratios import used_whole
from experiments.results.observed import ALL, Answered, ArmSeen, Block, SliceColumns
from tests.unit.experiments.blocks import World
from tests.unit.experiments.blocks import block as world_block

SOCKETS, GRPC = Arm(read("sockets")), Arm(read("grpc"))

CPU_NS = 40_000
"""The server's processor time for each request, the same for all arms."""


def ratio(above: Arm = SOCKETS, below: Arm = GRPC, name: str = "sockets ÷ gRPC", **fields: Any) -> Comparison:
    """Headline comparison of two arms. The declared factors are those in which the arms differ."""
    differ = above.setting.unlike(below.setting)
    return Comparison(name, name, above, below, differ, **({"family": "headline"} | fields))


def sweep(*comparisons: Comparison, rounds: int = 15, looks: tuple[int, ...] = (10, 14, 20), **fields: Any) -> Sweep:
    """Sweep with the two arms of each comparison in a group, once a round."""
    asked = comparisons or (ratio(),)
    groups = tuple(dict.fromkeys(Group((each.above, each.below)) for each in asked))
    return Sweep("try", "try", groups, asked, rounds, looks, **fields)


def same(transport: str = "sockets", family: str = "same") -> Comparison:
    """An A/A pair."""
    return twins(read(transport), family)[0]


def block(
    of: Sweep, means_us: Mapping[Arm, float], number: int = 1, noise: float = 0.0, seed: int = 1, attempt: int = 1
) -> Block:
    """One block. ``noise`` is the deviation of a slice's log-mean. Slices of one appearance share noise of the same
    size."""
    world = World(
        lambda arm, _: means_us[arm],
        block_noise=0.0,
        slice_noise=noise,
        shared_noise=noise,
        requests=None,
        cpu_ns=CPU_NS,
        client_share=lambda _: 0.25,
    )
    found = world_block(of, number, world, seed, attempt)
    return with_histograms(of, found)


def with_histograms(of: Sweep, one: Block) -> Block:
    """Block with histograms of the sums of its slices, without robbed rounds."""
    whole = used_whole(of.limits, one)
    return replace(one, arms=[_arm(one.slices, [*np.flatnonzero(whole & own)]) for own in _places(of, one)])


def _places(of: Sweep, one: Block) -> Iterator[npt.NDArray[np.bool_]]:
    return (np.array(one.slices.arm) == place for place in range(len(of.arms)))


def blocks(of: Sweep, means_us: Mapping[Arm, float], number: int = 10, noise: float = 0.02) -> list[Block]:
    """This number of blocks, from number 1."""
    return [block(of, means_us, each, noise) for each in range(1, number + 1)]


def with_slices(one: Block, **columns: Any) -> Block:
    """Block with changed columns."""
    return replace(one, slices=replace(one.slices, **columns))


def slowed(one: Block, by: Iterable[float]) -> Block:
    """Block whose requests take longer, by a factor for each slice."""
    sums = [round(each * factor) for each, factor in zip(one.slices.sums_ns[ALL], by, strict=True)]
    return with_slices(one, sums_ns={ALL: sums})


def with_arm(one: Block, place: int, **fields: Any) -> Block:
    """Block with changed fields of an arm."""
    arms = list(one.arms)
    arms[place] = replace(arms[place], **fields)
    return replace(one, arms=arms)


def answered(count: int, mean_ns: float = 100_000, errors: Mapping[str, int] | None = None) -> Answered:
    """This number of requests of equal length."""
    return Answered(times(count, count * round(mean_ns)), {"OK": count}, errors or {}, float(count))


def times(count: int, sum_ns: int) -> Times:
    """This number of times, equal to a nanosecond."""
    found, (each, more) = Times(), divmod(sum_ns, max(count, 1))
    found.record(np.array([each] * (count - more) + [each + 1] * more, dtype=np.int64))
    return found


def _arm(slices: SliceColumns, own: Sequence[int]) -> ArmSeen:
    """Histograms of the requests of these slices."""
    count, total = (sum(column[ALL][number] for number in own) for column in (slices.counts, slices.sums_ns))
    seen = Answered(times(count, total), {"OK": count}, {}, float(count))
    return ArmSeen({"lookup": seen, ALL: seen}, think_ns=0, span_ns=seen.times.sum_ns)
