"""A/A and A/B on this machine: how often equal arms are called different, and whether a known difference is found.

What is measured comes from outside: ``measure(arms, block)`` does one whole block, with a server process of its own for
either arm, and gives microseconds per request of each (any unit will do, as only ratios count). ``PLAIN`` and
``SLOWED`` are the arms; the slowed one's server computes longer on every request, by ``extra_us`` of what the plain one
showed. It must compute and not sleep, as a sleep ends some 60 µs late.

A/A: both arms are plain. The number of blocks is fixed beforehand, as it is in the studies, so nothing needs
correcting. A/B: an arm is slowed by 10 %. Looking after every block from 6 to 20, and stopping at the first p under
0.05, would call equal arms different in 17 of 100 experiments; so there are three looks, declared beforehand, each at a
third of the level (Bonferroni; simulated, 3 of 100 remain). An experiment ends at the first look that decides. The
first is at 8 blocks: with 6, no p is under 0.05 ÷ 3. Chance says which arm of a block begins, and A/A and A/B
experiments in one random order, so that the time of day is no arm's.

The spread that A/A shows gives the smallest ratio that can be told apart here. That is kept in an ``AaRecord`` for
whoever wants to know the machine; no gate reads it, since every sweep has A/A comparisons of its own for gate 20.
Pure but for ``measure``; chance comes from the plan's seed. Left out: starting servers, and choosing the load.
"""

import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import scipy

from experiments import stats
from experiments.environment import write_at_once
from experiments.gates.machine_gates import false_differences_allowed
from experiments.selfcheck.finding import Finding
from experiments.stats import Estimate, Verdict

PLAIN, SLOWED = "plain", "slowed"

INJECTED = 1.10
"""The slowed arm's response ÷ the plain arm's."""

FOUND_SHARE_MIN = 0.9

POWER = 0.9
"""How often the smallest ratio that can be told apart is found."""

Measure = Callable[[tuple[str, str], int], tuple[float, ...]]
"""Both arms in a block (each block has a number of its own, from 1), that which is to begin being named first:
microseconds per request of each, in the order named. Blocks."""

Announce = Callable[[str], object]
"""Is told, in a line, how far things are."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is run. At most ``aa`` × ``aa_blocks`` + ``ab`` × last look blocks."""

    aa: int
    """A/A experiments."""
    ab: int
    """A/B experiments."""
    aa_blocks: int = 8
    looks: tuple[int, ...] = (8, 13, 20)
    """Numbers of blocks at which an A/B experiment is judged; the last is its end."""
    seed: int = 1

    def __post_init__(self) -> None:
        if min(self.aa, self.ab) < 1:
            raise ValueError(f"{self.aa} A/A and {self.ab} A/B experiments, needed: 1 of each")
        if self.aa_blocks < stats.BLOCKS_MIN:
            raise ValueError(f"{self.aa_blocks} blocks of A/A, needed: {stats.BLOCKS_MIN}")
        first = stats.blocks_min(max(1, len(self.looks)))
        if not self.looks or list(self.looks) != sorted(set(self.looks)) or self.looks[0] < first:
            raise ValueError(f"looks at {self.looks} blocks, needed: ascending, from {first} for so many looks")


MINUTES = Plan(aa=8, ab=4)
"""At most 144 blocks, mostly some 100: some 3 s each, its servers' start included: five minutes or six."""

OVERNIGHT = Plan(aa=40, ab=40, aa_blocks=12)
"""At most 1,280 blocks."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One experiment: of its arms, the first is above the line."""

    arms: tuple[str, str]
    log_ratios: tuple[float, ...]
    """One per block."""
    ratio: Estimate
    """At the confidence of the look that ended it: 95 % for A/A, and 98.3 % with three looks."""
    verdict: Verdict

    @property
    def is_aa(self) -> bool:
        """Whether its arms were equal."""
        return self.arms[0] == self.arms[1]

    @property
    def differs(self) -> bool:
        """Whether they were called different."""
        return self.verdict in (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True, slots=True)
class AaRecord:
    """What a round of A/A and A/B experiments showed of a machine under a load."""

    machine: str
    load: str
    """In words."""
    measured_on: str
    """ISO 8601 date."""
    comparisons: int
    """A/A."""
    false_differences: int
    ab_comparisons: int
    found: int
    """A/B experiments that ended as they had to: the slowed arm SLOWER."""
    deviation: float
    """Of a block's log-ratio of equal arms, about 0."""
    blocks: int
    """That ``effect_min`` speaks of: the last look."""
    effect_min: float
    """The smallest ratio over 1 that so many blocks tell apart in 9 of 10 experiments; infinite where the injected 10 %
    were not found."""

    def smallest_ratio(self, blocks: int) -> float:
        """The smallest ratio over 1 that this number of blocks tells apart; the load and the machine as they were."""
        return smallest_ratio(self.deviation, blocks)


def extra_us(response_us: float, connections: int = 1) -> float:
    """What the slowed arm's server must compute longer per request, for responses of closed loops to grow by 10 %.

    With one connection that is a tenth of the plain arm's mean response. With more, if the server is what limits, every
    request waits for those before it: the response is connections × the time that the server needs for one.
    """
    if not response_us > 0 or connections < 1:
        raise ValueError(f"{response_us:g} µs on {connections} connections, allowed: over 0, from 1")
    return (INJECTED - 1) * response_us / connections


def smallest_ratio(deviation: float, blocks: int) -> float:
    """The ratio over 1 that a comparison of this deviation of log-ratios finds in 9 of 10 experiments, at 5 %.

    The usual sum of two quantiles of Student's t, a little on the safe side. ValueError for under six blocks.
    """
    if blocks < stats.BLOCKS_MIN:
        raise ValueError(f"{blocks} blocks, needed: {stats.BLOCKS_MIN}")
    quantiles = float(scipy.stats.t.ppf(1 - stats.ALPHA / 2, blocks - 1)) + float(scipy.stats.t.ppf(POWER, blocks - 1))
    return math.exp(quantiles * deviation / math.sqrt(blocks))


def run(measure: Measure, plan: Plan, announce: Announce | None = None) -> list[Outcome]:
    """Does all experiments of a plan, one after the other. Blocks; lets pass what ``measure`` raises."""
    rng = random.Random(plan.seed)
    experiments = [(PLAIN, PLAIN)] * plan.aa + [(SLOWED, PLAIN)] * plan.ab
    rng.shuffle(experiments)
    outcomes: list[Outcome] = []
    block = 0
    for number, arms in enumerate(experiments, 1):
        looks = (plan.aa_blocks,) if arms[0] == arms[1] else plan.looks
        log_ratios: list[float] = []
        for look in looks:
            while len(log_ratios) < look:
                block += 1
                log_ratios.append(_log_ratio(measure, arms, block, rng))
            outcome = judged(arms, log_ratios, len(looks))
            if outcome.verdict is not Verdict.INCONCLUSIVE:
                break
        outcomes.append(outcome)
        if announce is not None:
            announce(f"{number} of {len(experiments)}: {_described(outcome)}")
    return outcomes


def judged(arms: tuple[str, str], log_ratios: Sequence[float], looks: int) -> Outcome:
    """One experiment as its blocks so far decide it, at one of so many looks that were declared beforehand."""
    ratio = stats.ratio_interval(log_ratios, 1 - (1 - stats.CONFIDENCE) / looks)
    p = min(1.0, looks * stats.sign_flip_p(log_ratios, seed=len(log_ratios)))
    return Outcome(arms, tuple(log_ratios), ratio, stats.judge(ratio, p))


def recorded(outcomes: Sequence[Outcome], plan: Plan, machine: str, load: str, measured_on: str) -> AaRecord:
    """The record of a round. The deviation is about 0, so that a difference that equal arms share would count."""
    aa, ab = _parted(outcomes)
    squares = [value**2 for outcome in aa for value in outcome.log_ratios]
    deviation = math.sqrt(sum(squares) / len(squares))
    found = sum(outcome.verdict is Verdict.SLOWER for outcome in ab)
    blocks = plan.looks[-1]
    return AaRecord(
        machine=machine,
        load=load,
        measured_on=measured_on,
        comparisons=len(aa),
        false_differences=sum(outcome.differs for outcome in aa),
        ab_comparisons=len(ab),
        found=found,
        deviation=deviation,
        blocks=blocks,
        effect_min=smallest_ratio(deviation, blocks) if found >= FOUND_SHARE_MIN * len(ab) else math.inf,
    )


def findings(outcomes: Sequence[Outcome], record: AaRecord) -> Iterator[Finding]:
    """What a round showed, beside what it must."""
    aa, ab = _parted(outcomes)
    allowed = false_differences_allowed(len(aa))
    ratios = [outcome.ratio.value for outcome in aa]
    yield Finding(
        "A/A: equal arms",
        f"{record.false_differences} of {len(aa)} called different (ratios {min(ratios):.3f} to {max(ratios):.3f})",
        f"at most {allowed} of {len(aa)}",
        record.false_differences <= allowed,
    )
    needed = math.ceil(FOUND_SHARE_MIN * len(ab) - 1e-9)
    pooled = stats.mean_interval([value for outcome in ab for value in outcome.log_ratios])
    blocks = [len(outcome.log_ratios) for outcome in ab]
    yield Finding(
        f"A/B: an arm slowed by {INJECTED - 1:.0%}",
        f"{record.found} of {len(ab)} found, after {min(blocks)} to {max(blocks)} blocks "
        f"(the ratio over all: {math.exp(pooled.value):.3f})",
        f"at least {needed} of {len(ab)}, within {record.blocks} blocks",
        record.found >= needed,
    )
    smallest = record.smallest_ratio(record.blocks)
    yield Finding(
        "the smallest difference that can be told apart",
        f"{smallest - 1:.1%} with {record.blocks} blocks, {record.smallest_ratio(9) - 1:.1%} with 9 "
        f"(deviation of a block's log-ratio {record.deviation:.3f})",
        f"at most {INJECTED - 1:.0%} with {record.blocks} blocks",
        smallest <= INJECTED,
    )


def save(record: AaRecord, file: Path) -> None:
    """Writes a record as JSON, whole or not at all. Raises OSError."""
    values = asdict(record) | {"effect_min": None if math.isinf(record.effect_min) else record.effect_min}
    write_at_once(file, json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def _log_ratio(measure: Measure, arms: tuple[str, str], block: int, rng: random.Random) -> float:
    """Both arms of a block; chance says which begins. ValueError for a time not over 0."""
    first, second = rng.sample((0, 1), 2)
    seen = measure((arms[first], arms[second]), block)
    if not all(0 < each < math.inf for each in seen):
        raise ValueError(f"{seen} µs per request in block {block}, allowed: over 0")
    return math.log(seen[first] / seen[second])  # where the second begins, seen is the other way round


def _parted(outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[Outcome]]:
    """A/A and A/B; ValueError where there are none of either."""
    aa, ab = [one for one in outcomes if one.is_aa], [one for one in outcomes if not one.is_aa]
    if not aa or not ab:
        raise ValueError(f"{len(aa)} A/A and {len(ab)} A/B experiments, needed: 1 of each")
    return aa, ab


def _described(outcome: Outcome) -> str:
    ratio = outcome.ratio
    name = "A/A" if outcome.is_aa else "A/B"
    return f"{name} {ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f}), {ratio.n} blocks: {outcome.verdict.value}"
