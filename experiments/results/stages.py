"""Stages of requests: reads a server's timeline (``stock_service/rpc/timeline.py``), and sums up the stages.

A timeline has several time stamps of each request. A **stage** is the time between two stamps:

- queue_wait   accepted → dequeued: the request waits for a thread
- preparation  dequeued → lock asked for: decoding and checks; on gRPC also the wait for grpcio to deliver the message
- lock_wait    lock asked for → lock acquired; the sum of the waits for several locks
- service      last lock acquired → reply encoded: the change under the lock, and encoding
- reply        reply encoded → end of the call that gives the reply to the kernel or to grpcio
- total        accepted → replied

If a request takes no lock, preparation and lock_wait are 0, and service begins with dequeued. Every mean is over all
requests. So the means of the stages add up to the mean of the total.

The stages up to ``service`` end before the client has its reply. ``reply`` and ``total`` may end later.

A request is a **violation** if a stamp is missing, or if two stamps are in the wrong order. A request is also a
violation if the sum of its stages differs from its total by more than ``SUM_NS``.

The means ignore that requests of one run depend on one another. So the means describe a run, and cannot compare two
servers.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stock_service.rpc.timeline import ABOUT, COLUMNS, FORMAT, NO_METHOD, STAMPS

ALL = "all"
"""Name of all methods together."""

SUM_NS = 50_000
"""Largest allowed difference between the sum of a request's stages and its total, in nanoseconds."""

UNKNOWN_METHOD = "unknown"
"""Name in a summary for all methods that the service does not have."""

Nanoseconds = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stages:
    """Requests of a timeline, in the order of their ends. The fields up to ``thread`` are the columns ``COLUMNS`` of a
    timeline. All time stamps come from one clock.
    """

    accepted_ns: Nanoseconds
    dequeued_ns: Nanoseconds
    asked_ns: Nanoseconds
    """Time at which the request asked for its lock. ``asked_ns`` and ``acquired_ns`` are 0 for a request without a
    lock."""
    acquired_ns: Nanoseconds
    waited_ns: Nanoseconds
    """Sum of the times for which the request waited for its locks."""
    handled_ns: Nanoseconds
    replied_ns: Nanoseconds
    method: Numbers
    """Index of the request's method in ``methods``, or -1 for an unknown method."""
    thread: Numbers
    methods: tuple[str, ...]
    left_out: int
    """Number of requests that ended when the timeline was already full. The timeline lacks these requests."""


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Mean time of a stage."""

    mean_us: float


@dataclass(frozen=True, slots=True)
class StageSummary:
    """Mean stage times of the requests of one method, or of all methods. ``violations`` is the number of requests that
    are violations, by the rules in the module's docstring."""

    count: int
    locked: int
    """Number of requests that asked for a lock."""
    threads: int
    """Number of the server's threads that answered the requests."""
    queue_wait: StageTimes
    preparation: StageTimes
    lock_wait: StageTimes
    service: StageTimes
    reply: StageTimes
    total: StageTimes
    violations: int


def load(path: Path) -> Stages:
    """Timeline of a file, without the requests that had not ended when the file was written. Raises OSError, and
    ValueError for a file of another format."""
    with np.load(path, allow_pickle=False) as archive:
        about, rows = json.loads(archive[ABOUT]), archive[STAMPS]
    if about["format"] != FORMAT or tuple(about["columns"]) != COLUMNS:
        raise ValueError(f"{path}: format {about['format']}, allowed: {FORMAT}")
    ended = rows[rows[:, COLUMNS.index("replied")] != 0]  # other requests had not ended when the file was written
    accepted, dequeued, asked, acquired, waited, handled, replied, method, thread = np.ascontiguousarray(ended.T)
    methods, left_out = tuple(about["methods"]), about["left_out"]
    return Stages(accepted, dequeued, asked, acquired, waited, handled, replied, method, thread, methods, left_out)


def summary(stages: Stages, begins_ns: Nanoseconds | int, ends_ns: Nanoseconds | int) -> dict[str, StageSummary]:
    """Summaries of the requests that were accepted within one or several intervals, by method and for ``ALL``.

    An interval begins at an entry of ``begins_ns``, and ends before the entry of ``ends_ns`` with the same index. The
    intervals must be ascending. A method without requests has no entry. Without any request, ``ALL`` has no entry
    either. Raises ValueError if the timeline was full before the end of the last interval.
    """
    begins_ns, ends_ns = np.atleast_1d(begins_ns), np.atleast_1d(ends_ns)
    if stages.left_out and len(stages.accepted_ns) and ends_ns[-1] > stages.accepted_ns.max():
        raise ValueError(f"the timeline was full before the end: {stages.left_out} requests were left out")
    place = np.searchsorted(begins_ns, stages.accepted_ns, side="right") - 1
    inside = (place >= 0) & (stages.accepted_ns < ends_ns[np.maximum(place, 0)])
    durations, in_violation = _durations(stages), _violations(stages)
    summaries: dict[str, StageSummary] = {}
    for number, name in [*enumerate(stages.methods), (NO_METHOD, UNKNOWN_METHOD)]:
        chosen = inside & (stages.method == number)
        if chosen.any():
            summaries[name] = _summary(stages, durations, in_violation, chosen)
    if inside.any():
        summaries[ALL] = _summary(stages, durations, in_violation, inside)
    return summaries


def _durations(stages: Stages) -> dict[str, Nanoseconds]:
    """Durations in nanoseconds, by the name of the stage, and for ``total``. An array has a value for each request."""
    locked = stages.asked_ns != 0
    return {
        "queue_wait": stages.dequeued_ns - stages.accepted_ns,
        "preparation": np.where(locked, stages.asked_ns - stages.dequeued_ns, 0),
        "lock_wait": stages.waited_ns,
        "service": stages.handled_ns - np.where(locked, stages.acquired_ns, stages.dequeued_ns),
        "reply": stages.replied_ns - stages.handled_ns,
        "total": stages.replied_ns - stages.accepted_ns,
    }


def _violations(stages: Stages) -> npt.NDArray[np.bool_]:
    """Mask of the requests that are violations: a time stamp is missing, two time stamps are in the wrong order, or the
    stages do not add up to the total.
    """
    durations = _durations(stages)
    total = durations.pop("total")
    stamps = (stages.accepted_ns, stages.dequeued_ns, stages.handled_ns, stages.replied_ns)
    missing = np.any([stamp == 0 for stamp in stamps], axis=0) | ((stages.asked_ns == 0) != (stages.acquired_ns == 0))
    backwards = np.any([duration < 0 for duration in durations.values()], axis=0)
    lacking = np.abs(total - sum(durations.values())) > SUM_NS
    broken: npt.NDArray[np.bool_] = missing | backwards | lacking
    return broken


def _summary(
    stages: Stages,
    durations: Mapping[str, Nanoseconds],
    in_violation: npt.NDArray[np.bool_],
    chosen: npt.NDArray[np.bool_],
) -> StageSummary:
    """Summary of the requests that ``chosen`` selects. At least one request must be selected."""
    count, violations = int(chosen.sum()), int(in_violation[chosen].sum())
    return StageSummary(
        count=count,
        locked=int((stages.asked_ns[chosen] != 0).sum()),
        threads=len(np.unique(stages.thread[chosen])),
        violations=violations,
        **{name: StageTimes(float(duration[chosen].mean()) / 1e3) for name, duration in durations.items()},
    )
