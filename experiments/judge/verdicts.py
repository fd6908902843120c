"""Verdicts on the comparisons of a sweep, after a declared number of blocks (a look). The functions are pure.

- A ratio of times is FASTER or SLOWER if its interval excludes 1, and Holm's p is under the look's level. A ratio of
  processor times is LESS or MORE by the same rule.
- A ratio is EQUIVALENT if no difference was found by this rule, and its interval lies inside 0.95 to 1.05.
- Every other ratio is INCONCLUSIVE; the number of blocks that would decide is given. A ratio with values of fewer than
  six blocks is always INCONCLUSIVE.
- Growth with the number of clients has two tests: the ratio of latencies against 1, and against the ratio of the
  numbers of clients. The zone of no difference is 0.95 to 1.05 times the tested value. Example: with twice the clients,
  the interval of the ratio is 1.92 to 1.96, and the tested value is 2. This is SUBLINEAR by less than 5 %.

The confidence of an interval is 1 − the look's level. If the number of blocks is not a look, the sweep has no verdicts;
the report then shows the ratios, and the numbers of measured and planned blocks. If the load took over 80 % of its core
in a closed loop, the times depend on client and server together. Then there is no verdict on the server.

Steps of a curve and ratios of cells are judged by the same rule (``ruled``). The verdicts on steps are GROWS, FALLS and
FLAT; the verdicts on cells are LESS, MORE and EQUIVALENT.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from experiments.design.arms import Comparison
from experiments.design.limits import Limits
from experiments.design.sweep import BLOCKS_MIN, Sweep
from experiments.judge import gates, ratios
from experiments.judge.gates import Refusal, block_refusals, far_end, halves_contradict, limiting_load, too_small
from experiments.judge.stats import Deviation, Estimate, blocks_needed, holm, ratio_interval, sign_flip_p
from experiments.results.observed import Block


class Verdict(Enum):
    """Verdict on a comparison, such as FASTER for a ratio of times, or GROWS for growth."""

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
"""Verdicts on a ratio under the tested value, on a ratio over this value, and on a ratio within 5 % of this value."""

OF_TIMES: Words = (Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT)
OF_QUANTITIES: Words = (Verdict.LESS, Verdict.MORE, Verdict.EQUIVALENT)
OF_GROWTH: Words = (Verdict.FALLS, Verdict.GROWS, Verdict.FLAT)

_AGAINST_CLIENTS: Words = (Verdict.SUBLINEAR, Verdict.SUPERLINEAR, Verdict.PROPORTIONAL)

APART = (Verdict.FASTER, Verdict.SLOWER, Verdict.LESS, Verdict.MORE)
"""Verdicts which say that two arms differ in a time or a quantity."""

_SAME = (Verdict.EQUIVALENT, Verdict.FLAT, Verdict.PROPORTIONAL)

_NO_EFFECT = (*_SAME, Verdict.INCONCLUSIVE)

_OPPOSITES = [{under, over} for under, over, _ in (OF_TIMES, OF_QUANTITIES, OF_GROWTH, _AGAINST_CLIENTS)]


def ruled(words: Words, at: Estimate, p_holm: float, level: float, limits: Limits) -> Verdict:
    """Verdict of one test. ``at`` is the ratio ÷ the tested value, with an interval of confidence 1 − ``level``.

    Fewer than six values are INCONCLUSIVE: their p in the sign-flip test is never under the level. Besides, two values
    may be equal by chance, which does not show that two arms are equal.
    """
    under, over, about = words
    if at.n < BLOCKS_MIN:
        return Verdict.INCONCLUSIVE
    if p_holm < level and (at.high < 1 or at.low > 1):
        return under if at.high < 1 else over
    return about if limits.equivalent_low < at.low and at.high < limits.equivalent_high else Verdict.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Ruling:
    """Result of one test of a comparison: against 1, or against the ratio of the numbers of clients."""

    against: float
    """Value with which the test compares the ratio."""
    p_holm: float
    """p of the sign-flip test, after Holm's correction."""
    verdict: Verdict
    blocks_needed: int | None = None
    """Total number of blocks that would decide an INCONCLUSIVE test with 80 % power. None if this number is over 1000
    or unknown, or if the test is decided."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Judgement of one comparison: ratios ``above`` ÷ ``below`` with intervals, verdicts, and refusals by gates."""

    comparison: Comparison
    log_ratios: Mapping[int, float]
    """Typical log-ratio of each block that counts, by the block's number: the trimmed mean of the log-ratios of the
    block's pairs of slices."""
    typical: Estimate
    """Typical ratio over the blocks, with its interval. The rulings judge this ratio."""
    whole: Estimate
    """Ratio of plain means over the blocks, with its interval. Plain means include every pause of the machine."""
    rulings: tuple[Ruling, ...]
    """One ruling. For growth two rulings: against 1, then against the ratio of the numbers of clients. Empty if the
    sweep has no verdicts."""
    refusals: tuple[Refusal, ...] = ()
    """Refusals by gates. If there is a refusal, the verdict is withheld."""
    dropped: Mapping[int, tuple[Refusal, ...]] = field(default_factory=dict)
    """Refusals by gates for each block that is left out of the comparison, by the block's number."""
    equivalent: tuple[float, float] = (0.95, 1.05)
    """Both ends of the zone of ratios that count as no difference."""
    confidence: float = 0.95
    """Confidence of the intervals of ``typical`` and ``whole``."""
    load_share: float | None = None
    """Share of one core that the load used, if this share was over 80 % in a closed loop: then ``rulings`` is empty.
    Otherwise None."""
    together: tuple[Ruling, ...] = ()
    """Rulings on client and server together. Empty if ``load_share`` is None."""
    between: Deviation | None = None
    """Deviation between earlier runs on a machine of this kind. None if there are too few earlier runs."""

    @property
    def verdict(self) -> Verdict:
        """Verdict of the first ruling. INCONCLUSIVE if there are no rulings."""
        return self.rulings[0].verdict if self.rulings else Verdict.INCONCLUSIVE

    @property
    def decided(self) -> bool:
        """True if there is a ruling, and no ruling is INCONCLUSIVE."""
        return bool(self.rulings) and all(each.verdict is not Verdict.INCONCLUSIVE for each in self.rulings)

    @property
    def is_settled(self) -> bool:
        """True if the comparison needs no more blocks: it is decided, or the load was so near its limit that there can
        be no verdict on the server."""
        return self.decided or bool(self.together)

    @property
    def survives(self) -> bool:
        """True if every verdict stays the same with a wider interval that also covers the deviation between runs."""
        return all(map(self._survives, self.rulings))

    def _survives(self, ruling: Ruling) -> bool:
        """True if the verdict of ``ruling`` stays the same with the wider interval of ``survives``."""
        reach = self.between.reach if self.between else 0.0
        middle = (math.log(self.typical.low) + math.log(self.typical.high)) / 2
        half = math.hypot(math.log(self.typical.high) - middle, reach)
        low, high = (middle + side * half - math.log(ruling.against) for side in (-1, 1))
        if ruling.verdict in _NO_EFFECT:
            return math.log(self.equivalent[0]) < low and high < math.log(self.equivalent[1])
        return low > 0 or high < 0

    @property
    def as_clients_see_it(self) -> "Judged":
        """If the load was near its limit: a copy of the judgement with the rulings on client and server together.
        Otherwise the judgement itself."""
        return replace(self, rulings=self.together, together=()) if self.together else self

    @property
    def by_less_than_5(self) -> bool:
        """True if the first ruling says that the difference is less than 5 % (``is_small``)."""
        return bool(self.rulings) and self.is_small(self.rulings[0])

    def is_small(self, ruling: Ruling) -> bool:
        """True if a ruling says that there is a difference, such as FASTER, and the whole interval is within 5 % of the
        tested value."""
        (low, high), against = self.equivalent, ruling.against
        inside = low < self.typical.low / against and self.typical.high / against < high
        return inside and ruling.verdict not in _NO_EFFECT

    @property
    def typical_is_not_whole(self) -> bool:
        """True if the interval of the typical ratio and the interval of the ratio of plain means do not overlap. Then
        the sentence on the comparison gives both ratios."""
        return self.typical.high < self.whole.low or self.whole.high < self.typical.low


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judgement of a sweep by the measured blocks."""

    sweep: Sweep
    blocks: tuple[Block, ...]
    judged: Mapping[str, Judged]
    """Judged comparisons by name. A comparison without a value is missing."""
    look: int | None
    """Number of blocks that were measured, if the sweep has verdicts at this number. Otherwise None."""

    @property
    def confidence(self) -> float:
        """Confidence of the intervals: 1 − the significance level of one look."""
        return 1 - self.sweep.level

    @property
    def decided(self) -> bool:
        """True if the sweep may end: ``_is_decided`` is true for every comparison of the family ``headline``."""
        headline = [each.name for each in self.sweep.comparisons if each.family == "headline"]
        return all(name in self.judged and self._is_decided(self.judged[name]) for name in headline)

    def _is_decided(self, one: Judged) -> bool:
        """True if a comparison is settled, and its interval does not contain the ratio ``Sweep.apart_from`` that the
        user gave."""
        limit = self.sweep.apart_from
        return one.is_settled and (limit is None or not one.typical.low <= limit <= one.typical.high)

    def limited(self, one: Judged) -> tuple[bool, bool]:
        """Result of ``gates.is_load_limited`` for the arm above and for the arm below, over the blocks that count."""
        counted, of = [each for each in self.blocks if each.number in one.log_ratios], one.comparison
        above, below = (gates.is_load_limited(self.sweep, counted, arm) for arm in (of.above, of.below))
        return above, below

    def comparisons(self, family: str) -> Iterator[Judged]:
        """Judged comparisons of a family, in the order of their declaration."""
        return (each for each in self.judged.values() if each.comparison.family == family)


def judge(sweep: Sweep, blocks: Sequence[Block]) -> Judgement:
    """Judges a sweep by the measured blocks. Gives verdicts only if their number is a declared look, and the first look
    has six blocks or more."""
    look = len(blocks) if len(blocks) in sweep.looks and sweep.has_verdicts else None
    values = {each.name: one for each in sweep.comparisons if (one := _values(sweep, blocks, each))}
    return Judgement(sweep, tuple(blocks), judge_values(sweep, values, look is not None), look)


def judge_values(sweep: Sweep, values: "Mapping[str, Values]", at_a_look: bool) -> dict[str, Judged]:
    """Judges comparisons by their values. The keys are the comparisons' names. Gives verdicts only if ``at_a_look`` is
    true.

    Holm's correction covers every test of a family. A test without a value counts with p = 1.
    """
    families: dict[str, list[_Test]] = defaultdict(list)
    for each in sweep.comparisons:
        families[each.family] += _tests(each)
    rulings: dict[str, list[Ruling]] = defaultdict(list)
    for tests in families.values() if at_a_look else ():
        logs = [test.logs(values.get(test.name)) for test in tests]
        for test, own, p_holm in zip(tests, logs, holm([sign_flip_p(each) for each in logs]), strict=True):
            if own:
                refused = bool(values[test.name].refusals)
                rulings[test.name].append(_ruling(sweep, test, own, p_holm, len(tests), refused))
    judged = _without_small({name: _judged(sweep, one, tuple(rulings[name])) for name, one in values.items()})
    limited = {name: one for name, one in judged.items() if one.load_share is not None}
    return judged | {name: replace(one, rulings=(), together=one.rulings) for name, one in limited.items()}


def contradict(one: Judged, other: Judged) -> bool:
    """True if two runs contradict each other on a comparison, in one of two ways.

    - The verdicts are opposites: FASTER and SLOWER, or GROWS and FALLS, for example.
    - One run says that the difference is under 5 %, and the interval of the other run lies wholly outside 0.95 to 1.05.

    For growth, both tests are compared. If the load was near its limit, so that neither run has a verdict on the
    server, the verdicts on client and server together are compared.
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
    """Typical log-ratios and log-ratios of plain means of a comparison, by the block's number. Blocks that a gate
    leaves out are missing."""

    comparison: Comparison
    typical: Mapping[int, float]
    whole: Mapping[int, float]
    dropped: Mapping[int, tuple[Refusal, ...]] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    load_share: float | None = None
    """Share of one core that the load used, if this share was over 80 % in a closed loop. Otherwise None."""


def _values(sweep: Sweep, blocks: Sequence[Block], comparison: Comparison) -> Values | None:
    """Values of a comparison in the blocks that no gate leaves out. None if no block has a value."""
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
    """Statistical test of a comparison: the tested value, and the possible verdicts."""

    name: str
    against: float
    words: Words

    def logs(self, one: Values | None) -> list[float]:
        """Logarithm of the ratio ÷ the tested value, for each block. Empty for a comparison without a value."""
        return [value - math.log(self.against) for value in one.typical.values()] if one else []


def _tests(comparison: Comparison) -> tuple[_Test, ...]:
    """Tests of a comparison. For processor time the verdicts are LESS and MORE, and not FASTER and SLOWER: a request
    that uses more processor time need not take longer."""
    against_clients = _Test(comparison.name, comparison.clients_ratio, _AGAINST_CLIENTS)
    match comparison.kind:
        case "growth":
            return _Test(comparison.name, 1.0, OF_GROWTH), against_clients
        case "per client":
            return (against_clients,)
        case _:
            return (_Test(comparison.name, 1.0, OF_QUANTITIES if comparison.measure == "cpu" else OF_TIMES),)


def _ruling(sweep: Sweep, test: _Test, logs: list[float], p_holm: float, family: int, refused: bool) -> Ruling:
    """Ruling on a test. If a gate refused the comparison (``refused``), the test is INCONCLUSIVE. An INCONCLUSIVE
    ruling has the number of blocks that would decide the test."""
    verdict = ruled(test.words, ratio_interval(logs, 1 - sweep.level), p_holm, sweep.level, sweep.limits)
    if verdict is not Verdict.INCONCLUSIVE and not refused:
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
    """Judgements after gate 20: an effect that is smaller than the difference between equal arms is INCONCLUSIVE.

    The equal arms are an A/A pair with the transport of one of the effect's arms. A pair is used if its verdict is a
    difference, or if the halves of its blocks contradict each other (gate 5). Of several such pairs, the pair whose
    interval reaches farthest from 1 is used.
    """
    ends: dict[str, float] = {}
    for one in judged.values():
        told_apart = one.verdict in APART or bool(one.refusals)
        if one.comparison.kind == "same" and one.rulings and told_apart:
            transport = one.comparison.above.setting.text("transport")
            ends[transport] = max(ends.get(transport, 0.0), far_end(one.typical))
    return {name: _unless_small(one, ends) for name, one in judged.items()}


def _unless_small(one: Judged, ends: Mapping[str, float]) -> Judged:
    """Judgement of a comparison after gate 20. ``ends`` has the largest log-ratio of equal arms, by transport."""
    arms = (one.comparison.above, one.comparison.below)
    end = max(ends.get(arm.setting.text("transport"), 0.0) for arm in arms)
    if one.comparison.kind == "same" or not end:
        return one
    rulings, refusals = [], list(one.refusals)
    for ruling in one.rulings:
        refusal = too_small(one.typical, ruling.against, end)
        if refusal is not None and ruling.verdict not in _NO_EFFECT:
            ruling = Ruling(ruling.against, ruling.p_holm, Verdict.INCONCLUSIVE)
            refusals.append(refusal)
        rulings.append(ruling)
    return replace(one, rulings=tuple(rulings), refusals=tuple(dict.fromkeys(refusals)))


def _within(one: Judged, ruling: Ruling) -> bool:
    """True if a ruling says that the ratio is within 5 % of the tested value."""
    return ruling.verdict in _SAME or one.is_small(ruling)


def _outside(one: Judged, ruling: Ruling) -> bool:
    """True if the whole interval is more than 5 % away from the tested value."""
    low, high = one.equivalent
    return one.typical.high / ruling.against < low or one.typical.low / ruling.against > high
