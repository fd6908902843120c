"""Prediction beside measurement: throughputs, the smallest pool or load that is enough, the effect of waiting. Pure.

A measurement is the median over blocks, of throughputs or of 99th percentiles. A prediction is of a server with its
cores to itself. Other programs take the cores for a block or two; a median resists that. Blocks that a gate refuses for
an arm are left out of its measurement.

A prediction rests on the medians of its basis over the same blocks. One that was written down before the sweep is of
other minutes, in which a shared machine may be half as fast, or twice: it gives the rates of the open loops, and its
own hits are counted.

An arm's error is measured ÷ foretold − 1. Of several pools, or numbers of clients, the least that is enough is the
first whose throughput reaches ``USEFUL_SHARE`` of the highest. It is determined twice: from the predictions, and from
the measurements.

The effect is of 16 threads beside one: 1 ms of computing, with longer and longer waits.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, median

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.judge.gates import arm_refusals
from experiments.judge.points import CONFIDENCE, points
from experiments.judge.stats import Estimate, median_interval
from experiments.judge.verdicts import Judgement
from experiments.kinds.prediction import Foretold
from experiments.recommend.model import USEFUL_SHARE
from experiments.results.observed import ALL, ArmSeen
from experiments.show.content import Seen
from experiments.show.numbers import counted
from experiments.studies.pool_size.design import (
    IO_SERIES,
    SERIES_CLIENTS,
    SERIES_POOLS,
    SOCKETS,
    basis,
    model_of,
    named,
    work_of,
)
from experiments.studies.pool_size.prediction import foretell

THROUGHPUT_WITHIN = 0.10
"""Share by which a throughput may differ from its prediction …"""

TAIL_WITHIN = 0.25
"""… and share by which a 99th percentile may."""


STEPS_MIN = 3
"""Fewest pools, or numbers of clients, that test a prediction: with fewer any prediction is within one step."""


@dataclass(frozen=True, slots=True)
class Beside:
    """An arm, with its prediction and its measurement."""

    foretold: Foretold
    written: Foretold
    """Prediction that was written down before the sweep."""
    throughput_hz: Estimate | None
    """None where no block counts."""
    p99_s: float | None
    """None where there are too few requests for the percentile."""

    @property
    def setting(self) -> Setting:
        """Setting of the arm."""
        return self.foretold.setting

    @property
    def is_open(self) -> bool:
        """True where its requests are due at a rate."""
        return self.setting["rate_hz"] is not None

    @property
    def workers(self) -> int:
        """Threads in its pool."""
        return self.setting.whole("workers")

    @property
    def clients(self) -> int:
        """Connections that send."""
        return self.setting.whole("clients") * self.setting.whole("connections")

    @property
    def share(self) -> float | None:
        """An open loop's rate, as a share of the capacity that was written down before the sweep: 0.5, 0.7 or 0.9."""
        return self._share_of(self.written)

    @property
    def share_now(self) -> float | None:
        """The rate as a share of the foretold capacity, at the machine's speed in the sweep."""
        return self._share_of(self.foretold)

    def _share_of(self, told: Foretold) -> float | None:
        rate_hz = self.setting["rate_hz"]
        return rate_hz / told.capacity_hz if isinstance(rate_hz, float) else None

    @property
    def ratio(self) -> Estimate | None:
        """Measured ÷ foretold throughput of a closed loop. The interval is the measurement's alone."""
        return self.throughput_hz and self.throughput_hz.over(self.foretold.throughput_hz)

    @property
    def is_hit(self) -> bool:
        """True where the throughput is near its prediction …"""
        return self._is_near(self.foretold)

    @property
    def was_hit(self) -> bool:
        """… and where it is near the one that was written down before the sweep."""
        return self._is_near(self.written)

    def _is_near(self, told: Foretold) -> bool:
        seen = self.throughput_hz
        return seen is not None and abs(seen.value / told.throughput_hz - 1) <= THROUGHPUT_WITHIN

    @property
    def tail_ratio(self) -> float | None:
        """Measured ÷ foretold 99th percentile of an open loop. None where the foretold queue grows without end."""
        is_known = self.p99_s is not None and math.isfinite(self.foretold.response_s)
        return self.p99_s / self.foretold.response_s if self.p99_s is not None and is_known else None

    @property
    def what(self) -> str:
        """Model and work in words: ``sockets, static pool: I/O 10 ms``."""
        return f"{model_of(self.setting)}: {named(work_of(self.setting))}"


@dataclass(frozen=True, slots=True)
class Ladder:
    """Steps of pools with the same clients, or of clients on one pool, ascending. The smallest step that is enough is
    sought."""

    what: str
    beside: str
    """Levels that all steps share: ``64 clients``."""
    noun: str
    """Word for a step: ``thread`` or ``client``."""
    steps: tuple[int, ...]
    foretold_hz: tuple[float, ...]
    measured: tuple[Estimate, ...]

    @property
    def foretold(self) -> int:
        """Place of the smallest step that is enough, as foretold …"""
        return least_enough(self.foretold_hz)

    @property
    def seen(self) -> int:
        """… and as measured."""
        return least_enough([each.value for each in self.measured])

    @property
    def is_hit(self) -> bool:
        """True where the two places are one step apart at most."""
        return abs(self.foretold - self.seen) <= 1


def least_enough(rates_hz: Sequence[float]) -> int:
    """Place of the first rate that reaches ``USEFUL_SHARE`` of the highest rate."""
    enough_hz = USEFUL_SHARE * max(rates_hz)
    return next(place for place, rate_hz in enumerate(rates_hz) if rate_hz >= enough_hz)


@lru_cache(maxsize=1)
def told(seen: Seen) -> Mapping[Setting, Foretold]:
    """Predictions for the arms that are no basis of any, in the sweep's order; before the first block those that were
    written down. Keeps the result for the next call."""
    sweep = seen.main.sweep
    bases = {arm for each in sweep.arms for arm in basis(each.setting)}
    written = {each.setting: each for each in seen.foretold}
    own = [arm.setting for arm in sweep.arms if not arm.copy and arm not in bases and arm.setting in written]
    return {each: foretell(seen.main, each) if seen.main.blocks else written[each] for each in own}


@lru_cache(maxsize=1)
def beside(seen: Seen) -> tuple[Beside, ...]:
    """Every arm of the sweep that has a prediction, in the sweep's order. Keeps the result for the next call."""
    judgement, written = seen.main, {each.setting: each for each in seen.foretold}
    found = points(judgement.sweep, judgement.blocks)
    every = []
    for setting, foretold in told(seen).items():
        arm = Arm(setting)
        point = found.get((arm, ALL)) if setting["rate_hz"] is not None else None
        is_carried = point is not None and point.percentile_us(99) is not None
        p99_s = _p99_s(judgement, arm) if is_carried else None
        every.append(Beside(foretold, written[setting], _throughput_hz(judgement, arm), p99_s))
    return tuple(every)


def of_pools(every: Sequence[Beside], least: int = STEPS_MIN) -> tuple[Ladder, ...]:
    """Ladders of pools: for every model and work with at least ``least`` pools, at its most clients."""
    return _ladders(every, "workers", "connections", least)


def of_clients(every: Sequence[Beside]) -> tuple[Ladder, ...]:
    """Ladders of clients: for every model and work with several numbers of clients, on its largest pool."""
    return _ladders(every, "connections", "workers", STEPS_MIN)


_NOUNS = {"workers": "thread", "connections": "client"}


def _ladders(every: Sequence[Beside], steps: str, other: str, least: int) -> tuple[Ladder, ...]:
    """Ladders of closed loops that differ in one factor alone, with the other at its largest."""
    kinds: dict[Setting, list[tuple[Beside, Estimate]]] = {}
    for each in every:
        if not each.is_open and each.throughput_hz is not None:
            kinds.setdefault(each.setting.but(workers=1, connections=1), []).append((each, each.throughput_hz))
    found = []
    for of_kind in kinds.values():
        most = max(each.setting.whole(other) for each, _ in of_kind)
        own = [pair for pair in of_kind if pair[0].setting.whole(other) == most]
        own.sort(key=lambda pair: pair[0].setting.whole(steps))
        if len(own) >= least:
            found.append(
                Ladder(
                    what=own[0][0].what,
                    beside=counted(most, _NOUNS[other]),
                    noun=_NOUNS[steps],
                    steps=tuple(each.setting.whole(steps) for each, _ in own),
                    foretold_hz=tuple(each.foretold.throughput_hz for each, _ in own),
                    measured=tuple(throughput for _, throughput in own),
                )
            )
    return tuple(found)


def _counted(judgement: Judgement, arm: Arm) -> list[ArmSeen]:
    """An arm in each block that no gate leaves out."""
    place = judgement.sweep.arms.index(arm)
    blocks = (block for block in judgement.blocks if not any(arm_refusals(judgement.sweep, block, arm)))
    return [block.arms[place] for block in blocks]


def _throughput_hz(judgement: Judgement, arm: Arm) -> Estimate | None:
    """Replies a second, over the blocks that count."""
    windows = (seen.windows for seen in _counted(judgement, arm))
    values = [fmean(window.answered_hz for window in own) for own in windows if own]
    return median_interval(values, CONFIDENCE) if values else None


def _p99_s(judgement: Judgement, arm: Arm) -> float | None:
    """The 99th percentile of an arm, over the blocks that count."""
    values = [seen.answered[ALL].times.distribution().p99_us for seen in _counted(judgement, arm)]
    known = [each for each in values if each is not None]
    return median(known) / 1e6 if known else None


BEGINS = 0.05
"""Least gain that counts."""


@dataclass(frozen=True, slots=True)
class Gain:
    """Throughput with many threads ÷ throughput with one, for one work."""

    share: float
    """Share of one worker's time for a request in which it waits."""
    foretold: float
    measured: Estimate


def gains(seen: Seen) -> tuple[Gain, ...]:
    """Gains of every work of the series that was measured, by ascending share."""
    found, foretold = [], told(seen)
    for judged in seen.main.judged.values():
        above, below = (foretold.get(arm.setting) for arm in (judged.comparison.above, judged.comparison.below))
        if judged.comparison.kind == "same" or above is None or below is None:
            continue
        of = above.setting
        pools = below.setting.whole("workers"), of.whole("workers")
        is_ours = model_of(of) == SOCKETS and pools == SERIES_POOLS and of.whole("connections") == SERIES_CLIENTS
        if is_ours and work_of(of) in IO_SERIES:
            time = judged.typical
            gain = Estimate(1 / time.value, 1 / time.high, 1 / time.low if time.low else float("inf"), time.n)
            share = above.demands.wait_s / above.demands.service_s
            found.append(Gain(share, above.throughput_hz / below.throughput_hz, gain))
    return tuple(sorted(found, key=lambda each: each.share))


def begins(found: Sequence[Gain]) -> Gain | None:
    """The first gain whose whole interval is over ``BEGINS``."""
    return next((each for each in found if each.measured.n > 1 and each.measured.low > 1 + BEGINS), None)
