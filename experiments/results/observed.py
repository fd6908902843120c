"""Observations of a block: the sums of every slice, the histograms of every arm, and the lost time of every round.

All results are computed from blocks: rows, ratios, verdicts, figures. A **block** starts every server again, and
measures every arm in rounds. An **arm** is a server under a load. A **slice** is a short load of one arm; a **window**
is a longer load. Columns have one value for each slice, in the order of the slices. Times are in nanoseconds.
Histograms have the form of HdrHistogram.

A run **carries** a percentile if at least ``BEYOND_MIN`` independent values lie on each side of the percentile. Any
other percentile would depend on a few moments of the run, and must not be reported. Requests of one run are not
independent, since slow requests come together. ``clients.load.record.dependence`` computes the number of independent
values.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clients.load.record.times import Times
from experiments.design.limits import Limits
from experiments.results.stages import StageSummary

ALL = "all"
"""Name of all request types together."""

KEPT, STARTED_LATE, ANSWERED_LATE, SILENT, FAILED = range(5)
"""Fates of a slice. KEPT: the slice counts. STARTED_LATE: a connection sent no request before the counted part.
ANSWERED_LATE: a counted request was answered after the end of the slice. SILENT: the slice has no counted request.
FAILED: the load could not run."""

FATES = ("kept", "started late", "answered late", "silent", "failed")
"""Names of the fates in texts, by the fate's number."""

BEYOND_MIN = 10
"""Smallest number of independent values on each side of a reported percentile."""


@dataclass(frozen=True, slots=True)
class SliceColumns:
    """Columns with one value for each slice of the block. In a sweep with windows, the columns have one value for each
    window.
    """

    round: Sequence[int]
    appearance: Sequence[int]
    """Number of the group's appearance in the block. Two slices with equal numbers can be a pair."""
    arm: Sequence[int]
    """Index of the arm in the sweep's arms."""
    fate: Sequence[int]
    counted_ns: Sequence[int]
    """Length of the slice's counted part."""
    requests: Sequence[int]
    """Number of requests that were answered in the whole slice, also outside the counted part."""
    active_ns: Sequence[int]
    """Time from the start of the slice to the slice's last reply."""
    server_cpu_ns: Sequence[int]
    """Processor time of the slice's server, in the whole slice. 0 if unknown."""
    client_cpu_ns: Sequence[int]
    """Processor time of all clients, in the whole slice. If other hosts send the load, the largest ``HostSeen.core_s``.
    """
    wire_bytes: Sequence[int]
    """Bytes on the loopback interface in the whole slice, including headers. 0 if unknown."""
    counts: Mapping[str, Sequence[int]]
    """Numbers of counted requests that were answered, by request type."""
    sums_ns: Mapping[str, Sequence[int]]
    """Sums of the response times of the requests in ``counts``, by request type."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Counted requests of one request type of an arm in a block.

    Replies count only in slices with the fate KEPT or ANSWERED_LATE, in rounds that are not left out. Errors count in
    all slices.
    """

    times: Times
    """Histogram of the response times."""
    outcomes: Mapping[str, int]
    """Numbers of replies, by status."""
    errors: Mapping[str, int]
    """Numbers of requests without a valid reply, by kind of error."""
    effective: float
    """Effective sample size: the number of independent requests that would estimate the 99th percentile as exactly as
    the requests of this block do."""


@dataclass(frozen=True, slots=True)
class HostSeen:
    """Load that one host sent in a window, with its response times. Present only if other hosts send the load."""

    name: str
    began_within_s: float
    """Upper limit of the delay of this host's start after the first host's start."""
    requests: int
    """Number of requests whose times are in ``mean_us``."""
    mean_us: float | None
    """Mean response time. None without requests."""
    core_s: float
    """Processor time on the host's busiest core. The value is the larger of the busiest client's time and the mean over
    the host's cores.
    """


@dataclass(frozen=True, slots=True)
class Window:
    """Rates and lateness of one window of an arm, in a sweep with windows instead of slices."""

    rate_hz: float | None
    """Requests per second that the plan of an open loop asks for. None for a closed loop."""
    sent_hz: float
    """Requests per second that were really sent. Requests in ``never_sent`` do not count."""
    answered_hz: float
    """Replies per second within the window."""
    starved_clients: int
    """Number of connections without a reply. In a closed loop, only replies in the window count. In an open loop, all
    replies of the run count.
    """
    never_sent: int
    """Number of requests that were due in an open loop, but were not sent."""
    late_us_p99: float | None
    """99th percentile of the lateness of an open loop's sends. None in a closed loop."""
    duration_s: float = 0.0
    arrival_faults: Sequence[str] = ()
    """Texts on the differences between the sends and the declared arrival process."""
    clients_hz: Sequence[float] = ()
    """Replies per second of each client, over the running time of this client. Empty if the load program reports no
    such times."""
    hosts: Sequence[HostSeen] = ()
    """Part of the load that each host sent. Empty if the load was sent from this machine."""


@dataclass(frozen=True, slots=True)
class ArmSeen:
    """Observation of one arm in one block."""

    answered: Mapping[str, Answered]
    """Answered requests by request type, and for ``all``."""
    think_ns: int = 0
    """Sum of the think times between counted requests. A think time is the time from a reply to the next request of the
    connection."""
    span_ns: int = 0
    """Time from a connection's first counted send in a slice to its last counted reply. Summed over slices and
    connections.
    """
    unrecorded: int = 0
    """Number of requests that the arm's connections began and never recorded. Only the connection of such a request is
    known. So each arm that shares the connection counts the request.
    """
    updates: int = 0
    """Number of updates that the price updater sent in the arm's slices."""
    update_errors: int = 0
    windows: Sequence[Window] = ()
    stages: Mapping[str, StageSummary] = field(default_factory=dict)
    """Summaries of the stages, by request type, and for ``all``. Empty unless the server recorded its stages."""


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """State of one server of a block, after the last slice of the block."""

    threads: int
    connections: int
    memory_mib: float
    processes: int | None = None
    """Number of the server's processes. None in older recordings."""
    kernel_share: float | None = None
    """Share of the server's processor time that the kernel used during the block's slices. The share is sampled at
    clock ticks. None for too little processor time, for windows, and in older recordings.
    """
    at_work: int | None = None
    """Number of threads of the server's executor that ran requests. A thread counts if it used at least a hundredth of
    the processor time of all threads. None for unnamed threads, for too little processor time, and in older recordings.
    """


@dataclass(frozen=True, slots=True)
class RoundSeen:
    """Processor time that a round lost to the hypervisor and to foreign processes. A tick is 10 ms of a core."""

    duration_s: float
    steal_ticks: int
    """Number of ticks that the hypervisor took."""
    foreign_ticks: int | None = None
    """Number of ticks that processes outside the sweep took. None if unknown, and in older recordings."""

    @property
    def lost_ticks(self) -> int:
        """Number of ticks that the hypervisor and foreign processes took."""
        return self.steal_ticks + (self.foreign_ticks or 0)


def left_out(limits: Limits, rounds: Sequence[RoundSeen], cores: int) -> frozenset[int]:
    """Numbers of the rounds that count for no arm, since other processes took the cores.

    Empty if over half of the rounds would be left out. All rounds of the block then count, and the block is marked. So
    a machine that is always busy also gives results.
    """
    robbed = [number for number, each in enumerate(rounds) if limits.robbed(each.lost_ticks, each.duration_s, cores)]
    return frozenset() if 2 * len(robbed) > len(rounds) else frozenset(robbed)


@dataclass(frozen=True, slots=True)
class Block:
    """One attempt of a block. ``attempt`` counts from 1. A block that lost too much time to other processes may be
    measured once more."""

    number: int
    """Number of the block, from 1."""
    attempt: int
    started_at: str
    """Time of the block's start, ISO 8601 in UTC. No measured value is computed from this time."""
    duration_s: float
    pinned: bool
    calibration_us: float
    """Time of a fixed computation on the server's core, before the block."""
    slices: SliceColumns
    arms: Sequence[ArmSeen]
    """Arms in the sweep's order."""
    servers: Sequence[ServerSeen | None]
    """State of each server, in the sweep's order. None for a server that the sweep did not start."""
    rounds: Sequence[RoundSeen]
    cores: int = 1
    """Number of cores for servers and load."""
    server_cores: Sequence[int] = ()
    """Cores to which the servers were pinned. Empty without pinning, and in older recordings."""
    load_cores: Sequence[int] = ()
    """Cores to which the load was pinned. Empty without pinning, and in older recordings."""
    starts: Sequence[int] = ()
    """Indices of the sweep's servers in the order of their starts. Empty if each server starts with its group, and in
    older recordings.
    """


def is_carried(percent: float, effective: float) -> bool:
    """True if a run with this effective sample size may report the percentile: at least ``BEYOND_MIN`` independent
    values lie below the percentile, and at least ``BEYOND_MIN`` lie above.
    """
    return effective * min(percent, 100 - percent) >= BEYOND_MIN * 100 * (1 - 1e-12)  # a float cannot be exactly 99.9


def needed(percent: float, count: int, effective: float) -> int:
    """Number of requests that a run needs before the percentile may be reported.

    ``count`` is the number of requests of a measured run, and ``effective`` its effective sample size. A longer run is
    assumed to have the same ratio of these two numbers.
    """
    return math.ceil(count / effective * BEYOND_MIN * 100 / min(percent, 100 - percent) - 1e-9)
