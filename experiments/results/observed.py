"""A block as it was observed: every slice's sums, every arm's histograms, every round's lost time. Plain values.

All results are computed from blocks: rows, ratios, verdicts, figures. Columns are lists with a value for each slice, in
the order of the slices. Times are nanoseconds, but for histograms, which are HdrHistogram's own form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clients.load.record.times import Times
from experiments.design.limits import Limits
from experiments.results.stages import StageSummary

ALL = "all"
"""All request types together."""

KEPT, STARTED_LATE, ANSWERED_LATE, SILENT, FAILED = range(5)
"""Fates of a slice: it counts; a connection began too late; a counted request was answered after the slice's end; no
request was counted in it; its load could not run at all."""

FATES = ("kept", "started late", "answered late", "silent", "failed")


@dataclass(frozen=True, slots=True)
class SliceColumns:
    """Columns, a value for each slice of the block."""

    round: Sequence[int]
    appearance: Sequence[int]
    """Number of the group's appearance. Two slices with the same number may be a pair."""
    arm: Sequence[int]
    """Place of the arm among the sweep's arms."""
    fate: Sequence[int]
    counted_ns: Sequence[int]
    """Length of the counted part."""
    requests: Sequence[int]
    """Requests answered in the whole slice, counted or not."""
    active_ns: Sequence[int]
    """Time from the beginning of the slice to its last reply."""
    server_cpu_ns: Sequence[int]
    """Processor time of the slice's server, in the whole slice; 0 where it could not be read."""
    client_cpu_ns: Sequence[int]
    """Processor time of all clients, in the whole slice."""
    wire_bytes: Sequence[int]
    """Bytes on the loopback in the whole slice, headers included; 0 where they could not be read."""
    counts: Mapping[str, Sequence[int]]
    """Counted requests that were answered, by request type."""
    sums_ns: Mapping[str, Sequence[int]]
    """Sum of their response times."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One request type of an arm in a block: the counted requests of all its kept slices."""

    times: Times
    """Response times."""
    outcomes: Mapping[str, int]
    errors: Mapping[str, int]
    """Requests that got no valid reply, by kind."""
    effective: float
    """Number of independent requests that these are worth for the 99th percentile."""


@dataclass(frozen=True, slots=True)
class HostSeen:
    """One host's share of a window, where other hosts send the load."""

    name: str
    began_within_s: float
    """The host began at most this long after the first host."""
    requests: int
    """Requests that the mean is over: answered, or ended by an error."""
    mean_us: float | None
    """Mean response time; None without requests."""
    core_s: float
    """Processor time of the busiest client, which has one core at most; or of all clients on each of the cores that
    they may use, if that is more."""


@dataclass(frozen=True, slots=True)
class Window:
    """One window of an arm, where windows stand in for slices."""

    rate_hz: float | None
    """Declared requests a second; None: a closed loop."""
    sent_hz: float
    """Requests sent a second, without those that were never sent."""
    answered_hz: float
    """Replies a second that came within the window."""
    starved_clients: int
    """Connections that got no reply."""
    never_sent: int
    late_us_p99: float | None
    duration_s: float = 0.0
    arrival_faults: Sequence[str] = ()
    """Differences of the sends from the declared process."""
    clients_hz: Sequence[float] = ()
    """Replies a second of each client, over its own time; empty where its program does not report it."""
    hosts: Sequence[HostSeen] = ()
    """Each host's share; none where the load was sent from this machine."""


@dataclass(frozen=True, slots=True)
class ArmSeen:
    """One arm in one block."""

    answered: Mapping[str, Answered]
    """Answered requests by request type, and ``all``."""
    think_ns: int = 0
    """Sum of the times from a reply to the next request of the same connection, between counted requests."""
    span_ns: int = 0
    """Sum over slices of the time from each connection's first counted send to its last counted reply."""
    unrecorded: int = 0
    """Requests that its connections began and never wrote down, with those of arms that share the connections."""
    updates: int = 0
    """Updates that the price updater sent in the arm's slices."""
    update_errors: int = 0
    windows: Sequence[Window] = ()
    stages: Mapping[str, StageSummary] = field(default_factory=dict)
    """Stages by request type, and of all requests, where servers stamped them."""


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """One server of a block, after its last slice."""

    threads: int
    connections: int
    memory_mib: float
    processes: int | None = None
    """Number of the server's processes; None in a recording that was made before they were counted."""
    kernel_share: float | None = None
    """The kernel's share of the server's processor time over the block's slices, sampled by clock ticks; None: too
    little time for a share, windows, or a recording that was made before this was read."""
    at_work: int | None = None
    """Threads of the server's executor that ran requests: each computed at least a hundredth of what all threads
    computed over the block. None: threads without a name, too little time, or a recording that was made before this was
    read."""


@dataclass(frozen=True, slots=True)
class RoundSeen:
    """The machine during one round. Ticks are of 10 ms, of all cores."""

    duration_s: float
    steal_ticks: int
    """Ticks that the hypervisor took."""
    foreign_ticks: int | None = None
    """Ticks of processes that are not the sweep's; None where they are not told, or in a recording made before they
    were read."""

    @property
    def lost_ticks(self) -> int:
        """Ticks that the hypervisor and foreign processes took."""
        return self.steal_ticks + (self.foreign_ticks or 0)


def left_out(limits: Limits, rounds: Sequence[RoundSeen], cores: int) -> frozenset[int]:
    """Numbers of a block's rounds that are left out for all arms: rounds in which other processes took the cores.

    Empty where these are over half of the rounds: such a block counts whole, and is marked. So a machine that is always
    busy has numbers too.
    """
    robbed = [number for number, each in enumerate(rounds) if limits.robbed(each.lost_ticks, each.duration_s, cores)]
    return frozenset() if 2 * len(robbed) > len(rounds) else frozenset(robbed)


@dataclass(frozen=True, slots=True)
class Block:
    """One block. ``attempt`` counts from 1: a block that was robbed of time is run once more."""

    number: int
    """Number of the block, from 1."""
    attempt: int
    started_at: str
    """Start of the block, ISO 8601. A label."""
    duration_s: float
    pinned: bool
    calibration_us: float
    """Time of a fixed piece of work on the server's core, before the block."""
    slices: SliceColumns
    arms: Sequence[ArmSeen]
    """Arms in the sweep's order."""
    servers: Sequence[ServerSeen | None]
    """Servers in the sweep's order; None for a process that was not started here."""
    rounds: Sequence[RoundSeen]
    cores: int = 1
    """Cores that this machine had for servers and load."""
    server_cores: Sequence[int] = ()
    """Cores that servers were kept to …"""
    load_cores: Sequence[int] = ()
    """… and the load. None for both: not pinned, or recorded before that was written down."""
    starts: Sequence[int] = ()
    """The order in which servers started, by their places in the sweep. None: each for its turn, or recorded before."""
