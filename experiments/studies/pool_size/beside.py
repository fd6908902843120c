"""Comparison of predictions with measurements: throughputs, the smallest sufficient pool or load, the gain of threads.

An arm is one server under one load. The measurement of an arm is the median over blocks of its throughput, or of its
99th percentile. A prediction is for a server that shares its cores with no other program. Other programs may take the
cores for a block or two. These few blocks hardly change a median. Blocks that a gate refuses for an arm are left out of
the arm's measurement.

A prediction for an arm is computed from medians of other arms, the basis (``design.basis``), over the same blocks. A
hit is an arm whose measurement is near its prediction. Other predictions were written down before the sweep. These
earlier predictions rest on measurements in other minutes, in which a shared machine may be half as fast, or twice as
fast. The earlier predictions give the rates of the open loops. Hits of earlier predictions are counted separately.

The error of a prediction is measured value ÷ foretold value − 1. The smallest sufficient pool is the smallest measured
pool whose throughput reaches ``USEFUL_SHARE`` of the highest throughput. The smallest sufficient number of clients is
defined in the same way. Pool and number of clients are each found twice: from the predictions, and from the
measurements.

The gain of threads is the throughput of 16 threads ÷ the throughput of one thread. Each request computes for 1 ms and
waits. The gain is measured for several lengths of this wait. The functions are pure.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import TypeVar

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.judge.gates import arm_refusals
from experiments.judge.points import CONFIDENCE
from experiments.judge.stats import Estimate, median_interval
from experiments.judge.verdicts import Judgement
from experiments.kinds.prediction import Foretold
from experiments.recommend.model import USEFUL_SHARE
from experiments.results.observed import ALL, is_carried
from experiments.show.content import Seen
from experiments.show.numbers import counted
from experiments.studies.pool_size.design import (
    IO_SERIES,
    SERIES_CLIENTS,
    SERIES_POOLS,
    SOCKETS,
    Work,
    basis,
    model_of,
    named,
    work_of,
)
from experiments.studies.pool_size.prediction import Unmeasured, foretell

THROUGHPUT_WITHIN = 0.10
"""Largest error of a predicted throughput that is a hit, as a share of the prediction."""

TAIL_WITHIN = 0.25
"""Largest error of a predicted 99th percentile that is a hit, as a share of the prediction."""

NEAR = 0.05
"""Tolerance of the load in the claim on tails. The claim is about open loops whose rate is ``advice.USUAL`` of the
foretold capacity. An open loop counts where its share of the capacity differs from ``USUAL`` by less than the
tolerance.
"""

STEPS_MIN = 3
"""Least number of steps (pools, or numbers of clients) that can test a prediction. With two steps, no prediction can be
more than one step from the measurement.
"""


@dataclass(frozen=True, slots=True)
class Beside:
    """Arm, with its two predictions and its measurement."""

    foretold: Foretold
    """Prediction for the arm from its basis (arms with one worker), in the sweep's blocks."""
    written: Foretold
    """Prediction for the arm from the blocks of ``pool_one``, written down before the sweep."""
    throughput_hz: Estimate | None
    """Measured throughput in replies a second; None where no block counts."""
    p99_s: Estimate | None
    """Measured 99th percentile of the response times in seconds. None for a closed loop, and where there are too few
    requests for the percentile."""

    @property
    def setting(self) -> Setting:
        """Setting of the arm."""
        return self.foretold.setting

    @property
    def model(self) -> str:
        """Name of the arm's model, from the event loop, the build of Python, the processes, or else the executor."""
        return model_of(self.setting)

    @property
    def work(self) -> Work:
        """Work that each request of the arm does in addition to the Lookup or Trade."""
        return work_of(self.setting)

    @property
    def is_open(self) -> bool:
        """True for an open loop, whose requests are due at a rate."""
        return self.setting["rate_hz"] is not None

    @property
    def workers(self) -> int:
        """Number of threads in the server's pool."""
        return self.setting.whole("workers")

    @property
    def clients(self) -> int:
        """Number of connections that send requests."""
        return self.setting.whole("clients") * self.setting.whole("connections")

    @property
    def share(self) -> float | None:
        """Rate of an open loop, as a share of the capacity that was foretold before the sweep: about 0.5, 0.7 or 0.9.
        None for a closed loop."""
        return self._share_of(self.written)

    @property
    def share_now(self) -> float | None:
        """Rate of an open loop, as a share of the capacity foretold from the sweep's own blocks. None for a closed
        loop."""
        return self._share_of(self.foretold)

    def _share_of(self, told: Foretold) -> float | None:
        rate_hz = self.setting["rate_hz"]
        return rate_hz / told.capacity_hz if isinstance(rate_hz, float) else None

    @property
    def ratio(self) -> Estimate | None:
        """Ratio of throughputs, measured ÷ foretold, with the interval of the measurement."""
        return self.throughput_hz and self.throughput_hz.over(self.foretold.throughput_hz)

    @property
    def is_hit(self) -> bool:
        """True where the throughput is within ``THROUGHPUT_WITHIN`` of the prediction."""
        return self._is_near(self.foretold)

    @property
    def was_hit(self) -> bool:
        """True where the throughput is within ``THROUGHPUT_WITHIN`` of the prediction written down before the sweep."""
        return self._is_near(self.written)

    def _is_near(self, told: Foretold) -> bool:
        seen = self.throughput_hz
        return seen is not None and abs(seen.value / told.throughput_hz - 1) <= THROUGHPUT_WITHIN

    @property
    def tail_ratio(self) -> Estimate | None:
        """Ratio of 99th percentiles of an open loop, measured ÷ foretold, with the interval of the measurement. None
        without a measured percentile, and where the foretold queue grows without end."""
        foretold_s = self.foretold.response_s
        return None if self.p99_s is None or math.isinf(foretold_s) else self.p99_s.over(foretold_s)

    @property
    def what(self) -> str:
        """Model and work in words: ``sockets, static pool: I/O 10 ms``."""
        return f"{self.model}: {named(self.work)}"


Key = TypeVar("Key")


def grouped(every: Iterable[Beside], key: Callable[[Beside], Key]) -> dict[Key, list[Beside]]:
    """Arms grouped by a key, such as their work. The groups are in the order of their first arms."""
    found: dict[Key, list[Beside]] = {}
    for each in every:
        found.setdefault(key(each), []).append(each)
    return found


@dataclass(frozen=True, slots=True)
class Ladder:
    """Ascending steps: numbers of threads with equal numbers of clients, or numbers of clients on one pool. Each step
    has a throughput, foretold and measured. The smallest sufficient step is the first step whose throughput reaches
    ``USEFUL_SHARE`` of the highest throughput."""

    what: str
    """Server and work of all steps, such as ``sockets, static pool: I/O 10 ms``."""
    beside: str
    """Levels that all steps share, such as ``64 clients``."""
    noun: str
    """Word for the unit of a step: ``thread`` or ``client``."""
    steps: tuple[int, ...]
    """Numbers of threads in the pools, or numbers of clients."""
    foretold: int
    """Index in ``steps`` of the smallest sufficient step, by the predictions."""
    seen: int
    """Index in ``steps`` of the smallest sufficient step, by the measurements."""
    earliest: int
    """Index of the first step that can be sufficient, by the intervals of the measurements."""
    latest: int
    """Index of the first step that is surely sufficient, by the intervals. The last index where no step is surely
    sufficient."""

    @property
    def can_miss(self) -> bool:
        """True where some step is more than one step from the foretold step."""
        return max(self.foretold, len(self.steps) - 1 - self.foretold) > 1

    @property
    def is_hit(self) -> bool:
        """True where the foretold and the measured index differ by at most 1."""
        return abs(self.foretold - self.seen) <= 1

    @property
    def is_sure_hit(self) -> bool:
        """True where every step that can be the smallest sufficient step is within one step of the foretold step."""
        return self.latest - 1 <= self.foretold <= self.earliest + 1

    @property
    def is_sure_miss(self) -> bool:
        """True where no step that can be the smallest sufficient step is within one step of the foretold step."""
        return not self.earliest - 1 <= self.foretold <= self.latest + 1


def least_enough(rates_hz: Sequence[float]) -> int:
    """Index of the first rate that reaches ``USEFUL_SHARE`` of the highest rate."""
    enough_hz = USEFUL_SHARE * max(rates_hz)
    return next(place for place, rate_hz in enumerate(rates_hz) if rate_hz >= enough_hz)


def enough_between(rates_hz: Sequence[Estimate]) -> tuple[int, int]:
    """Two indices, by the intervals of the rates. The first index is of the first rate that can reach ``USEFUL_SHARE``
    of the highest rate. The second index is of the first rate that surely reaches this share. Where no rate surely
    reaches the share, the second index is the last.
    """
    can_hz = USEFUL_SHARE * max(each.low for each in rates_hz)
    earliest = next(place for place, rate in enumerate(rates_hz) if rate.high >= can_hz)
    for place, rate in enumerate(rates_hz):
        others = [other.high for each, other in enumerate(rates_hz) if each != place]
        if rate.low >= USEFUL_SHARE * max(others, default=0.0):
            return earliest, place
    return earliest, len(rates_hz) - 1


def asked(seen: Seen) -> tuple[Setting, ...]:
    """Settings of arms for which a prediction was written down before the sweep. Arms on which predictions rest are
    left out. The settings are in the sweep's order.
    """
    sweep = seen.main.sweep
    bases = {arm for each in sweep.arms for arm in basis(each.setting)}
    written = {each.setting for each in seen.foretold}
    return tuple(arm.setting for arm in sweep.arms if not arm.copy and arm not in bases and arm.setting in written)


@lru_cache(maxsize=2)
def told(seen: Seen) -> Mapping[Setting, Foretold]:
    """Predictions by setting, in the sweep's order, for the settings that ``asked`` gives. Before the first block is
    measured, these are the predictions that were written down before the sweep. The results of the last two different
    calls are cached."""
    if not seen.main.blocks:
        written = {each.setting: each for each in seen.foretold}
        return {each: written[each] for each in asked(seen)}
    now = {each: _now(seen.main, each) for each in asked(seen)}
    return {each: found for each, found in now.items() if found is not None}


def _now(judgement: Judgement, setting: Setting) -> Foretold | None:
    """Prediction for a setting, from the blocks of the sweep; None where an arm of its basis has no value."""
    try:
        return foretell(judgement, setting)
    except Unmeasured:
        return None


@lru_cache(maxsize=2)
def beside(seen: Seen) -> tuple[Beside, ...]:
    """Every arm of the sweep that has a prediction, in the sweep's order. The results of the last two different calls
    are cached."""
    written = {each.setting: each for each in seen.foretold}
    return tuple(_beside(seen.main, foretold, written[setting]) for setting, foretold in told(seen).items())


def _beside(judgement: Judgement, foretold: Foretold, written: Foretold) -> Beside:
    """Arm with its two predictions, and with its measurement over the blocks that no gate leaves out."""
    sweep, arm = judgement.sweep, Arm(foretold.setting)
    place = sweep.arms.index(arm)
    own = [block.arms[place] for block in judgement.blocks if not any(arm_refusals(sweep, block, arm))]
    rates_hz = [fmean(window.answered_hz for window in each.windows) for each in own if each.windows]
    answered = [each.answered[ALL] for each in own if arm.setting["rate_hz"] is not None]
    is_known = is_carried(99, sum(each.effective for each in answered))
    p99s_us = [p99 for each in answered if is_known and (p99 := each.times.distribution().p99_us) is not None]
    return Beside(
        foretold,
        written,
        median_interval(rates_hz, CONFIDENCE) if rates_hz else None,
        median_interval(p99s_us, CONFIDENCE).over(1e6) if p99s_us else None,
    )


def of_pools(every: Sequence[Beside], least: int = STEPS_MIN) -> tuple[Ladder, ...]:
    """Ladders (see ``Ladder``) whose steps are pool sizes. All steps of a ladder have the largest number of clients. A
    server and work has a ladder where at least ``least`` pools were measured.
    """
    return _ladders(every, "workers", "connections", least)


def of_clients(every: Sequence[Beside]) -> tuple[Ladder, ...]:
    """Ladders (see ``Ladder``) whose steps are numbers of clients. All steps of a ladder have the largest pool. A
    server and work has a ladder where at least ``STEPS_MIN`` numbers were measured.
    """
    return _ladders(every, "connections", "workers", STEPS_MIN)


_NOUNS = {"workers": "thread", "connections": "client"}


def _ladders(every: Sequence[Beside], steps: str, other: str, least: int) -> tuple[Ladder, ...]:
    """Ladders of closed loops that differ in the factor ``steps`` alone, with the factor ``other`` at its largest
    level. A ladder has at least ``least`` steps."""
    closed = [each for each in every if not each.is_open and each.throughput_hz is not None]
    found = []
    for of_kind in grouped(closed, lambda each: each.setting.but(workers=1, connections=1)).values():
        most = max(each.setting.whole(other) for each in of_kind)
        own = {each.setting.whole(steps): each for each in of_kind if each.setting.whole(other) == most}
        if len(own) >= least:
            ascending = [own[step] for step in sorted(own)]
            foretold = least_enough([each.foretold.throughput_hz for each in ascending])
            rates_hz = [each.throughput_hz for each in ascending if each.throughput_hz]
            seen, (earliest, latest) = least_enough([each.value for each in rates_hz]), enough_between(rates_hz)
            step, beside_ = _NOUNS[steps], counted(most, _NOUNS[other])
            what, own_steps = ascending[0].what, tuple(sorted(own))
            found.append(Ladder(what, beside_, step, own_steps, foretold, seen, earliest, latest))
    return tuple(found)


BEGINS = 0.05
"""Smallest gain of throughput that counts, as a share: 0.05 is 5 %."""


@dataclass(frozen=True, slots=True)
class Gain:
    """Gain of threads for one work (kind of request): throughput with 16 threads ÷ throughput with one thread."""

    share: float
    """Time that a request waits in a worker ÷ whole time of the request in the worker, from 0 to 1."""
    foretold: float
    """Gain by the predictions."""
    measured: Estimate
    """Gain by the measurements, with its interval."""


def gains(seen: Seen) -> tuple[Gain, ...]:
    """Gains of threads on sockets, one for each measured work of ``IO_SERIES``, by ascending share of waiting."""
    found, foretold = [], told(seen)
    for judged in seen.main.judged.values():
        above, below = (foretold.get(arm.setting) for arm in (judged.comparison.above, judged.comparison.below))
        if judged.comparison.kind == "same" or above is None or below is None:
            continue
        of = above.setting
        pools = below.setting.whole("workers"), of.whole("workers")
        is_ours = model_of(of) == SOCKETS and pools == SERIES_POOLS and of.whole("connections") == SERIES_CLIENTS
        if is_ours and work_of(of) in IO_SERIES:
            share = above.demands.wait_s / above.demands.service_s
            found.append(Gain(share, above.throughput_hz / below.throughput_hz, judged.typical.under(1.0)))
    return tuple(sorted(found, key=lambda each: each.share))


def begins(found: Sequence[Gain]) -> Gain | None:
    """First gain in ``found`` whose whole interval is over 1 + ``BEGINS``; None without such a gain."""
    return next((each for each in found if each.measured.n > 1 and each.measured.low > 1 + BEGINS), None)
