"""Where more threads begin to gain: 1 ms of computing with longer and longer waits, foretold and measured. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.judge.stats import Estimate
from experiments.show.content import Seen
from experiments.studies.pool_size.sweeps import IO_SERIES, SERIES_CLIENTS, SERIES_POOLS, SOCKETS, model_of, work_of

BEGINS = 0.05
"""A gain counts from so much on."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What many threads answer ÷ what one does, of one work."""

    share: float
    """Of one worker's time for a request, so much it waits."""
    foretold: float
    measured: Estimate


def gains(seen: Seen) -> tuple[Gain, ...]:
    """Of every work of the series that was measured, by ascending share."""
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
    """The first whose whole interval is over a gain of ``BEGINS``."""
    return next((each for each in found if each.measured.n > 1 and each.measured.low > 1 + BEGINS), None)
