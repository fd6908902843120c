"""Reads the timeline that a server wrote (``stock_service/rpc/timeline.py``), and sums its stages up.

A request's stages, each between two of its stamps:

- queue_wait   accepted → dequeued: no thread has begun with it
- preparation  dequeued → it asks for the lock: decoding, checks; on gRPC also waiting for grpcio to hand the message on
- lock_wait    asks → acquires; of several locks, the sum of the waits
- service      acquires the last lock → the reply's bytes are there: the step under the lock, encoding
- reply        the reply's bytes → given to the kernel or to grpcio, and the thread is back from there
- total        accepted → replied

A request that took no lock has a preparation and a lock_wait of 0, and its service begins where it was dequeued. Means
are over all requests, so that the stages' means can be stacked and reach the mean of the total.

``reply`` and with it ``total`` may end after the client has its reply; up to ``service``, all lies before.

A request is in violation if a stamp is missing or two come in the wrong order. It is so too if the stages do not sum to
the total within ``SUM_NS``. Then too much was measured, or too little.

Requests depend on one another, which is not taken into account: these figures describe a run, and compare nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stock_service.rpc.timeline import ABOUT, COLUMNS, FORMAT, NO_METHOD, STAMPS

ALL = "all"
"""The key of all methods together."""

SUM_NS = 50_000
"""Most by which the stages' sum may differ from the total."""

UNKNOWN_METHOD = "unknown"
"""The name of all methods that the service does not have."""

Nanoseconds = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stages:
    """The requests of a timeline, in the order in which they ended; columns of one length, on one clock."""

    accepted_ns: Nanoseconds
    dequeued_ns: Nanoseconds
    asked_ns: Nanoseconds
    """0 where the request took no lock, as is ``acquired_ns``."""
    acquired_ns: Nanoseconds
    waited_ns: Nanoseconds
    """A duration: how long the request waited for all its locks."""
    handled_ns: Nanoseconds
    replied_ns: Nanoseconds
    method: Numbers
    """Its place in ``methods``, or -1."""
    thread: Numbers
    methods: tuple[str, ...]
    left_out: int
    """Requests that ended when the timeline was full."""


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Times of a stage."""

    mean_us: float


@dataclass(frozen=True, slots=True)
class StageSummary:
    """The stages of one method's requests, or of all."""

    count: int
    locked: int
    """Requests that took a lock."""
    threads: int
    """Threads that answered one."""
    queue_wait: StageTimes
    preparation: StageTimes
    lock_wait: StageTimes
    service: StageTimes
    reply: StageTimes
    total: StageTimes
    violations: int


def load(path: Path) -> Stages:
    """A timeline from its file. Raises ValueError for a file of another format, OSError."""
    with np.load(path, allow_pickle=False) as archive:
        about, rows = json.loads(archive[ABOUT]), archive[STAMPS]
    if about["format"] != FORMAT or tuple(about["columns"]) != COLUMNS:
        raise ValueError(f"{path}: format {about['format']}, allowed: {FORMAT}")
    ended = rows[rows[:, COLUMNS.index("replied")] != 0]  # the others were ending when the file was written
    accepted, dequeued, asked, acquired, waited, handled, replied, method, thread = np.ascontiguousarray(ended.T)
    methods, left_out = tuple(about["methods"]), about["left_out"]
    return Stages(accepted, dequeued, asked, acquired, waited, handled, replied, method, thread, methods, left_out)


def summary(stages: Stages, begins_ns: Nanoseconds | int, ends_ns: Nanoseconds | int) -> dict[str, StageSummary]:
    """The stages of the requests accepted within an interval, or several that ascend: by method, and of all together.

    Methods that were not called have no entry; nor has ``ALL`` if none was. Raises ValueError where the timeline was
    full before the last interval's end.
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
    """Each stage of each request, and the total."""
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
    """Which requests break a rule of the module."""
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
    """The chosen requests, of which there is at least one."""
    count, violations = int(chosen.sum()), int(in_violation[chosen].sum())
    return StageSummary(
        count=count,
        locked=int((stages.asked_ns[chosen] != 0).sum()),
        threads=len(np.unique(stages.thread[chosen])),
        violations=violations,
        **{name: StageTimes(float(duration[chosen].mean()) / 1e3) for name, duration in durations.items()},
    )
