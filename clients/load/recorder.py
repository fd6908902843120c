"""Folds raw records into histograms, after the run.

Times are kept in HDR histograms of 1 ns to 60 s with three digits (a bucket is at most 0.1 % wide); a value outside is
counted, never dropped or clipped. Histograms of different connections and processes are merged, count by count;
percentiles are never averaged. Mean, standard deviation, least and greatest are exact, from the values themselves.

A request belongs to the window in which it was sent, however long it took. A connection's first call belongs to none:
it is timed apart.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from clients.load.records import ERROR_KINDS, FAULT_FIRST, OUTCOMES, STATUS_NAMES, TYPE_STEP, Records, Window, by_name

LOWEST_NS, HIGHEST_NS, DIGITS = 1, 60 * 10**9, 3

Nanoseconds = npt.NDArray[np.int64]

_SLICE = 2**18
"""Records folded at a time, so that folding takes some 20 MB whatever their number."""

_BUCKET_BITS = 11
"""Values of so many bits are kept exactly, longer ones to so many bits: what three digits need (2·10³ < 2¹¹)."""


class Times:
    """A distribution of times in nanoseconds. One thread's. Pickles, its histogram compressed."""

    __slots__ = ("count", "histogram", "max_ns", "min_ns", "out_of_range", "squares", "sum_ns")

    def __init__(self) -> None:
        self.histogram = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
        self.count = 0
        """Values within the range."""
        self.out_of_range = 0
        self.sum_ns = 0
        self.squares = 0.0
        self.min_ns = HIGHEST_NS
        self.max_ns = 0

    def record(self, values: Nanoseconds) -> None:
        """Adds values."""
        kept = values[(values >= LOWEST_NS) & (values <= HIGHEST_NS)]
        self.out_of_range += len(values) - len(kept)
        if not len(kept):
            return
        exponents = np.frexp(kept.astype(np.float64))[1].astype(np.int64)  # exact: 60 s is under 2^36 ns
        shifts = np.maximum(exponents - _BUCKET_BITS, 0)
        keys = (shifts << _BUCKET_BITS) | (kept >> shifts)
        counts = np.bincount(keys)
        for key in np.flatnonzero(counts).tolist():
            value = (key & (2**_BUCKET_BITS - 1)) << (key >> _BUCKET_BITS)
            self.histogram.record_value(value, int(counts[key]))
        self.count += len(kept)
        self.sum_ns += int(kept.sum())
        self.squares += float(np.square(kept.astype(np.float64)).sum())
        self.min_ns = min(self.min_ns, int(kept.min()))
        self.max_ns = max(self.max_ns, int(kept.max()))

    def merge(self, other: "Times") -> None:
        """Adds all that another has, as if it had been recorded here."""
        if other.count:
            self.histogram.add(other.histogram)
        self.count += other.count
        self.out_of_range += other.out_of_range
        self.sum_ns += other.sum_ns
        self.squares += other.squares
        self.min_ns = min(self.min_ns, other.min_ns)
        self.max_ns = max(self.max_ns, other.max_ns)

    def encoded(self) -> str:
        """The histogram in HdrHistogram's own compressed form (V2, base64), which its tools read."""
        return str(self.histogram.encode(), "ascii")

    def distribution(self) -> "Distribution":
        """Its moments and percentiles."""
        if not self.count:
            return Distribution(0, self.out_of_range)
        mean_ns = self.sum_ns / self.count
        variance = max(0.0, self.squares / self.count - mean_ns**2)
        at = self.histogram.get_percentile_to_value_dict([50, 90, 99, 99.9])
        p50, p90, p99, p999 = (min(at[p], self.max_ns) / 1000 for p in (50, 90, 99, 99.9))
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

    def __getstate__(self) -> tuple[object, ...]:
        histogram = self.histogram.encode() if self.count else None
        return histogram, self.count, self.out_of_range, self.sum_ns, self.squares, self.min_ns, self.max_ns

    def __setstate__(self, state: tuple[bytes | None, int, int, int, float, int, int]) -> None:
        self.histogram = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
        encoded, self.count, self.out_of_range, self.sum_ns, self.squares, self.min_ns, self.max_ns = state
        if encoded is not None:
            self.histogram.decode_and_add(encoded)


@dataclass(frozen=True, slots=True)
class Distribution:
    """What can be said of a set of times, in microseconds; None where there are none."""

    count: int
    out_of_range: int = 0
    """Values under 1 ns or over 60 s, which are in no figure here."""
    mean_us: float | None = None
    stddev_us: float | None = None
    min_us: float | None = None
    p50_us: float | None = None
    p90_us: float | None = None
    p99_us: float | None = None
    p999_us: float | None = None
    max_us: float | None = None


@dataclass(slots=True)
class Span:
    """What one connection did in the window: how many replies, and from when to when it sent and waited."""

    began: bool = False
    """Whether its first call has been answered."""
    replies: int = 0
    first_sent_ns: int = 0
    last_done_ns: int = 0


@dataclass(frozen=True, slots=True)
class RequestReport:
    """One request type in one process."""

    outcomes: Mapping[str, int]
    errors: Mapping[str, int]
    times: Times


@dataclass(frozen=True, slots=True)
class Recorded:
    """All that one process recorded."""

    requests: Mapping[str, RequestReport]
    connects: Times
    first_calls: Times
    spans: Sequence[Span]
    errors: Mapping[str, int]
    """Of the whole run, those outside the window included."""


@dataclass(slots=True)
class Recorder:
    """Folds the records of one process's connections. ``fold`` may be called from any thread."""

    names: Sequence[str]
    """The request types, in the order of their outcome numbers."""
    window: Window
    per_request: bool
    _spans: list[Span] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)  # guards everything below
    _counts: list[int] = field(default_factory=lambda: [0] * OUTCOMES)
    _outside: list[int] = field(default_factory=lambda: [0] * OUTCOMES)
    _times: list[Times] = field(default_factory=list)
    _connects: Times = field(default_factory=Times)
    _first_calls: Times = field(default_factory=Times)

    def __post_init__(self) -> None:
        self._times = [Times() for _ in self.names]

    def new_span(self) -> Span:
        """Where to keep what one connection did: ``fold`` is to be given it with that connection's records."""
        self._spans.append(span := Span())
        return span

    def fold(self, records: Records, span: Span) -> None:
        """Takes over a connection's records, and forgets them there."""
        with self._lock:
            self._fold_connects(records)
            for start in range(0, len(records.outcomes), _SLICE):
                stop = min(start + _SLICE, len(records.outcomes))
                sent = np.array(records.sent[start:stop], dtype=np.int64)
                done = np.array(records.done[start:stop], dtype=np.int64)
                outcomes = np.array(records.outcomes[start:stop], dtype=np.uint8)
                self._fold_slice(sent, done, outcomes, span)
            records.clear()

    def recorded(self) -> Recorded:
        """What was folded so far."""
        requests = {
            name: RequestReport(
                dict(by_name(self._counts, place * TYPE_STEP, STATUS_NAMES)),
                dict(by_name(self._counts, place * TYPE_STEP, ERROR_KINDS)),
                self._times[place],
            )
            for place, name in enumerate(self.names)
        }
        all_errors = [inside + outside for inside, outside in zip(self._counts, self._outside, strict=True)]
        errors = merged(dict(by_name(all_errors, place * TYPE_STEP, ERROR_KINDS)) for place in range(len(self.names)))
        return Recorded(requests, self._connects, self._first_calls, tuple(self._spans), errors)

    def _fold_connects(self, records: Records) -> None:
        took = np.array(records.connect_ns, dtype=np.int64)
        if self.per_request:  # those of the warm-up are the warm-up's
            took = took[self._inside(np.array(records.connected_at, dtype=np.int64))]
        self._connects.record(took)

    def _fold_slice(self, sent: Nanoseconds, done: Nanoseconds, outcomes: npt.NDArray[np.uint8], span: Span) -> None:
        answered = (outcomes & (TYPE_STEP - 1)) < FAULT_FIRST
        inside = self._inside(sent)
        if not span.began and answered.any():
            first = int(answered.argmax())
            span.began = True
            if done[first] < self.window.end_ns:  # a starved client may be served when the others have left
                self._first_calls.record(done[first : first + 1] - sent[first : first + 1])
            inside[first] = False
        _add(self._counts, outcomes[inside])
        _add(self._outside, outcomes[~inside])
        if not inside.any():
            return
        measured = inside & answered
        for place, times in enumerate(self._times):
            of_type = measured & (outcomes // TYPE_STEP == place)
            times.record(done[of_type] - sent[of_type])
        span.replies += int(measured.sum())
        places = np.flatnonzero(inside)
        span.first_sent_ns = span.first_sent_ns or int(sent[places[0]])
        span.last_done_ns = int(done[places[-1]])

    def _inside(self, at: Nanoseconds) -> npt.NDArray[np.bool_]:
        return (at >= self.window.start_ns) & (at < self.window.end_ns)


def merged(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of several counts."""
    total: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    return total


def _add(counts: list[int], outcomes: npt.NDArray[np.uint8]) -> None:
    occurred = np.bincount(outcomes, minlength=OUTCOMES)
    for outcome in np.flatnonzero(occurred).tolist():
        counts[outcome] += int(occurred[outcome])
