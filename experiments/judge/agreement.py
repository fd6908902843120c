"""Agreement: what several whole runs of one sweep, from different hours, say together of each headline comparison.

Ratios move with the hour and the host by more than one run's interval says. So runs are taken as drawn from a
distribution of their own: each run has a true ratio, and these vary with the deviation tau about a mean. tau² is after
Paule and Mandel ("Consensus values and weighting factors", Journal of Research of the NBS 87, 1982). The mean's
interval is after Hartung and Knapp ("On tests of the overall treatment effect in meta-analysis with normally
distributed responses", Statistics in Medicine 20, 2001) and Sidik and Jonkman (2002). It uses Student's t of k − 1
degrees of freedom. Where tau² is over 0, their variance is the usual one, 1 ÷ the sum of weights. Where tau² is 0, it
is never taken as less (Röver, Knapp and Friede 2015). The prediction interval holds the true ratio of a further run
with 95 %. It is that of Higgins, Thompson and Spiegelhalter ("A re-evaluation of random-effects meta-analysis", Journal
of the Royal Statistical Society A 172, 2009, section 3.2). It uses Student's t of k − 2 degrees of freedom. It is
approximate: where tau is no larger than the runs' own errors it holds some 90 % (simulated here, and by Partlett and
Riley 2017). A few runs that seem to agree may still lie apart. So tau has an upper limit, by a Q profile (Viechtbauer,
"Confidence intervals for the amount of heterogeneity in meta-analysis", Statistics in Medicine 26, 2007). Two runs make
no range, no deviation and no prediction. All on logarithms of ratios. Pure.

Runs are joined where both arms of the comparison have the same fingerprint in all: a newer server is another server.
Where they differ, what differs is named, and nothing is said of the runs together.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import combinations

import numpy as np
import scipy

from experiments.design.arms import Comparison
from experiments.design.setting import Setting
from experiments.design.sweep import Sweep
from experiments.judge.stats import SPREAD_FROM, Deviation, Estimate
from experiments.judge.verdicts import Judged, Judgement, contradict
from experiments.results.earlier import EarlierRun
from experiments.results.fingerprint import Sources, differing

CONFIDENCE = 0.95

NO_FINGERPRINT = "a fingerprint is missing"


@dataclass(frozen=True, slots=True)
class Pooled:
    """Values of all runs together, as ratios. Some need three runs; they are None for fewer."""

    ratio: Estimate
    tau: float | None
    """The deviation of the runs' log-ratios, beyond what blocks explain …"""
    tau_high: float | None
    """… and its upper limit, with 95 %."""
    predicted: tuple[float, float] | None
    """Range that holds a further run's true ratio with 95 %."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """One comparison over the runs."""

    comparison: Comparison
    judged: tuple[Judged, ...]
    """Judgements of the runs that have a value."""
    decided: int
    """Number of runs that decided it."""
    contradictions: tuple[tuple[int, int], ...]
    """Pairs of runs that say opposite things, by their places among the runs."""
    pooled: Pooled | None
    """None where fewer than two runs have an interval, or the runs are of several versions."""
    apart: Mapping[int, tuple[str, ...]]
    """Sources that differ from the first run's version, by the place of the run."""


def agreements(runs: Sequence[Judgement], sources: Sequence[Sources]) -> Iterator[Agreement]:
    """Agreements of runs of one sweep, with their sources: one for each headline comparison of which any run has a
    value."""
    for comparison in runs[0].sweep.comparisons:
        if comparison.family != "headline":
            continue
        found = {place: run.judged[comparison.name] for place, run in enumerate(runs) if comparison.name in run.judged}
        if not found:
            continue
        apart = _apart(comparison, {place: sources[place] for place in found})
        pairs = () if apart else combinations(found, 2)
        yield Agreement(
            comparison=comparison,
            judged=tuple(found.values()),
            decided=sum(each.decided for each in found.values()),
            contradictions=tuple((a, b) for a, b in pairs if contradict(found[a], found[b])),
            pooled=None if apart else _of_runs(tuple(found.values())),
            apart=apart,
        )


def _apart(comparison: Comparison, sources: Mapping[int, Sources]) -> dict[int, tuple[str, ...]]:
    """Differences of each run's arms from the arms of the first run, by the place of the run. Runs without
    fingerprints differ from all."""
    arms = [comparison.above.setting, comparison.below.setting]
    first = next(iter(sources.values()))
    found = {place: _named_apart(first, each, arms) for place, each in list(sources.items())[1:]}
    return {place: differ for place, differ in found.items() if differ}


def _named_apart(one: Sources, other: Sources, arms: Sequence[Setting]) -> tuple[str, ...]:
    return differing(one, other, arms) if one and other else (NO_FINGERPRINT,)


def _of_runs(judged: Sequence[Judged]) -> Pooled | None:
    logs = [list(each.log_ratios.values()) for each in judged if len(each.log_ratios) > 1]
    if len(logs) < 2:
        return None
    return pooled([float(np.mean(each)) for each in logs], [float(np.var(each, ddof=1)) / len(each) for each in logs])


def pooled(values: Sequence[float], variances: Sequence[float]) -> Pooled:
    """All runs together, from each one's log-ratio and the variance of its mean. ValueError for fewer than two."""
    k = len(values)
    if k < 2:
        raise ValueError(f"{k} runs, needed: 2")
    tau_2 = tau_squared(values, variances)
    weights = 1 / (np.maximum(variances, _LEAST) + tau_2)
    mean, error = float(np.average(values, weights=weights)), float(1 / math.sqrt(weights.sum()))
    half = _quantile(k - 1) * error
    ratio = Estimate(math.exp(mean), math.exp(mean - half), math.exp(mean + half), k)
    if k < SPREAD_FROM:
        return Pooled(ratio, None, None, None)
    reach = _quantile(k - 2) * math.sqrt(tau_2 + error**2)
    tau_high = math.sqrt(tau_squared(values, variances, float(scipy.special.chdtri(k - 1, CONFIDENCE))))
    return Pooled(ratio, math.sqrt(tau_2), tau_high, (math.exp(mean - reach), math.exp(mean + reach)))


_LEAST = 1e-18
"""Least variance that a run is given, so that blocks that are all alike have a weight."""


def with_deviation(of: Judgement, earlier: Sequence[EarlierRun]) -> Judgement:
    """The judgement with the deviation between earlier runs, at each comparison that has enough such runs."""
    judged = {
        name: replace(one, between=between)
        for name, one in of.judged.items()
        if (between := deviation([run for run in earlier if name in run.ratios], name)) is not None
    }
    return replace(of, judged={**of.judged, **judged})


def deviation(runs: Sequence[EarlierRun], name: str) -> Deviation | None:
    """The deviation of a comparison's true ratios between runs of one version, over all versions that have two.

    None where runs are not three more than versions: so few tell no deviation.
    """
    versions: dict[str, list[EarlierRun]] = {}
    for run in runs:
        versions.setdefault(run.version, []).append(run)
    several = [each for each in versions.values() if len(each) > 1]
    groups = [[run.ratios[name] for run in each] for each in several]
    number = sum(map(len, groups))
    freedom = number - len(groups)
    if freedom < SPREAD_FROM:
        return None
    # each version's ratios about their own mean: as if all versions had one
    means = [float(np.average([r.log for r in of], weights=[1 / max(r.variance, _LEAST) for r in of])) for of in groups]
    values = [each.log - mean for of, mean in zip(groups, means, strict=True) for each in of]
    variances = [each.variance for of in groups for each in of]
    least = float(scipy.special.chdtri(freedom, CONFIDENCE))
    return Deviation(
        tau=math.sqrt(tau_squared(values, variances, freedom)),
        freedom=freedom,
        runs=number,
        tau_high=math.sqrt(tau_squared(values, variances, least)),
        over_s=min(map(_over_s, several)),
    )


def _over_s(runs: Sequence[EarlierRun]) -> float:
    """The time from the start of the first run to the start of the last."""
    began = [datetime.fromisoformat(run.began_at) for run in runs]
    return (max(began) - min(began)).total_seconds()


def tau_squared(values: Sequence[float], variances: Sequence[float], squares: float | None = None) -> float:
    """The variance between runs at which the weighted squares add up to this, or 0.

    Without: to what is expected, k − 1. To a low quantile of chi-squared they add up at the upper limit.
    """
    seen, within = np.asarray(values, dtype=np.float64), np.maximum(variances, _LEAST)
    expected = len(seen) - 1 if squares is None else squares

    def over(tau_2: float) -> float:
        weights = 1 / (within + tau_2)
        mean = np.average(seen, weights=weights)
        return float((weights * (seen - mean) ** 2).sum()) - expected

    if over(0.0) <= 0:
        return 0.0
    high = float(np.var(seen)) * len(seen) / expected  # at which they add up to that at most
    return float(scipy.optimize.brentq(over, 0.0, high, xtol=1e-15))


def _quantile(freedom: int) -> float:
    return float(scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2))


def differences(one: Sweep, other: Sweep) -> str:
    """Differences of two sweeps, in words. Seeds do not count. Empty for equal sweeps.

    Of two studies, or two parts of one, only that is said: all else may differ.
    """
    for name in ("study", "part"):
        here, there = getattr(one, name), getattr(other, name)
        if here != there:
            return f"{name} {here} and {there}"
    return ", ".join(_differing(one, other))


def _differing(one: Sweep, other: Sweep) -> Iterator[str]:
    for field in filter(lambda each: each.compare, fields(Sweep)):
        here, there = getattr(one, field.name), getattr(other, field.name)
        if field.name == "seed" or here == there:
            continue
        if field.name == "comparisons":
            yield from _named({each.name: each for each in here}, {each.name: each for each in there})
        elif field.name == "groups":
            yield "groups of arms"
        else:
            yield f"{field.name} {here} and {there}"


def _named(here: Mapping[str, Comparison], there: Mapping[str, Comparison]) -> Iterator[str]:
    names = [name for name in {**here, **there} if here.get(name) != there.get(name)]
    yield f"{len(names)} comparisons, such as {names[0]}" if names else "the order of comparisons"
