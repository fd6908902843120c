"""What the gates look at: plain frozen values of runs, comparisons, intervals, families, sentences, machines.

Whoever measured fills them in; nothing here reads a file or knows a study. Rules: a field says what was *seen*, not
what was intended, unless its text says "declared"; what was not seen is None, and the gate that would need it does not
look (``unchecked`` names it). Times are in microseconds, rates per second, shares from 0 to 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from experiments.gates.predicates import Cell, Level, Predicate
from experiments.stats import Verdict

Levels = Mapping[str, Level]

Measure = Literal["latency", "percentile", "throughput", "capacity", "cpu"]
"""What a comparison is of. ``latency``: the mean; ``capacity``: what a server can do at most, ``throughput``: did."""

TimerStart = Literal["due", "sent", "before receive"]
"""When a timed interval begins. ``before receive``: before the request was there, as in a loop that times its read."""

IntervalKind = Literal["t", "bootstrap", "standard deviation", "standard error"]
"""How the two ends were made. Student's t, and the percentile bootstrap, are 95 % intervals; the others are not."""

Unit = Literal["run", "block", "request"]
"""What was counted as one independent value."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The gaps between one schedule's requests as they were sent, over the measured window."""

    rate_hz: float
    """Declared, of this schedule: where each connection has one of its own, that of one connection."""
    count: int
    gap_us_mean: float
    variation: float
    """Standard deviation of the gaps ÷ their mean: 0 when constant, 1 when exponential."""
    ks_distance: float | None = None
    """Kolmogorov and Smirnov's distance of the gaps from the exponential distribution of the declared rate."""
    dispersion: float | None = None
    """Variance ÷ mean of the counts in equal slices of the window: 1 for a Poisson process."""
    slices: int = 0
    """How many slices those were."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a run was declared to send, and how its generator kept to it."""

    loop: Literal["closed", "open"]
    connections: int
    """Declared, of all clients together."""
    duration_s: float
    """The measured window."""
    warm_up_s: float = 0.0
    starved: int = 0
    """Connections that got no reply in the window: they do not send."""
    policy: Literal["kept-alive", "per-request"] = "kept-alive"
    rate_hz: float | None = None
    """Declared, of an open loop, all connections together."""
    process: Literal["constant", "poisson"] | None = None
    """Declared, of an open loop."""
    scheduled: int | None = None
    """Requests that the schedule had due in the window; None: only the rate is known."""
    late_us_p99: float | None = None
    """From when a request was due to when it was sent."""
    arrivals: Arrivals | None = None
    cpu_share: float | None = None
    """Of the load side's core; of the busiest process where each has a core."""
    spinning: bool = False
    """Whether the generator waits by spinning, so that its processor time says nothing."""

    @property
    def sending(self) -> int:
        """Connections that send."""
        return self.connections - self.starved


@dataclass(frozen=True, slots=True)
class Replies:
    """What became of the requests of the measured window."""

    sent: int
    answered: int
    """With a valid reply, whatever its outcome."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """Requests without a valid reply, by kind."""
    validated: bool = False
    """Whether every reply was checked against its request."""
    errors_timed: bool = False
    """Whether a failed request's time, up to its failure, is in the distribution of times."""
    connects_inside: int = 0
    """Connections made within the window."""
    first_calls_inside: int = 0
    """Connections whose first request is within the window's times."""
    steady: bool | None = None
    """Whether the window was judged to be free of a trend."""

    @property
    def failed(self) -> int:
        """Errors of all kinds."""
        return sum(self.errors.values())


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile of a run's times that is to be published."""

    rank: float
    """99.9 for p99.9."""
    us: float
    effective: float | None = None
    """Independent samples that its autocorrelated ones are worth; None: taken to be all of them."""


@dataclass(frozen=True, slots=True)
class Times:
    """The times of a run's requests, and with what they were taken."""

    clock: str
    """By its own name, such as ``perf_counter_ns``; see ``CLOCKS``."""
    mean_us: float
    unit: str = "us"
    """In which the values here are given."""
    called: Literal["elapsed", "processor"] = "elapsed"
    """What the times are published as."""
    start: TimerStart = "sent"
    percentiles: tuple[Percentile, ...] = ()
    max_us: float | None = None
    think_us_mean: float | None = None
    """From a reply to the next request of the same connection, taken from the records."""
    idle_us_mean: float | None = None
    """Within one timed interval: time in which no request was under way."""
    in_flight_mean: float | None = None
    """Requests under way, averaged over the window, counted from the records and not from these times."""
    lag_1: float | None = None
    """Autocorrelation of successive requests' times."""


@dataclass(frozen=True, slots=True)
class Server:
    """What the server spent."""

    cores: int
    """Cores that it may use."""
    cpu_us_per_request: float | None = None
    demand_us: float | None = None
    """Time of all kinds that one request needs, measured with one client and no other load."""
    demand_us_max: float | None = None
    """The largest part of it that only one request at a time can have: a lock, the interpreter's, one core."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The machine around a run or a sweep. Calibration is a fixed piece of work, timed before and after."""

    steal_share: float | None = None
    """Of the cores' time, given by the hypervisor to others."""
    calibration_us_before: float | None = None
    calibration_us_after: float | None = None


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """One run: one setting of all factors, executed once."""

    run_id: str
    block: int
    order: int
    """Its place within the block."""
    process: str
    """Identifies the server process that answered, such as its id and start time."""
    factors: Levels
    """Every factor as it was set."""
    seen: Levels
    """What was found of them: ``request_bytes``, ``reply_bytes``, ``threads``, ``connections``, ``tcp_nodelay``, …"""
    load: Load
    replies: Replies
    times: Times
    server: Server
    surroundings: Surroundings = Surroundings()
    throughput_hz: float | None = None
    """As published; it must be what the counts say."""

    @property
    def rate_hz(self) -> float:
        """Replies a second, from the counts; 0 for a window that is none."""
        return self.replies.answered / self.load.duration_s if self.load.duration_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class IntervalEvidence:
    """An interval that is to be published as one of 95 %."""

    name: str
    low: float
    high: float
    n: float
    """Values that were taken as independent."""
    unit: Unit
    kind: IntervalKind
    positive: bool = True
    """Whether the quantity can only be over 0: a time, a rate, a ratio."""
    effective: float | None = None
    """For requests: the independent samples that they are worth."""


@dataclass(frozen=True, slots=True)
class AARecord:
    """One round of A/A runs: comparisons of a setting with itself, so that every difference found is false."""

    machine: str
    load: str
    comparisons: int
    false_differences: int
    effect_min: float
    """The smallest ratio over 1 that is told apart here: from the spread of equal arms, or of runs with an injected
    difference."""


@dataclass(frozen=True, slots=True)
class MachineEvidence:
    """The machine and the kind of load of a sweep, and what is known of the instrument there."""

    machine: str
    load: str
    aa: tuple[AARecord, ...] = ()
    surroundings: Surroundings = Surroundings()
    """Of the whole sweep."""


@dataclass(frozen=True, slots=True)
class ComparisonEvidence:
    """One comparison: the runs of its two arms, and what was made of them."""

    name: str
    declared: frozenset[str]
    """The factors that may differ."""
    above: tuple[RunEvidence, ...]
    below: tuple[RunEvidence, ...]
    log_ratios: tuple[float, ...]
    """Of each block, in the blocks' order."""
    interval: IntervalEvidence
    """Of the ratio."""
    verdict: Verdict
    p: float
    """Before correction."""
    p_holm: float | None = None
    """After it; None: not corrected."""
    family: str = ""
    family_size: int = 1
    """Comparisons that were declared together."""
    measure: Measure = "latency"
    rank: float | None = None
    """Of the percentile, where that is the measure."""
    machine: MachineEvidence | None = None

    @property
    def runs(self) -> tuple[RunEvidence, ...]:
        """Of both arms."""
        return self.above + self.below


@dataclass(frozen=True, slots=True)
class FamilyEvidence:
    """The comparisons that were declared together."""

    name: str
    declared: int
    p: tuple[float, ...]
    """Of those that were made."""
    p_adjusted: tuple[float, ...] | None
    """In the same order; None: not corrected."""


@dataclass(frozen=True, slots=True)
class SentenceEvidence:
    """A sentence, what it claims, and all that it claims it of."""

    text: str
    claims: tuple[Predicate, ...]
    cells: tuple[Cell, ...] = ()
    """Every cell of its table, not those alone that suit it."""
    comparisons: tuple[ComparisonEvidence, ...] = ()


Evidence = RunEvidence | ComparisonEvidence | IntervalEvidence | FamilyEvidence | SentenceEvidence | MachineEvidence
