"""Distributions of times: HDR histograms of nanoseconds, and their statistics.

A histogram goes from 1 ns to 60 s with three digits: a bucket is at most 0.1 % wide. Values outside this range are
counted separately (``out_of_range``). They are not moved to the ends of the range. Histograms are merged by adding the
counts of their buckets; percentiles are never averaged. Mean, standard deviation, least and greatest value are exact:
these four numbers are computed from the values themselves, not from the buckets.
"""

import base64
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hdrh.codec import (  # type: ignore[import-untyped]
    HdrCookieException,
    HdrHistogramSettingsException,
    HdrLengthException,
)
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

_RANGE = LOWEST_NS, HIGHEST_NS, DIGITS = 1, 60 * 10**9, 3

Nanoseconds = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]

_BUCKET_BITS = 11
"""Number of leading bits of a value that are kept; the lower bits are dropped. Three decimal digits need 11 bits, since
2·10³ < 2¹¹.
"""

_NUMBERS = ("count", "out_of_range", "sum_ns", "squares", "min_ns", "max_ns")


class Times:
    """Distribution of times in nanoseconds. Not thread-safe. In a pickled distribution, the histogram is compressed.

    Only buckets with a value are stored. A thousand values take some 10 KiB; an ``HdrHistogram`` takes 432 KiB.
    """

    __slots__ = ("_counts", "_places", "count", "max_ns", "min_ns", "out_of_range", "squares", "sum_ns")

    def __init__(self) -> None:
        self._places: Places = np.empty(0, dtype=np.intp)  # numbers of the buckets that have a value, ascending
        self._counts: Nanoseconds = np.empty(0, dtype=np.int64)  # counts of these buckets; never changed in place
        self.count = 0
        """Number of values within the range."""
        self.out_of_range = 0
        self.sum_ns = 0
        self.squares = 0.0
        self.min_ns = HIGHEST_NS
        self.max_ns = 0

    def record(self, values: Nanoseconds) -> None:
        """Adds times, in nanoseconds. A time under 1 ns or over 60 s is counted in ``out_of_range`` alone."""
        kept = values[(values >= LOWEST_NS) & (values <= HIGHEST_NS)]
        self.out_of_range += len(values) - len(kept)
        if not len(kept):
            return
        exponents = np.frexp(kept.astype(np.float64))[1].astype(np.int64)  # exact: 60 s is under 2^36 ns
        shifts = np.maximum(exponents - _BUCKET_BITS, 0)
        found = np.bincount((shifts << _BUCKET_BITS - 1) + (kept >> shifts))
        places = np.flatnonzero(found)
        self._add(places, found[places])
        self.count += len(kept)
        self.sum_ns += int(kept.sum())
        self.squares += float(np.square(kept.astype(np.float64)).sum())
        self.min_ns = min(self.min_ns, int(kept.min()))
        self.max_ns = max(self.max_ns, int(kept.max()))

    def merge(self, other: "Times") -> None:
        """Adds all values of another distribution."""
        self._add(other._places, other._counts)
        self.count += other.count
        self.out_of_range += other.out_of_range
        self.sum_ns += other.sum_ns
        self.squares += other.squares
        self.min_ns = min(self.min_ns, other.min_ns)
        self.max_ns = max(self.max_ns, other.max_ns)

    def encoded(self) -> str:
        """The histogram in HdrHistogram's compressed form (V2, base64), for HdrHistogram's tools."""
        return str(self.histogram().encode(), "ascii")

    def histogram(self) -> HdrHistogram:
        """Copy of the distribution as an object of the class HdrHistogram."""
        histogram = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
        _counts_of(histogram)[self._places] = self._counts
        histogram.total_count = self.count
        if self.count:
            histogram.min_value, histogram.max_value = self.min_ns, self.max_ns
        return histogram

    def buckets(self) -> tuple[Nanoseconds, Nanoseconds, Nanoseconds]:
        """Lowest value, highest value (in nanoseconds) and count of every bucket that has a value, in ascending order.

        HdrHistogram's iterators give the same values, but take a thousand times as long.
        """
        places, half_bits = self._places, _BUCKET_BITS - 1
        shifts = np.maximum((places >> half_bits) - 1, 0)
        lowest = (places - (shifts << half_bits)) << shifts
        return lowest, lowest + (1 << shifts) - 1, self._counts

    def to_json(self) -> dict[str, object]:
        """Dictionary of the counts, the sums, the least and the greatest time, and the encoded histogram, for
        ``json``."""
        numbers: dict[str, object] = {name: getattr(self, name) for name in _NUMBERS}
        return numbers | ({"histogram": self.encoded()} if self.count else {})

    @staticmethod
    def from_json(document: dict[str, Any]) -> "Times":
        """Makes a distribution from the values that ``to_json`` returned. Raises KeyError, ValueError or TypeError for
        any other values."""
        times = Times()
        for name in _NUMBERS:
            setattr(times, name, document[name])
        if times.count:
            encoded = base64.b64encode(base64.b64decode(document["histogram"], validate=True))
            try:
                times._places, times._counts = _decoded(encoded)
            except (HdrCookieException, HdrLengthException, HdrHistogramSettingsException, zlib.error) as error:
                raise ValueError(f"no histogram: {error}") from error
        return times

    def distribution(self) -> "Distribution":
        """Statistics of these times: mean, standard deviation, least, greatest, and percentiles."""
        if not self.count:
            return Distribution(0, self.out_of_range)
        mean_ns = self.sum_ns / self.count
        variance = max(0.0, self.squares / self.count - mean_ns**2)
        _, highest, counts = self.buckets()  # gives the same percentiles as HdrHistogram, in a fifth of the time
        wanted = [max(1, int(percent / 100 * self.count + 0.5)) for percent in (50, 90, 99, 99.9)]
        found = highest[np.searchsorted(np.cumsum(counts), wanted)].tolist()
        p50, p90, p99, p999 = (min(value, self.max_ns) / 1000 for value in found)
        return Distribution(
            count=self.count,
            out_of_range=self.out_of_range,
            mean_us=mean_ns / 1000,
            stddev_us=math.sqrt(variance) / 1000,
            min_us=self.min_ns / 1000,
            p50_us=p50,
            p90_us=p90,
            p99_us=p99,
            p999_us=p999,
            max_us=self.max_ns / 1000,
        )

    def _add(self, places: Places, counts: Nanoseconds) -> None:
        """Adds counts to buckets. ``places`` has the numbers of the buckets, in ascending order, each number once."""
        if not len(self._places):
            self._places, self._counts = places, counts
        elif len(places):
            summed = np.zeros(max(self._places[-1], places[-1]) + 1, dtype=np.int64)
            summed[self._places] = self._counts
            summed[places] += counts
            self._places = np.flatnonzero(summed)
            self._counts = summed[self._places]

    def __getstate__(self) -> tuple[object, ...]:
        histogram = self.histogram().encode() if self.count else None
        return histogram, self.count, self.out_of_range, self.sum_ns, self.squares, self.min_ns, self.max_ns

    def __setstate__(self, state: tuple[bytes | None, int, int, int, float, int, int]) -> None:
        encoded, self.count, self.out_of_range, self.sum_ns, self.squares, self.min_ns, self.max_ns = state
        nothing: Nanoseconds = np.empty(0, dtype=np.int64)
        self._places, self._counts = (nothing, nothing) if encoded is None else _decoded(encoded)


def _counts_of(histogram: HdrHistogram) -> Nanoseconds:
    """Returns the array of counters that the histogram itself uses, not a copy."""
    return np.frombuffer(histogram.counts, dtype=np.int64, count=histogram.counts_len)


def _decoded(encoded: bytes) -> tuple[Places, Nanoseconds]:
    """Numbers and counts of the buckets in a text of ``HdrHistogram.encode``. Raises the errors of
    ``HdrHistogram.decode_and_add``."""
    histogram = HdrHistogram.decode(encoded)
    if (histogram.lowest_trackable_value, histogram.highest_trackable_value, histogram.significant_figures) != _RANGE:
        other, histogram = histogram, HdrHistogram(*_RANGE)
        histogram.add(other)
    counts = _counts_of(histogram)
    places = np.flatnonzero(counts != 0)  # on booleans, flatnonzero is three times as quick
    return places, counts[places]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Statistics of a set of times, in µs. Each statistic is None for an empty set."""

    count: int
    out_of_range: int = 0
    """Number of values under 1 ns or over 60 s. No statistic here includes these values."""
    mean_us: float | None = None
    stddev_us: float | None = None
    min_us: float | None = None
    p50_us: float | None = None
    p90_us: float | None = None
    p99_us: float | None = None
    p999_us: float | None = None
    max_us: float | None = None


def total(parts: Sequence[Times]) -> Times:
    """Adds several histograms, bucket by bucket. For a single histogram, returns this object itself, not a copy."""
    if len(parts) == 1:
        return parts[0]
    merged = Times()
    for part in parts:
        merged.merge(part)
    return merged
