"""How a run's response times went over its window: the window cut into a hundred slices, a coarse distribution in each.

What a histogram of the whole run cannot show: whether it was steady, and how far its requests depend on each other. The
slices of all connections and processes are added up, so that what slows all of them at once is seen as what it is.

``design_effect`` is how many requests are worth one independent one where a share is estimated: the variance of the
slices' shares ÷ what it would be if requests were independent, which is Pearson's χ² of the slices by its degrees of
freedom (batch means: Law & Kelton, Simulation Modeling and Analysis, ch. 9). Slices must be longer than what is
remembered from one request to the next; a run of a second has slices of 10 ms.
"""

import base64
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

SLICES = 100
"""Parts of the window, of equal length."""

_PER_OCTAVE = 8
"""Buckets from a time to its double: each is 9 % wide."""

_LOWEST_BITS, _HIGHEST_BITS = 10, 36
"""Buckets from 1 µs to 69 s; what is shorter or longer is in the first or the last."""

BUCKETS = (_HIGHEST_BITS - _LOWEST_BITS) * _PER_OCTAVE + 1

Counts = npt.NDArray[np.int64]


@dataclass(slots=True)
class Slices:
    """Requests by slice and bucket of their response time, and the sum of the times in each slice. One thread's."""

    counts: Counts = field(default_factory=lambda: np.zeros((SLICES, BUCKETS), dtype=np.int64))
    sums_ns: Counts = field(default_factory=lambda: np.zeros(SLICES, dtype=np.int64))

    def add(self, share: npt.NDArray[np.float64], times_ns: Counts) -> None:
        """Adds requests: when each was due, as a share of the window (0 to under 1), and its response time."""
        places = np.minimum((share * SLICES).astype(np.int64), SLICES - 1)
        octaves = np.log2(np.maximum(times_ns, 1)) - _LOWEST_BITS
        buckets = np.clip((octaves * _PER_OCTAVE).astype(np.int64) + 1, 0, BUCKETS - 1)
        keys = places * BUCKETS + np.where(octaves < 0, 0, buckets)
        self.counts += np.bincount(keys, minlength=SLICES * BUCKETS).reshape(SLICES, BUCKETS)
        self.sums_ns += np.bincount(places, weights=times_ns, minlength=SLICES).astype(np.int64)

    def merge(self, other: "Slices") -> None:
        """Adds what another has, of the same window."""
        self.counts += other.counts
        self.sums_ns += other.sums_ns

    def replies(self) -> Counts:
        """Requests in each slice."""
        return np.asarray(self.counts.sum(axis=1))

    def means_us(self) -> npt.NDArray[np.float64]:
        """The mean response time of each slice that has any."""
        replies = self.replies()
        kept = replies > 0
        return np.asarray(self.sums_ns[kept] / replies[kept] / 1000)

    def design_effect(self, percentile: float) -> float:
        """How many of these requests are worth one independent one for that percentile (0 to 100); 1 at least."""
        replies = self.replies()
        kept = replies > 0
        total = int(replies.sum())
        if np.count_nonzero(kept) < 2:
            return 1.0
        above = np.cumsum(self.counts.sum(axis=0)[::-1])[::-1]
        first = int(np.abs(above - total * (1 - percentile / 100)).argmin())
        exceeding, share = self.counts[:, first:].sum(axis=1), above[first] / total
        if not 0 < share < 1:
            return 1.0
        chi_square = float(((exceeding - replies * share)[kept] ** 2 / (replies[kept] * share * (1 - share))).sum())
        return max(1.0, chi_square / (np.count_nonzero(kept) - 1))

    def to_json(self) -> dict[str, str]:
        """As values that ``json`` writes."""
        packed = zlib.compress(self.counts.astype("<i4").tobytes(), 9)
        sums = zlib.compress(self.sums_ns.astype("<i8").tobytes(), 9)
        return {"counts": str(base64.b64encode(packed), "ascii"), "sums_ns": str(base64.b64encode(sums), "ascii")}

    @staticmethod
    def from_json(document: dict[str, Any]) -> "Slices":
        """The reverse of ``to_json``. KeyError, ValueError or TypeError for anything else."""
        try:
            counts, sums = (zlib.decompress(base64.b64decode(document[name])) for name in ("counts", "sums_ns"))
        except zlib.error as error:
            raise ValueError(f"no slices: {error}") from error
        return Slices(
            np.frombuffer(counts, dtype="<i4").astype(np.int64).reshape(SLICES, BUCKETS),
            np.frombuffer(sums, dtype="<i8").astype(np.int64).reshape(SLICES),
        )
