"""A block as it was observed: every slice's sums, every arm's histograms, every round's lost time. Plain values.

All that is said later is computed from blocks: rows, ratios, verdicts, figures. Columns are lists with a value for each
slice, in the order of the slices. Times are nanoseconds, but for histograms, which are HdrHistogram's own form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clients.load.record.times import Times
from experiments.design.limits import Limits
from experiments.results.stages import StageSummary

ALL = "all"
"""All request types together."""

KEPT, STARTED_LATE, ANSWERED_LATE, SILENT, FAILED = range(5)
"""Fates of a slice: it counts; a connection began too late; a counted request was answered after the slice's end;
nothing was counted in it; its load could not be run at all."""

FATES = ("kept", "started late", "answered late", "silent", "failed")


@dataclass(frozen=True, slots=True)
class SliceColumns:
    """Columns, a value for each slice of the block."""

    round: Sequence[int]
    appearance: Sequence[int]
    """Slices of one appearance of a group have the same number."""
    arm: Sequence[int]
    """By its place among the sweep's arms."""
    fate: Sequence[int]
    counted_ns: Sequence[int]
    """Length of the counted part."""
    requests: Sequence[int]
    """Answered in the whole slice, counted or not."""
    active_ns: Sequence[int]
    """From the slice's begin to its last reply."""
    server_cpu_ns: Sequence[int]
    """Of the slice's server, in the whole slice; 0 where it could not be read."""
    client_cpu_ns: Sequence[int]
    """Of all clients, in the whole slice."""
    wire_bytes: Sequence[int]
    """Of the loopback in the whole slice, headers included; 0 where it could not be read."""
    counts: Mapping[str, Sequence[int]]
    """Counted requests that were answered, by request type."""
    sums_ns: Mapping[str, Sequence[int]]
    """Their response times, added up."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One request type of an arm in a block: the counted requests of all its kept slices."""

    times: Times
    """Response times."""
    outcomes: Mapping[str, int]
    errors: Mapping[str, int]
    """Requests that got no valid reply, by kind."""
    effective: float
    """Number of independent requests that they are worth for the 99th percentile."""


@dataclass(frozen=True, slots=True)
class HostSeen:
    """One host's share of a window, where other hosts send the load."""

    name: str
    began_within_s: float
    """The host began at most this long after the first host."""
    requests: int
    mean_us: float | None
    """Mean response time; None where no request was answered."""
    core_s: float
    """Processor time of the host's clients on each of the cores that they may use."""


@dataclass(frozen=True, slots=True)
class Window:
    """One window of an arm, where windows stand in for slices."""

    rate_hz: float | None
    """Due a second, as declared; None: a closed loop."""
    sent_hz: float
    """Requests sent a second, without those that were never sent."""
    answered_hz: float
    """Replies that came within the window, a second."""
    starved_clients: int
    """Connections that got no reply: a client is one, or several."""
    never_sent: int
    late_us_p99: float | None
    duration_s: float = 0.0
    arrival_faults: Sequence[str] = ()
    """Differences of the sends from the declared process."""
    clients_hz: Sequence[float] = ()
    """Replies a second of each client, over its own time; none where its program does not say it."""
    hosts: Sequence[HostSeen] = ()
    """Each host's share; none where the load was sent from this machine."""


@dataclass(frozen=True, slots=True)
class ArmSeen:
    """One arm in one block."""

    answered: Mapping[str, Answered]
    """By request type, and ``all``."""
    think_ns: int = 0
    """From a reply to the next request of the same connection, added up, between counted requests."""
    span_ns: int = 0
    """From each connection's first counted send to its last counted reply, added up over slices."""
    unrecorded: int = 0
    """Requests that its connections began and never wrote down; those of arms that share the connections too."""
    updates: int = 0
    """Updates that the price updater sent in its slices."""
    update_errors: int = 0
    windows: Sequence[Window] = ()
    stages: Mapping[str, StageSummary] = field(default_factory=dict)
    """By request type, and of all; where servers stamped them."""


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """One server of a block, after its last slice."""

    threads: int
    connections: int
    memory_mib: float
    cpu_s: float
    """Of its whole life."""
    processes: int | None = None
    """Number of its processes; None: recorded before that was counted."""
    kernel_share: float | None = None
    """Of its processor time over the block's slices, the kernel's, as the system's clock ticks sampled it; None: too
    little for a share, windows, or recorded before that was read."""
    at_work: int | None = None
    """Threads of its executor that ran requests: each with a hundredth at least of what all of these computed over the
    block's slices or windows. None: threads without a name, too little computed, or recorded before that was read."""


@dataclass(frozen=True, slots=True)
class RoundSeen:
    """The machine during one round. Ticks are of 10 ms, of all cores."""

    duration_s: float
    steal_ticks: int
    """Ticks that the hypervisor took."""
    foreign_ticks: int | None = None
    """Ticks of processes that are none of the sweep's; None: recorded before that was read, or not to be told."""

    @property
    def lost_ticks(self) -> int:
        """Ticks that others took, whoever they were."""
        return self.steal_ticks + (self.foreign_ticks or 0)


def left_out(limits: Limits, rounds: Sequence[RoundSeen], cores: int) -> frozenset[int]:
    """The numbers of a block's rounds that are left out for all arms: those in which others took the cores.

    None where these are over half of them: such a block stands whole, marked. So a machine that is always busy has
    numbers too.
    """
    robbed = [number for number, each in enumerate(rounds) if limits.robbed(each.lost_ticks, each.duration_s, cores)]
    return frozenset() if 2 * len(robbed) > len(rounds) else frozenset(robbed)


@dataclass(frozen=True, slots=True)
class Block:
    """One block. ``attempt`` counts from 1: a block that was robbed of time is run once more."""

    number: int
    """From 1."""
    attempt: int
    started_at: str
    """ISO 8601, a label."""
    duration_s: float
    pinned: bool
    calibration_us: float
    """A fixed piece of work on the server's core, before the block."""
    slices: SliceColumns
    arms: Sequence[ArmSeen]
    """In the sweep's order."""
    servers: Sequence[ServerSeen | None]
    """In the sweep's order; None: a process that was not started here."""
    rounds: Sequence[RoundSeen]
    cores: int = 1
    """Cores that this machine had for servers and load."""
    server_cores: Sequence[int] = ()
    """Cores that servers were kept to …"""
    load_cores: Sequence[int] = ()
    """… and the load. None for both: not pinned, or recorded before that was written down."""
    starts: Sequence[int] = ()
    """The order in which servers started, by their places in the sweep. None: each for its turn, or recorded before."""
