"""Verdicts on the comparisons of a sweep, at a look: a number of blocks that was declared beforehand. Pure.

- A ratio of times is FASTER or SLOWER if its interval excludes 1 and Holm's p is under the look's level. A ratio of
  processor times is LESS or MORE by the same rule.
- A ratio is EQUIVALENT if it is not FASTER or SLOWER, and its interval lies inside 0.95 to 1.05.
- Every other ratio is INCONCLUSIVE, with the number of blocks that would decide. A ratio with values of fewer than six
  blocks is always INCONCLUSIVE.
- Growth with the clients has two verdicts: one against 1, and one against the ratio of the clients. The zone around the
  ratio of the clients is relative, from 0.95 to 1.05 times this ratio. For example, twice the clients with an interval
  from 1.92 to 1.96 is SUBLINEAR by less than 5 %.

The confidence of an interval is 1 − the look's level. A sweep that is at no look has no verdicts. Reports show the
sweep's ratios, and the numbers of blocks done and planned. If the load took over 80 % of its core in a closed loop,
client and server together limit the times. Then there is no verdict on the server.

Steps of a curve and ratios of cells are judged by the same rule (``ruled``). Steps have the words GROWS, FALLS and
FLAT. Cells have LESS, MORE and EQUIVALENT.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from experiments.design.arms import Comparison
from experiments.design.limits import Limits
from experiments.design.sweep import BLOCKS_MIN, Sweep
from experiments.judge import ratios
from experiments.judge.gates import Refusal, block_refusals, far_end, halves_contradict, limiting_load, too_small
from experiments.judge.stats import Deviation, Estimate, blocks_needed, holm, ratio_interval, sign_flip_p
from experiments.results.observed import Block


class Verdict(Enum):
    """Verdict on a comparison. Each kind of comparison has its own words for the verdicts."""

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
"""Verdicts on a ratio: under the tested value, over the tested value, about equal to the tested value."""

OF_TIMES: Words = (Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT)
OF_QUANTITIES: Words = (Verdict.LESS, Verdict.MORE, Verdict.EQUIVALENT)
OF_GROWTH: Words = (Verdict.FALLS, Verdict.GROWS, Verdict.FLAT)

_AGAINST_CLIENTS: Words = (Verdict.SUBLINEAR, Verdict.SUPERLINEAR, Verdict.PROPORTIONAL)

APART = (Verdict.FASTER, Verdict.SLOWER, Verdict.LESS, Verdict.MORE)
"""Verdicts that say that the two arms differ."""

_SAME = (Verdict.EQUIVALENT, Verdict.FLAT, Verdict.PROPORTIONAL)

_NO_EFFECT = (*_SAME, Verdict.INCONCLUSIVE)

_OPPOSITES = [{under, over} for under, over, _ in (OF_TIMES, OF_QUANTITIES, OF_GROWTH, _AGAINST_CLIENTS)]


def ruled(words: Words, at: Estimate, p_holm: float, level: float, limits: Limits) -> Verdict:
    """Verdict of one test. ``at``: the ratio ÷ the tested value, with an interval of confidence 1 − the level.

    INCONCLUSIVE for fewer than six values: no p of up to five values is under the level, and two values that agree by
    chance are no evidence that two arms are equal.
    """
    under, over, about = words
    if at.n < BLOCKS_MIN:
        return Verdict.INCONCLUSIVE
    if p_holm < level and (at.high < 1 or at.low > 1):
        return under if at.high < 1 else over
    return about if limits.equivalent_low < at.low and at.high < limits.equivalent_high else Verdict.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Ruling:
    """Result of one test of a comparison: against 1, or against the ratio of the clients."""

    against: float
    """Value that the ratio is tested against."""
    p_holm: float
    """p of the sign-flip test, after Holm's correction."""
    verdict: Verdict
    blocks_needed: int | None = None
    """Total number of blocks that decides an INCONCLUSIVE test with 80 % power; None: over 1000, or unknown."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Judgement of one comparison. Ratios are A ÷ B."""

    comparison: Comparison
    log_ratios: Mapping[int, float]
    """Typical log-ratio of each block that counts, by the block's number."""
    typical: Estimate
    """Typical ratio. The rulings are on this ratio."""
    whole: Estimate
    """Ratio of the means of whole blocks, which include every pause."""
    rulings: tuple[Ruling, ...]
    """Rulings: one against 1; for growth a second against the ratio of the clients. Empty if the sweep is at no
    look."""
    refusals: tuple[Refusal, ...] = ()
    """Refusals of a verdict by gates."""
    dropped: Mapping[int, tuple[Refusal, ...]] = field(default_factory=dict)
    """Refusals of blocks by gates, by the blocks' numbers. Such a block has no value here."""
    equivalent: tuple[float, float] = (0.95, 1.05)
    """Both ends of the zone in which a ratio counts as no difference."""
    confidence: float = 0.95
    """Confidence of the intervals of ``typical`` and ``whole``."""
    load_share: float | None = None
    """The load's share of one core; None where the load was not the limit. If the share is given, ``rulings`` is
    empty."""
    together: tuple[Ruling, ...] = ()
    """Rulings on client and server together, if the load was the limit."""
    between: Deviation | None = None
    """Deviation between earlier runs on a machine of this kind; None for too few earlier runs."""

    @property
    def verdict(self) -> Verdict:
        """Verdict of the first ruling; INCONCLUSIVE without rulings."""
        return self.rulings[0].verdict if self.rulings else Verdict.INCONCLUSIVE

    @property
    def decided(self) -> bool:
        """True with one ruling at least, and without an INCONCLUSIVE ruling."""
        return bool(self.rulings) and all(each.verdict is not Verdict.INCONCLUSIVE for each in self.rulings)

    @property
    def is_settled(self) -> bool:
        """True where more blocks would change nothing: a decided comparison, or one that the load limits."""
        return self.decided or bool(self.together)

    @property
    def survives(self) -> bool:
        """True where no verdict would change if the interval were wider by the deviation between runs."""
        return all(map(self._survives, self.rulings))

    def _survives(self, ruling: Ruling) -> bool:
        """True where this ruling would stay if the interval were wider by the deviation between runs."""
        reach = self.between.reach if self.between else 0.0
        middle = (math.log(self.typical.low) + math.log(self.typical.high)) / 2
        half = math.hypot(math.log(self.typical.high) - middle, reach)
        low, high = (middle + side * half - math.log(ruling.against) for side in (-1, 1))
        if ruling.verdict in _NO_EFFECT:
            return math.log(self.equivalent[0]) < low and high < math.log(self.equivalent[1])
        return low > 0 or high < 0

    @property
    def as_clients_see_it(self) -> "Judged":
        """Copy with the rulings on client and server together, if the load was the limit. Else the judgement itself."""
        return replace(self, rulings=self.together, together=()) if self.together else self

    @property
    def by_less_than_5(self) -> bool:
        """True where the first ruling is a difference of less than 5 % (``is_small``)."""
        return bool(self.rulings) and self.is_small(self.rulings[0])

    def is_small(self, ruling: Ruling) -> bool:
        """True where a ruling says that there is a difference, and the whole interval is within 5 % of the tested
        value."""
        (low, high), against = self.equivalent, ruling.against
        inside = low < self.typical.low / against and self.typical.high / against < high
        return inside and ruling.verdict not in _NO_EFFECT

    @property
    def typical_is_not_whole(self) -> bool:
        """True where the intervals of the typical ratio and of the whole ratio do not overlap: both are shown."""
        return self.typical.high < self.whole.low or self.whole.high < self.typical.low


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judgement of a sweep by the blocks that are done."""

    sweep: Sweep
    blocks: tuple[Block, ...]
    judged: Mapping[str, Judged]
    """Judged comparisons by name. A comparison without a value is missing."""
    look: int | None
    """Number of blocks at this look; None for a sweep that is at no look, and has no verdicts."""

    @property
    def confidence(self) -> float:
        """Confidence of the intervals."""
        return 1 - self.sweep.level

    @property
    def decided(self) -> bool:
        """True where every headline comparison is settled, and no headline interval contains ``apart_from``, if any."""
        headline = [each.name for each in self.sweep.comparisons if each.family == "headline"]
        return all(name in self.judged and self._is_decided(self.judged[name]) for name in headline)

    def _is_decided(self, one: Judged) -> bool:
        """True where a comparison is settled, and its interval does not contain the sweep's ``apart_from``."""
        limit = self.sweep.apart_from
        return one.is_settled and (limit is None or not one.typical.low <= limit <= one.typical.high)

    def comparisons(self, family: str) -> Iterator[Judged]:
        """Judged comparisons of a family, in the order of their declaration."""
        return (each for each in self.judged.values() if each.comparison.family == family)


def judge(sweep: Sweep, blocks: Sequence[Block]) -> Judgement:
    """Judge a sweep by the blocks that are done.

    There are verdicts only at a declared look, and only if the first look could decide.
    """
    look = len(blocks) if len(blocks) in sweep.looks and sweep.has_verdicts else None
    values = {each.name: one for each in sweep.comparisons if (one := _values(sweep, blocks, each))}
    return Judgement(sweep, tuple(blocks), judge_values(sweep, values, look is not None), look)


def judge_values(sweep: Sweep, values: "Mapping[str, Values]", at_a_look: bool) -> dict[str, Judged]:
    """Judge the values of comparisons, by name. Only a sweep at a look has verdicts.

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
    """True where two runs say opposite things about a comparison.

    One run says FASTER and the other SLOWER (or GROWS and FALLS, and so on). Or one run says that the difference is
    under 5 %, and the interval of the other run lies wholly outside 0.95 to 1.05. Growth against the clients follows
    the same rule. If the load was the limit in both runs, the statements on client and server together count.
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
    """Log-ratios of a comparison, by the block's number. Blocks that a gate leaves out are missing."""

    comparison: Comparison
    typical: Mapping[int, float]
    whole: Mapping[int, float]
    dropped: Mapping[int, tuple[Refusal, ...]] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    load_share: float | None = None
    """The load's share of one core, as in ``Judged``."""


def _values(sweep: Sweep, blocks: Sequence[Block], comparison: Comparison) -> Values | None:
    """Values of a comparison in the blocks that no gate leaves out; None without such a block."""
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
    """Test of a comparison: the tested value, and the words of the verdicts."""

    name: str
    against: float
    words: Words

    def logs(self, one: Values | None) -> list[float]:
        """Logarithms of the blocks' ratios ÷ the tested value; empty for a comparison without a value."""
        return [value - math.log(self.against) for value in one.typical.values()] if one else []


def _tests(comparison: Comparison) -> tuple[_Test, ...]:
    """Tests of a comparison. Processor time is LESS or MORE, since more processor time need not take longer."""
    against_clients = _Test(comparison.name, comparison.clients_ratio, _AGAINST_CLIENTS)
    match comparison.kind:
        case "growth":
            return _Test(comparison.name, 1.0, OF_GROWTH), against_clients
        case "per client":
            return (against_clients,)
        case _:
            return (_Test(comparison.name, 1.0, OF_QUANTITIES if comparison.measure == "cpu" else OF_TIMES),)


def _ruling(sweep: Sweep, test: _Test, logs: list[float], p_holm: float, family: int, refused: bool) -> Ruling:
    """Ruling on a test. A refused test is INCONCLUSIVE. INCONCLUSIVE has the number of blocks that would decide."""
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
    """Judgements after gate 20: an effect smaller than the difference between equal arms is INCONCLUSIVE.

    The equal arms are an A/A pair of the effect's transport that was called different, or whose halves of the blocks
    contradict each other (gate 5). Of several pairs, the pair whose interval reaches farthest from 1 counts.
    """
    ends: dict[str, float] = {}
    for one in judged.values():
        told_apart = one.verdict in APART or bool(one.refusals)
        if one.comparison.kind == "same" and one.rulings and told_apart:
            transport = one.comparison.above.setting.text("transport")
            ends[transport] = max(ends.get(transport, 0.0), far_end(one.typical))
    return {name: _unless_small(one, ends) for name, one in judged.items()}


def _unless_small(one: Judged, ends: Mapping[str, float]) -> Judged:
    """Judgement after gate 20. ``ends``: largest log-ratio of equal arms, by transport."""
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
    """True where a ruling says that the ratio is within 5 % of the tested value."""
    return ruling.verdict in _SAME or one.is_small(ruling)


def _outside(one: Judged, ruling: Ruling) -> bool:
    """True where the whole interval is more than 5 % away from the tested value of a ruling."""
    low, high = one.equivalent
    return one.typical.high / ruling.against < low or one.typical.low / ruling.against > high
