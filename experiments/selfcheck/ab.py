"""A/A and A/B on this machine: the judgement must call equal arms equal, and must call an arm slower that was slowed by
5 %.

An **arm** is a server under a load. A **triple** is a sweep of ``compare`` with three servers of an echo service: A, a
copy of A with the same setting, and B. A and its copy are the A/A pair. A and B are the A/B pair. For each request, B
computes longer than A (factor ``cpu_ms``), by 5 % of A's typical response time. B does not sleep, since a sleep ends
some 60 µs late. The load is a closed loop with one connection, so the added time lengthens the response time by exactly
this time. A's response time is measured first, in a separate block. The number of blocks is fixed, so the intervals
need no correction for looks (judgements before the end).

The version for minutes has one triple for each transport. The version for a night has 60 triples, of both transports in
turn. Suppose that each A/A pair is called different with a probability of 5 %. Then more than six of 60 pairs are
called different in only 3 of 100 nights.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.compare.sweep import COMPARED, ROUNDS
from experiments.compare.sweep import sweep as compared
from experiments.design.setting import read
from experiments.design.sweep import Sweep
from experiments.judge import ratios
from experiments.judge.stats import Estimate
from experiments.judge.verdicts import APART, Judged, Verdict, judge
from experiments.results.observed import ALL, Block
from experiments.selfcheck.finding import Finding
from experiments.selfcheck.load import LoadFailed, Measure, found, measured

INJECTED = 1.05
"""Ratio of B's response time to A's."""

HALF_WIDTHS: Mapping[str, float] = {"sockets": 0.02, "grpc": 0.04}
"""Largest allowed half width of an A/A pair's 95 % interval, by transport."""

OVERNIGHT_AA_MAX, OVERNIGHT_AB_MIN = 6, 48
"""Bounds for 60 triples. ``OVERNIGHT_AA_MAX``: largest number of A/A pairs that may be called different.
``OVERNIGHT_AB_MIN``: smallest number of A/B pairs in which B must be found slower."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Size of the check. ``MINUTES`` is for minutes, ``OVERNIGHT`` is for a night."""

    triples: int
    """Number of triples of each transport."""
    blocks: int
    rounds: int


MINUTES = Scale(triples=1, blocks=20, rounds=ROUNDS)
OVERNIGHT = Scale(triples=30, blocks=20, rounds=ROUNDS)


@dataclass(frozen=True, slots=True)
class Triple:
    """Judgements on a triple."""

    transport: str
    same: Judged
    """Judgement on the A/A pair."""
    slowed: Judged
    """Judgement on the A/B pair, B ÷ A."""

    @property
    def called_different(self) -> bool:
        """True if the equal arms were called different."""
        return self.same.verdict in APART

    @property
    def found(self) -> bool:
        """True if the slowed arm was found to be slower."""
        return self.slowed.verdict is Verdict.SLOWER


def check(scale: Scale, measure: Measure = measured) -> list[Finding]:
    """Measures and judges the triples. The call takes four minutes with the scale ``MINUTES``. Raises
    KeyboardInterrupt.
    """
    return found("A/A and A/B", "equal arms equal, a slowed one slower", lambda: _check(scale, measure))


def _check(scale: Scale, measure: Measure) -> list[Finding]:
    triples = []
    for number in range(1, scale.triples + 1):
        for transport in HALF_WIDTHS:
            triples.append(triple(transport, scale, number, measure))
            print(f"  {number} of {scale.triples}, {described(triples[-1])}", file=sys.stderr)
    return list(of_many(triples) if scale.triples > 1 else of_each(triples))


def triple(transport: str, scale: Scale, seed: int, measure: Measure) -> Triple:
    """Measures and judges a triple. Raises LoadFailed if the A/A comparison or the A/B comparison has no value in any
    block."""
    of_a = replace(design(transport, 0.0, scale, seed), rounds=max(4, scale.rounds // 4))
    sweep = design(transport, (INJECTED - 1) * typical_us(of_a, measure(of_a, 1)), scale, seed)
    judged = judge(sweep, [measure(sweep, number) for number in range(1, scale.blocks + 1)]).judged
    names = (f"same {sweep.arms[0].name}", COMPARED)
    if not set(names) <= judged.keys():
        raise LoadFailed(f"{transport}: no block of {scale.blocks} has values of both A/A and A/B")
    return Triple(transport, *(judged[name] for name in names))


def typical_us(sweep: Sweep, block: Block) -> float:
    """Response time of the first arm in µs: the median of the mean times of its slices. Pauses of the machine have
    little effect on this median.

    Raises LoadFailed if no request was answered in a slice that counts.
    """
    totals, counts, arm = (
        np.asarray(column) for column in (block.slices.sums_ns[ALL], block.slices.counts[ALL], block.slices.arm)
    )
    own = ratios.used(sweep.limits, block) & (arm == 0) & (counts > 0)
    if not own.any():
        raise LoadFailed("A answered nothing in a block of its own")
    return float(np.median(totals[own] / counts[own])) / 1000


def design(transport: str, extra_us: float, scale: Scale, seed: int) -> Sweep:
    """Plan of the sweep of a triple. For each request, B computes longer than A, by ``extra_us``. If ``extra_us`` is 0,
    B equals A."""
    plain = read(f"{transport} service=echo mix=echo")
    of = compared(plain, plain.but(cpu_ms=extra_us / 1000), (scale.blocks,), seed)
    return replace(of, rounds=scale.rounds)


def half_width(ratio: Estimate) -> float:
    """Half the width of an interval, as a share of the ratio: upper end ÷ ratio − 1."""
    return ratio.high / ratio.value - 1


def of_each(triples: Sequence[Triple]) -> Iterator[Finding]:
    """Findings on each triple."""
    for one in triples:
        same, most = one.same.typical, HALF_WIDTHS[one.transport]
        yield Finding(
            f"A/A, {one.transport}",
            f"{_text(same)}, ± {half_width(same):.1%}",
            f"an interval that contains 1, ± {most:.0%} at most",
            same.low <= 1 <= same.high and half_width(same) <= most,
        )
        yield Finding(
            f"A/B, {one.transport}: an arm slowed by {INJECTED - 1:.0%}",
            f"{_text(one.slowed.typical)}: {one.slowed.verdict.value}",
            Verdict.SLOWER.value,
            one.found,
        )


def of_many(triples: Sequence[Triple]) -> Iterator[Finding]:
    """Findings on the triples of a night. The bounds are for 60 triples, and are scaled to the number of triples."""
    different, b_found = sum(each.called_different for each in triples), sum(each.found for each in triples)
    ratios_seen = [each.same.typical.value for each in triples]
    yield Finding(
        "A/A: equal arms",
        f"{different} of {len(triples)} called different (ratios {min(ratios_seen):.3f} to {max(ratios_seen):.3f})",
        f"at most {OVERNIGHT_AA_MAX} of 60",
        60 * different <= OVERNIGHT_AA_MAX * len(triples),
    )
    yield Finding(
        f"A/B: an arm slowed by {INJECTED - 1:.0%}",
        f"{b_found} of {len(triples)} found",
        f"at least {OVERNIGHT_AB_MIN} of 60",
        60 * b_found >= OVERNIGHT_AB_MIN * len(triples),
    )


def described(one: Triple) -> str:
    """Text of a triple, in one line."""
    return f"{one.transport}: A/A {_text(one.same.typical)}, A/B {_text(one.slowed.typical)}"


def _text(ratio: Estimate) -> str:
    return f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
