"""Verdicts: what a sweep's blocks say of each comparison, at a look that was declared beforehand.

A ratio of times is FASTER or SLOWER if its interval excludes 1 and Holm's p is under the look's level. A ratio of
processor times is then LESS or MORE. It is EQUIVALENT if it is neither and the interval lies inside 0.95 to 1.05.
Otherwise it is INCONCLUSIVE, with the number of blocks that would decide. Growth with the clients has two verdicts,
against 1 and against the number of clients. Around that number lies the same zone as around 1: an interval from 1.92 to
1.96 with twice the clients is SUBLINEAR by less than 5 %. An interval's confidence is 1 − the look's level. A sweep
that stands at no look has no verdicts: its numbers are shown, with the blocks done and planned. Where the load took
over 80 % of its core in a closed loop, the times are those of client and server together: then there is no verdict on
the server. Steps of a curve and ratios of cells are ruled by the same test (``ruled``), in words of their own: GROWS,
FALLS, FLAT; LESS, MORE, EQUIVALENT. Pure.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from experiments.design.arms import Comparison
from experiments.design.limits import Limits
from experiments.design.sweep import Sweep
from experiments.judge import ratios
from experiments.judge.gates import Refusal, block_refusals, far_end, halves_contradict, limiting_load, too_small
from experiments.judge.stats import Deviation, Estimate, blocks_needed, holm, ratio_interval, sign_flip_p
from experiments.results.observed import Block


class Verdict(Enum):
    """Verdict on a comparison, in the words of its kind."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    EQUIVALENT = "EQUIVALENT"
    FALLS = "FALLS"
    GROWS = "GROWS"
    FLAT = "FLAT"
    SUBLINEAR = "SUBLINEAR"
    SUPERLINEAR = "SUPERLINEAR"
    PROPORTIONAL = "PROPORTIONAL"
    LESS = "LESS"
    MORE = "MORE"
    INCONCLUSIVE = "INCONCLUSIVE"


Words = tuple[Verdict, Verdict, Verdict]
"""Verdicts for a ratio under, over and about the value that it is tested against."""

OF_TIMES: Words = (Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT)
OF_QUANTITIES: Words = (Verdict.LESS, Verdict.MORE, Verdict.EQUIVALENT)
OF_GROWTH: Words = (Verdict.FALLS, Verdict.GROWS, Verdict.FLAT)

_AGAINST_CLIENTS: Words = (Verdict.SUBLINEAR, Verdict.SUPERLINEAR, Verdict.PROPORTIONAL)

APART = (Verdict.FASTER, Verdict.SLOWER, Verdict.LESS, Verdict.MORE)
"""Verdicts that tell two arms apart."""


def ruled(words: Words, at: Estimate, p_holm: float, level: float, limits: Limits) -> Verdict:
    """Verdict of one test. ``at``: the ratio ÷ the value that it is tested against, its interval of 1 − the level."""
    under, over, about = words
    if p_holm < level and (at.high < 1 or at.low > 1):
        return under if at.high < 1 else over
    return about if limits.equivalent_low < at.low and at.high < limits.equivalent_high else Verdict.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Ruling:
    """One test of a comparison: against 1, or against the ratio of the clients."""

    against: float
    p_holm: float
    verdict: Verdict
    blocks_needed: int | None = None
    """Blocks in all that decide with 80 % power, for INCONCLUSIVE; None: over 1000, or unknown."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One comparison, judged. Ratios are of A ÷ B."""

    comparison: Comparison
    log_ratios: Mapping[int, float]
    """Typical log-ratio of each block that counts, by the block's number."""
    typical: Estimate
    whole: Estimate
    rulings: tuple[Ruling, ...]
    """Rulings: one, or two for growth, against 1 and against the clients. Empty without verdicts."""
    refusals: tuple[Refusal, ...] = ()
    """Refusals of gates against its verdict."""
    dropped: Mapping[int, tuple[Refusal, ...]] = field(default_factory=dict)
    """Blocks that gates left out of it, with the refusals."""
    equivalent: tuple[float, float] = (0.95, 1.05)
    """Both ends of the zone in which a ratio counts as no difference."""
    confidence: float = 0.95
    """Confidence of both intervals."""
    load_share: float | None = None
    """Share of its core that the load took, where the load was the limit. Then there are no rulings …"""
    together: tuple[Ruling, ...] = ()
    """… but these rulings, on client and server together."""
    between: Deviation | None = None
    """Deviation between earlier runs on such a machine; None where too few runs are known."""

    @property
    def verdict(self) -> Verdict:
        """Verdict of the first ruling; INCONCLUSIVE without rulings."""
        return self.rulings[0].verdict if self.rulings else Verdict.INCONCLUSIVE

    @property
    def decided(self) -> bool:
        """True where there are rulings, and no ruling is INCONCLUSIVE."""
        return bool(self.rulings) and all(each.verdict is not Verdict.INCONCLUSIVE for each in self.rulings)

    @property
    def is_settled(self) -> bool:
        """True where more blocks would change nothing: the comparison is decided, or cannot have a verdict on the
        server."""
        return self.decided or bool(self.together)

    @property
    def survives(self) -> bool:
        """True where every verdict would be the same with an interval widened by the deviation between runs."""
        return all(map(self._survives, self.rulings))

    def _survives(self, ruling: Ruling) -> bool:
        reach = self.between.reach if self.between else 0.0
        middle = (math.log(self.typical.low) + math.log(self.typical.high)) / 2
        half = math.hypot(math.log(self.typical.high) - middle, reach)
        low, high = (middle + side * half - math.log(ruling.against) for side in (-1, 1))
        if ruling.verdict in _NO_EFFECT:
            return math.log(self.equivalent[0]) < low and high < math.log(self.equivalent[1])
        return low > 0 or high < 0

    @property
    def as_clients_see_it(self) -> "Judged":
        """The same judgement. Where the load was the limit, its rulings are those on client and server together."""
        return replace(self, rulings=self.together, together=()) if self.together else self

    @property
    def by_less_than_5(self) -> bool:
        """True where the first ruling is a small difference."""
        return bool(self.rulings) and self.is_small(self.rulings[0])

    def is_small(self, ruling: Ruling) -> bool:
        """True where a ruling is a difference whose interval lies inside 0.95 to 1.05 of the value that it is tested
        against."""
        (low, high), against = self.equivalent, ruling.against
        inside = low < self.typical.low / against and self.typical.high / against < high
        return inside and ruling.verdict not in _NO_EFFECT

    @property
    def typical_is_not_whole(self) -> bool:
        """True where the two intervals do not meet, so that both have to be shown."""
        return self.typical.high < self.whole.low or self.whole.high < self.typical.low


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judgement of a sweep by the blocks so far."""

    sweep: Sweep
    blocks: tuple[Block, ...]
    judged: Mapping[str, Judged]
    """Judged comparisons by name. A comparison without a value yet is missing."""
    look: int | None
    """Number of blocks of the look; None: the sweep stands at no look, and has no verdicts."""

    @property
    def confidence(self) -> float:
        """Confidence of the intervals."""
        return 1 - self.sweep.level

    @property
    def decided(self) -> bool:
        """True where every headline comparison is settled, and none of their intervals holds the sweep's limit, if it
        has one."""
        headline = [each.name for each in self.sweep.comparisons if each.family == "headline"]
        return all(name in self.judged and self._is_decided(self.judged[name]) for name in headline)

    def _is_decided(self, one: Judged) -> bool:
        limit = self.sweep.apart_from
        return one.is_settled and (limit is None or not one.typical.low <= limit <= one.typical.high)

    def comparisons(self, family: str) -> Iterator[Judged]:
        """Judged comparisons of a family, in the order in which they were declared."""
        return (each for each in self.judged.values() if each.comparison.family == family)


def judge(sweep: Sweep, blocks: Sequence[Block]) -> Judgement:
    """Judges a sweep by the blocks so far. Verdicts only at a declared look, of a sweep whose every look could
    decide."""
    look = len(blocks) if len(blocks) in sweep.looks and sweep.has_verdicts else None
    values = {
        name: one for name, one in ((each.name, _values(sweep, blocks, each)) for each in sweep.comparisons) if one
    }
    return Judgement(sweep, tuple(blocks), judge_values(sweep, values, look is not None), look)


def judge_values(sweep: Sweep, values: "Mapping[str, Values]", at_a_look: bool) -> dict[str, Judged]:
    """Judges the comparisons' values, by name. Verdicts need a sweep that stands at a look."""
    families: dict[str, list[_Test]] = defaultdict(list)
    for each in sweep.comparisons:
        families[each.family] += _tests(each)
    rulings: dict[str, list[Ruling]] = defaultdict(list)
    for tests in families.values() if at_a_look else ():
        for test, ruling in zip(tests, _family(sweep, tests, values), strict=True):
            rulings[test.name].append(ruling)
    judged = _without_small({name: _judged(sweep, one, tuple(rulings[name])) for name, one in values.items()})
    return {name: one if one.load_share is None else _of_both(one) for name, one in judged.items()}


def _of_both(one: Judged) -> Judged:
    """The same with its rulings on client and server together, and none on the server: the load was the limit."""
    return replace(one, rulings=(), together=one.rulings)


def contradict(one: Judged, other: Judged) -> bool:
    """True where two runs say opposite things of a comparison.

    One says FASTER and the other SLOWER (or GROWS and FALLS, and so on). Or one says that the difference is under 5 %,
    and the other's interval lies wholly outside 0.95 to 1.05. The same holds for growth against the clients. Where the
    load was the limit in both runs, the statements are those on client and server together.
    """
    if not (one.rulings or other.rulings):
        one, other = one.as_clients_see_it, other.as_clients_see_it
    return any(
        {a.verdict, b.verdict} in _OPPOSITES
        or (_within(one, a) and _outside(other, b))
        or (_within(other, b) and _outside(one, a))
        for a, b in zip(one.rulings, other.rulings, strict=False)
    )


@dataclass(frozen=True, slots=True)
class Values:
    """A comparison's log-ratio in each block that no gate leaves out, by the block's number."""

    comparison: Comparison
    typical: Mapping[int, float]
    whole: Mapping[int, float]
    dropped: Mapping[int, tuple[Refusal, ...]] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    load_share: float | None = None
    """Share of its core that the load took, as in ``Judged``."""


def _values(sweep: Sweep, blocks: Sequence[Block], comparison: Comparison) -> Values | None:
    """A comparison's value in each block that no gate leaves out; None where there is none."""
    typical: dict[int, float] = {}
    whole: dict[int, float] = {}
    dropped: dict[int, tuple[Refusal, ...]] = {}
    for block in blocks:
        refused = tuple(block_refusals(sweep, block, comparison))
        value, plain = ratios.typical(sweep, block, comparison), ratios.whole(sweep, block, comparison)
        if refused:
            dropped[block.number] = refused
        elif value is not None and plain is not None:
            typical[block.number], whole[block.number] = value, plain
    if not typical:
        return None
    kept = [block for block in blocks if block.number in typical]
    halves = tuple(halves_contradict(sweep, kept, comparison))
    return Values(comparison, typical, whole, dropped, halves, limiting_load(sweep, kept, comparison))


@dataclass(frozen=True, slots=True)
class _Test:
    """A test of a comparison: the value that the ratio is tested against, and the words of its verdicts."""

    name: str
    against: float
    words: Words

    def logs(self, one: Values | None) -> list[float]:
        """Logarithms of the blocks' ratios ÷ the tested value; none for a comparison without a value."""
        return [] if one is None else [value - math.log(self.against) for value in one.typical.values()]


def _tests(comparison: Comparison) -> tuple[_Test, ...]:
    """Tests of a comparison. Processor time is a quantity: more of it need not take longer."""
    against_clients = _Test(comparison.name, comparison.clients_ratio, _AGAINST_CLIENTS)
    match comparison.kind:
        case "growth":
            return _Test(comparison.name, 1.0, OF_GROWTH), against_clients
        case "per client":
            return (against_clients,)
        case _:
            return (_Test(comparison.name, 1.0, OF_QUANTITIES if comparison.measure == "cpu" else OF_TIMES),)


def _family(sweep: Sweep, tests: Sequence[_Test], values: Mapping[str, Values]) -> list[Ruling]:
    """Rulings on all tests of a family. A test without a value counts as one with p = 1."""
    adjusted = holm([sign_flip_p(test.logs(values.get(test.name))) for test in tests])
    return [_ruling(sweep, test, values.get(test.name), p, len(tests)) for test, p in zip(tests, adjusted, strict=True)]


def _ruling(sweep: Sweep, test: _Test, one: Values | None, p_holm: float, family: int) -> Ruling:
    if one is None:
        return Ruling(test.against, 1.0, Verdict.INCONCLUSIVE)
    logs = test.logs(one)
    verdict = ruled(test.words, ratio_interval(logs, 1 - sweep.level), p_holm, sweep.level, sweep.limits)
    if verdict is not Verdict.INCONCLUSIVE and not one.refusals:
        return Ruling(test.against, p_holm, verdict)
    about = sweep.limits.equivalent_low, sweep.limits.equivalent_high
    return Ruling(test.against, p_holm, Verdict.INCONCLUSIVE, blocks_needed(logs, family, sweep.level, about))


def _judged(sweep: Sweep, one: Values, rulings: tuple[Ruling, ...]) -> Judged:
    confidence = 1 - sweep.level
    return Judged(
        comparison=one.comparison,
        log_ratios=one.typical,
        load_share=one.load_share,
        typical=ratio_interval(list(one.typical.values()), confidence),
        whole=ratio_interval(list(one.whole.values()), confidence),
        rulings=rulings,
        refusals=one.refusals,
        dropped=one.dropped,
        equivalent=(sweep.limits.equivalent_low, sweep.limits.equivalent_high),
        confidence=confidence,
    )


def _without_small(judged: Mapping[str, Judged]) -> dict[str, Judged]:
    """The same judgements, with INCONCLUSIVE for an effect that is smaller than that of an A/A pair of its transport
    that was called different, and for halves that contradict each other. Of several pairs, the worst counts."""
    ends: dict[str, float] = {}
    for one in judged.values():
        told_apart = one.verdict in APART or bool(one.refusals)
        if one.comparison.kind == "same" and one.rulings and told_apart:
            transport = one.comparison.above.setting.text("transport")
            ends[transport] = max(ends.get(transport, 0.0), far_end(one.typical))
    return {name: _unless_small(one, ends) for name, one in judged.items()}


def _unless_small(one: Judged, ends: Mapping[str, float]) -> Judged:
    arms = (one.comparison.above, one.comparison.below)
    end = max((ends.get(arm.setting.text("transport"), 0.0) for arm in arms), default=0.0)
    if one.comparison.kind == "same" or not end:
        return one
    rulings, refusals = [], list(one.refusals)
    for ruling in one.rulings:
        refusal = too_small(one.typical, ruling.against, end)
        if refusal is not None and ruling.verdict not in _NO_EFFECT:
            ruling = Ruling(ruling.against, ruling.p_holm, Verdict.INCONCLUSIVE)
            refusals.append(refusal)
        rulings.append(ruling)
    return replace(one, rulings=tuple(rulings), refusals=tuple(refusals))


_NO_EFFECT = (Verdict.EQUIVALENT, Verdict.FLAT, Verdict.PROPORTIONAL, Verdict.INCONCLUSIVE)

_OPPOSITES = (
    {Verdict.FASTER, Verdict.SLOWER},
    {Verdict.LESS, Verdict.MORE},
    {Verdict.GROWS, Verdict.FALLS},
    {Verdict.SUBLINEAR, Verdict.SUPERLINEAR},
)


def _within(one: Judged, ruling: Ruling) -> bool:
    return ruling.verdict in (Verdict.EQUIVALENT, Verdict.FLAT, Verdict.PROPORTIONAL) or one.is_small(ruling)


def _outside(one: Judged, ruling: Ruling) -> bool:
    low, high = one.equivalent
    return one.typical.high / ruling.against < low or one.typical.low / ruling.against > high
