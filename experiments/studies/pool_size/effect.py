"""Waiting from which on more threads gain: 1 ms of computing with longer and longer waits, foretold and measured.
Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.judge.stats import Estimate
from experiments.show.content import Seen
from experiments.studies.pool_size.sweeps import IO_SERIES, SERIES_CLIENTS, SERIES_POOLS, SOCKETS, model_of, work_of

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
    told = {each.setting: each for each in seen.foretold}
    found = []
    for judged in seen.main.judged.values():
        above, below = (told.get(arm.setting) for arm in (judged.comparison.above, judged.comparison.below))
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
