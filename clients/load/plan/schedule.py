"""Schedule of an open loop: a seeded, endless sequence of moments. At each moment a request is due. The server does not
influence the moments.

``constant``: a moment every ``1 / rate`` seconds. ``poisson``: independent exponential gaps with the mean ``1 / rate``,
as from many independent clients. No moment depends on a send, so a late send delays no later moment.

Each sender of a run follows one part of the run's arrival process. All parts together are the declared process, since a
sum of independent Poisson processes is a Poisson process. Constant moments lie on one grid, which begins at the clock's
zero. Each part has every ``parts``-th moment of the grid. So all constant parts together have constant gaps too, even
if the senders connect at different times.

Ideas: wrk2 and vegeta's pacer (``lib/pacer.go``) also compute the due moments from the start of the run.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal, assert_never

import numpy as np

Arrivals = Literal["constant", "poisson"]
"""Arrival process of an open loop."""

ARRIVALS: tuple[Arrivals, ...] = ("constant", "poisson")

_AT_A_TIME = 4096
"""Number of moments that one step computes, between two sends. A step takes 0.1 ms."""

_SECOND_NS = 10**9


@dataclass(frozen=True, slots=True)
class Schedule:
    """One part of an arrival process. The process has ``rate_hz`` requests a second, and is divided into ``parts``
    equal parts.
    """

    rate_hz: float
    arrivals: Arrivals
    part: int
    """Number of the part, from 0."""
    parts: int
    seed: int

    def due_ns(self, start_ns: int) -> Iterator[int]:
        """Yields the part's moments from ``start_ns`` on, in order, without end. Moments are in nanoseconds on the
        clock."""
        match self.arrivals:
            case "constant":
                return self._constant(start_ns)
            case "poisson":
                return self._poisson(start_ns)
            case _:
                assert_never(self.arrivals)

    def _constant(self, start_ns: int) -> Iterator[int]:
        rate = Fraction(self.rate_hz)
        after = ceil(start_ns * rate / _SECOND_NS)  # number of the grid's first moment from the start on
        first = (after + (self.part - after) % self.parts) * _SECOND_NS / rate
        whole_ns = int(first)
        rest_ns, gap_ns = float(first - whole_ns), float(self.parts * _SECOND_NS / rate)
        number = 0
        while True:
            passed_ns = rest_ns + gap_ns * np.arange(number, number + _AT_A_TIME)
            yield from (whole_ns + np.rint(passed_ns).astype(np.int64)).tolist()
            number += _AT_A_TIME

    def _poisson(self, start_ns: int) -> Iterator[int]:
        gap_ns = _SECOND_NS * self.parts / self.rate_hz
        rng = np.random.default_rng((self.seed, self.part))
        passed_ns = 0.0  # counted from the start, so that the float is exact to a nanosecond for weeks
        while True:
            moments = passed_ns + np.cumsum(rng.exponential(gap_ns, _AT_A_TIME))
            passed_ns = float(moments[-1])
            yield from (start_ns + np.rint(moments).astype(np.int64)).tolist()
