"""Recorder: *folds* raw records, that is, adds the records to histograms. Records are folded after the run, and also
during the run if there are too many.

A response time begins when the request was due and ends at the reply. A service time begins at the send and ends at the
reply. In a closed loop the two times are equal. The time of a failed request ends at the error. Without the times of
failed requests, more timeouts would make a run look faster. A reply after the request's timeout is an error.

A request belongs to the window in which the request was due, even if the reply came after the window. Requests are
counted at the send, and the number of recorded requests must be equal to this count. Latency leaves out first calls and
failed connects. A connection's first call is timed separately. A failed reconnect counts as an error of the run and not
as a request. A failed first call is an error of the window. The schedule of an open loop has no first calls. So
lateness and rate leave out first calls.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

import numpy as np
import numpy.typing as npt

from clients.load.history.operations import Operation
from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.outcomes import (
    ERROR_KINDS,
    FAULT_FIRST,
    LATE,
    NEVER_SENT,
    OUTCOMES,
    STATUS_NAMES,
    TYPE_STEP,
    by_name,
)
from clients.load.record.dependence import GAPS_MIN, ArrivalCheck, arrival_check
from clients.load.record.records import Records, Window
from clients.load.record.times import Nanoseconds, Times
from stock_service.rpc.errors import Fault

_SLICE = 2**18
"""Number of records that are folded in one step. So folding takes some 30 MB of memory for any number of records."""

SENDS_MAX = 2**22
"""Largest number of sends that are kept for the check of an open loop's arrivals. These sends take 32 MB. If a run has
more sends, only the first part of the run is checked.
"""

Outcomes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class RawRecords:
    """Raw times of every folded request. Requests of the warm-up and first calls are included. The requests of a
    connection are in the order of ``done``.

    Times are in nanoseconds on the clock of ``records``. All columns have the same length.
    """

    due_ns: Nanoseconds
    sent_ns: Nanoseconds
    done_ns: Nanoseconds
    outcomes: Outcomes
    connection: npt.NDArray[np.int32]
    """Number of the connection among the connections of all clients."""
    first: npt.NDArray[np.bool_]
    """True for a connection's first call, answered or failed."""


@dataclass(slots=True)
class Span:
    """Numbers of requests and replies of one connection."""

    connection: int
    began: int = 0
    """Number of requests begun in the whole run, counted at the send."""
    recorded: int = 0
    """Number of requests folded in the whole run. If ``recorded`` is smaller than ``began``, requests were lost."""
    replies: int = 0
    heard: bool = False
    """True if a reply came before the window's end. Replies in the warm-up and replies to first calls count."""
    answered_ns: int | None = None
    """In a closed loop: moment of the last folded reply, if this reply came in the window. Otherwise None."""

    def cut(self, most: int) -> int:
        """Subtracts from ``began`` the number of requests that were under way at an interruption, but at most ``most``.
        Returns the subtracted number.
        """
        under_way = min(most, max(0, self.began - self.recorded))
        self.began -= under_way
        return under_way


@dataclass(frozen=True, slots=True)
class RequestReport:
    """Outcomes and times of the requests of one type in the window. Requests that ended in an error are included."""

    outcomes: Mapping[str, int]
    errors: Mapping[str, int]
    response: Times
    service: Times | None
    """Service times; None in a closed loop, where the service times are the response times."""
    completed: int
    """Number of replies that came within the window. The requests may have been due before the window."""

    @property
    def timed_service(self) -> Times:
        """Service times; in a closed loop the response times, which are equal to the service times."""
        return self.response if self.service is None else self.service


@dataclass(frozen=True, slots=True)
class Recorded:
    """Folded records of one process."""

    requests: Mapping[str, RequestReport]
    connects: Times
    first_calls: Times
    late: Times
    """In an open loop: the lateness of each request in the window, from the due moment to the send."""
    think: Times
    """In a closed loop: times from each reply in the window to the next request on the reply's connection."""
    spans: Sequence[Span]
    errors: Mapping[str, int]
    """Number of errors of the whole run, by kind. Errors outside the window and failed reconnects are included."""
    recorded: int
    """Number of recorded requests of the whole run."""
    arrivals: ArrivalCheck | None
    """In an open loop: the check of the sends in the window against the declared process."""
    raw: RawRecords | None


@dataclass(frozen=True, slots=True)
class ClientReport:
    """Report of one client process at its end."""

    client: int
    recorded: Recorded | None = None
    cpu_s: float = 0.0
    """Processor time that the process used in the window, in seconds."""
    fault: Fault | None = None
    """Fault of a connect that failed. A report with a fault has no other values."""
    interrupted: bool = False
    unanswered: int = 0
    """Number of requests that were under way when the run was interrupted, or that were due and not sent. No other
    count includes these requests."""
    history: tuple[Operation, ...] = ()
    """Operations of a checked run: sent requests with their replies. Empty if the plan has no check."""


@dataclass(slots=True)
class Recorder:
    """Folds the records of all connections of one process. ``fold`` may be called from any thread."""

    plan: LoadPlan
    client: int
    window: Window
    _spans: list[Span] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)  # guards all attributes below
    _counts: list[int] = field(default_factory=lambda: [0] * OUTCOMES)
    _outside: list[int] = field(default_factory=lambda: [0] * OUTCOMES)
    _unconnected: list[int] = field(default_factory=lambda: [0] * OUTCOMES)
    _response: list[Times] = field(default_factory=list)
    _service: list[Times] = field(default_factory=list)
    _connects: Times = field(default_factory=Times)
    _first_calls: Times = field(default_factory=Times)
    _late: Times = field(default_factory=Times)
    _think: Times = field(default_factory=Times)
    _completed: list[int] = field(default_factory=list)  # by request type
    _sends: list[Nanoseconds] = field(default_factory=list)  # of an open loop, in the window, before _sends_until_ns
    _sends_until_ns: int = 2**62
    _raw: list[RawRecords] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._response = [Times() for _ in self.plan.mix]
        self._completed = [0] * len(self.plan.mix)
        self._service = [] if self.plan.rate_hz is None else [Times() for _ in self.plan.mix]

    def new_span(self, number: int) -> Span:
        """Adds a span: the counts of one connection of this client. ``fold`` gets the span together with the
        connection's records."""
        self._spans.append(span := Span(self.client * self.plan.connections_per_client + number))
        return span

    def fold(self, records: Records, span: Span) -> None:
        """Adds a connection's records to the histograms, and empties ``records``. Raises ValueError if a column of
        ``records`` is too short.
        """
        with self._lock:
            self._fold_connects(records)
            for outcome, attempts in records.unconnected.items():
                self._unconnected[outcome] += attempts
            span.began, count = records.started, len(records.outcomes)
            if self.plan.rate_hz is not None and len(records.due) < count:
                raise ValueError(f"{count} requests of an open loop, of which {len(records.due)} were due")
            span.recorded += count
            firsts = np.array(records.firsts, dtype=np.int64)
            for start in range(0, count, _SLICE):
                stop = min(start + _SLICE, count)
                sent = np.array(records.sent[start:stop], dtype=np.int64)
                due = sent if self.plan.rate_hz is None else np.array(records.due[start:stop], dtype=np.int64)
                done = np.array(records.done[start:stop], dtype=np.int64)
                outcomes = np.array(records.outcomes[start:stop], dtype=np.uint8)
                numbers = np.full(len(sent), span.connection, dtype=np.int32)
                first = np.zeros(len(sent), dtype=np.bool_)
                first[firsts[(firsts >= start) & (firsts < stop)] - start] = True
                self._fold_part(RawRecords(due, sent, done, outcomes, numbers, first), span)
            records.clear()

    def recorded(self) -> Recorded:
        """Returns the sums of all records that have been folded so far."""
        names = tuple(self.plan.mix)
        requests = {
            name: RequestReport(
                dict(by_name(self._counts, place * TYPE_STEP, STATUS_NAMES)),
                dict(by_name(self._counts, place * TYPE_STEP, ERROR_KINDS)),
                self._response[place],
                self._service[place] if self._service else None,
                self._completed[place],
            )
            for place, name in enumerate(names)
        }
        every = [inside + outside for inside, outside in zip(self._counts, self._outside, strict=True)]
        by_type = [dict(by_name(every, place * TYPE_STEP, ERROR_KINDS)) for place in range(len(names))]
        return Recorded(
            requests,
            self._connects,
            self._first_calls,
            self._late,
            self._think,
            tuple(self._spans),
            merged([*by_type, dict(by_name(self._unconnected, 0, ERROR_KINDS))]),
            sum(every),
            self._arrivals(),
            joined(self._raw) if self.plan.keep_records else None,
        )

    def _arrivals(self) -> ArrivalCheck | None:
        """Compares the sends of this client with the client's part of the declared arrival process. Returns None in a
        closed loop, and for too few sends.
        """
        if self.plan.rate_hz is None or not self._sends:
            return None
        sends = np.sort(np.concatenate(self._sends))
        if len(sends) <= GAPS_MIN:  # too few for a check
            return None
        return arrival_check(np.diff(sends), self.plan.rate_hz / self.plan.clients, self.plan.arrivals)

    def _fold_connects(self, records: Records) -> None:
        took = np.array(records.connect_ns, dtype=np.int64)
        if self.plan.connection == "per-request":  # connects in the warm-up do not count
            took = took[self._inside(np.array(records.connected_at[: len(took)], dtype=np.int64))]
        self._connects.record(took)

    def _fold_part(self, part: RawRecords, span: Span) -> None:
        part = self._in_time(part)
        if self.plan.keep_records:
            self._raw.append(part)
        answered = (part.outcomes & (TYPE_STEP - 1)) < FAULT_FIRST
        came = part.outcomes[answered & ~part.first & self._inside(part.done_ns)]
        for place, replies in enumerate(np.bincount(came // TYPE_STEP, minlength=len(self._completed)).tolist()):
            self._completed[place] += replies
        span.heard = span.heard or bool((answered & (part.done_ns < self.window.end_ns)).any())
        # a starved client may get its first reply after the window, when the other clients have left: not recorded
        apart = part.first & answered
        self._first_calls.record((part.done_ns - part.sent_ns)[apart & (part.done_ns < self.window.end_ns)])
        inside = self._inside(part.due_ns) & ~apart
        measured = inside & answered
        if self.plan.rate_hz is None:
            self._fold_think(part, inside, measured, span)
        _add(self._counts, part.outcomes[inside])
        _add(self._outside, part.outcomes[~inside])
        if not inside.any():
            return
        span.replies += int(measured.sum())
        response = part.done_ns - part.due_ns
        for place, times in enumerate(self._response):
            of_type = inside & (part.outcomes // TYPE_STEP == place)
            times.record(response[of_type])
            if self.plan.rate_hz is not None:
                sent = of_type & (part.outcomes % TYPE_STEP != NEVER_SENT)
                self._service[place].record((part.done_ns - part.sent_ns)[sent])
        if self.plan.rate_hz is not None:
            scheduled = inside & ~part.first
            self._late.record(np.maximum(part.sent_ns - part.due_ns, 1)[scheduled])
            self._keep_sends(part.sent_ns[scheduled & (part.outcomes % TYPE_STEP != NEVER_SENT)])

    def _in_time(self, part: RawRecords) -> RawRecords:
        """Returns the records, in which each reply after the timeout counts as an error. The senders look for timeouts
        only at intervals, so they may have recorded a late reply as valid.
        """
        late = ((part.outcomes & (TYPE_STEP - 1)) < FAULT_FIRST) & ~part.first
        late &= part.done_ns - part.sent_ns > round(self.plan.timeout_s * 1e9)
        if not late.any():
            return part
        return replace(part, outcomes=np.where(late, part.outcomes // TYPE_STEP * TYPE_STEP + LATE, part.outcomes))

    def _fold_think(
        self, part: RawRecords, inside: npt.NDArray[np.bool_], measured: npt.NDArray[np.bool_], span: Span
    ) -> None:
        """Records the time from each reply to the next request. The first of these times begins at the last reply of
        the previous part of the connection's records.
        """
        think = part.sent_ns[1:] - part.done_ns[:-1]
        self._think.record(np.maximum(think[measured[:-1] & inside[1:]], 1))
        if span.answered_ns is not None and inside[0]:
            self._think.record(np.maximum(part.sent_ns[:1] - span.answered_ns, 1))
        span.answered_ns = int(part.done_ns[-1]) if measured[-1] else None

    def _keep_sends(self, sent_ns: Nanoseconds) -> None:
        """Keeps the sends for the check of arrivals. If there are too many sends, keeps only the sends of the first
        part of the run."""
        self._sends.append(sent_ns[sent_ns < self._sends_until_ns])
        while sum(map(len, self._sends)) > SENDS_MAX:
            self._sends_until_ns = int(np.median(np.concatenate(self._sends)))
            self._sends = [sends[sends < self._sends_until_ns] for sends in self._sends]

    def _inside(self, at: Nanoseconds) -> npt.NDArray[np.bool_]:
        return (at >= self.window.start_ns) & (at < self.window.end_ns)


def joined(parts: Sequence[RawRecords]) -> RawRecords:
    """Records of several connections, concatenated."""
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return RawRecords(none, none, none, none.astype(np.uint8), none.astype(np.int32), none.astype(np.bool_))
    return RawRecords(
        np.concatenate([part.due_ns for part in parts]),
        np.concatenate([part.sent_ns for part in parts]),
        np.concatenate([part.done_ns for part in parts]),
        np.concatenate([part.outcomes for part in parts]),
        np.concatenate([part.connection for part in parts]),
        np.concatenate([part.first for part in parts]),
    )


def merged(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Sum of several counts, key by key."""
    total: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    return total


def _add(counts: list[int], outcomes: npt.NDArray[np.uint8]) -> None:
    occurred = np.bincount(outcomes, minlength=OUTCOMES)
    for outcome in np.flatnonzero(occurred).tolist():
        counts[outcome] += int(occurred[outcome])
