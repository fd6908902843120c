"""Agreement: the joint result of several whole runs of one sweep, from different hours, for each headline comparison.

The ratios of two runs differ by more than the interval of one run allows. So the model has random effects: each run has
its own true log-ratio, drawn from one distribution. The standard deviation of this distribution is tau. The functions
are pure.

- The estimate of tau² is by Paule and Mandel ("Consensus values and weighting factors", Journal of Research of the NBS
  87, 1982).
- The interval of the mean is by Hartung and Knapp ("On tests of the overall treatment effect in meta-analysis with
  normally distributed responses", Statistics in Medicine 20, 2001) and by Sidik and Jonkman (2002). For k runs,
  the interval uses Student's t with k − 1 degrees of freedom. The variance of the mean is always 1 ÷ the sum of the
  weights. If tau² is over 0, the formula of Hartung and Knapp gives the same variance. If tau² is 0, their formula may
  give a smaller variance; 1 ÷ the sum of the weights is then the lower limit of Röver, Knapp and Friede (2015).
- The 95 % prediction interval, for the true ratio of a further run, is by Higgins, Thompson and Spiegelhalter ("A
  re-evaluation of random-effects meta-analysis", Journal of the Royal Statistical Society A 172, 2009, section 3.2),
  with k − 2 degrees of freedom. The 95 % are approximate. If tau is at most the standard errors of the runs' means, the
  probability is about 90 %, by a simulation here and by Partlett and Riley (2017).
- With few runs, the estimate of tau may be 0 although the runs differ. So tau also has an upper limit, at a confidence
  of 95 %, by a Q profile (Viechtbauer, "Confidence intervals for the amount of heterogeneity in meta-analysis",
  Statistics in Medicine 26, 2007).

Two runs give a mean with an interval, but no tau and no prediction interval. The fingerprint of an arm has the digests
of its sources. Runs are joined only if each arm of the comparison has the same fingerprint in all runs. If fingerprints
differ, the result names the sources that differ, and has no joint values.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import combinations

import numpy as np
import scipy

from experiments.design.arms import Comparison
from experiments.design.sweep import Sweep
from experiments.judge.stats import SPREAD_FROM, Deviation, Estimate, students
from experiments.judge.verdicts import Judged, Judgement, contradict
from experiments.results.earlier import EarlierRun
from experiments.results.fingerprint import Sources, differing

CONFIDENCE = 0.95

NO_FINGERPRINT = "a fingerprint is missing"


@dataclass(frozen=True, slots=True)
class Pooled:
    """Joint values of all runs. For only two runs, ``tau``, ``tau_high`` and ``predicted`` are None."""

    ratio: Estimate
    """Mean ratio of the runs, with its interval: the exponential of the weighted mean of the runs' log-ratios."""
    tau: float | None
    """Standard deviation of the true log-ratio from run to run. The random differences between blocks are not included.
    """
    tau_high: float | None
    """Upper limit of ``tau``, at a confidence of 95 %."""
    predicted: tuple[float, float] | None
    """Prediction interval: contains the true ratio of a further run with a probability of 95 %."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Joint result of several runs of a sweep for one comparison, and the contradictions between these runs."""

    comparison: Comparison
    judged: tuple[Judged, ...]
    """Judgement of the comparison by each run that has a value, in the order of the runs."""
    decided: int
    """Number of runs that decided the comparison."""
    contradictions: tuple[tuple[int, int], ...]
    """Pairs of runs that contradict each other (``contradict``). A run is given as its index, from 0."""
    pooled: Pooled | None
    """Joint values. None if fewer than two runs have an interval, or if the fingerprints of the runs differ."""
    apart: Mapping[int, tuple[str, ...]]
    """For each run that differs from the first run: names of the differing sources, by the run's index. Empty if all
    fingerprints are equal."""


def agreements(runs: Sequence[Judgement], sources: Sequence[Sources]) -> Iterator[Agreement]:
    """Yields one agreement for each comparison of the family ``headline`` that has a value in at least one run.

    ``runs`` are runs of one sweep. ``sources`` has the fingerprints of each run, in the same order.
    """
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
    """For each run that differs from the first run: names of the differing sources of both arms, by the run's index.

    A run that equals the first run has no entry. A run without fingerprints counts as different.
    """
    arms = [comparison.above.setting, comparison.below.setting]
    (_, first), *others = sources.items()
    found = ((place, differing(first, each, arms) if first and each else (NO_FINGERPRINT,)) for place, each in others)
    return {place: differ for place, differ in found if differ}


def _of_runs(judged: Sequence[Judged]) -> Pooled | None:
    """Joint values of the runs that have values of two blocks or more. None if there are fewer than two such runs."""
    logs = [list(each.log_ratios.values()) for each in judged if len(each.log_ratios) > 1]
    if len(logs) < 2:
        return None
    return pooled([float(np.mean(each)) for each in logs], [float(np.var(each, ddof=1)) / len(each) for each in logs])


def pooled(values: Sequence[float], variances: Sequence[float]) -> Pooled:
    """Joint values of several runs. ``values`` has the mean log-ratio of each run, and ``variances`` the variance of
    each mean.

    Raises ValueError for fewer than two runs.
    """
    k = len(values)
    if k < 2:
        raise ValueError(f"{k} runs, needed: 2")
    tau_2 = tau_squared(values, variances)
    weights = 1 / (np.maximum(variances, _LEAST) + tau_2)
    mean, error = float(np.average(values, weights=weights)), float(1 / math.sqrt(weights.sum()))
    half = students(k - 1, CONFIDENCE) * error
    ratio = Estimate(math.exp(mean), math.exp(mean - half), math.exp(mean + half), k)
    if k < SPREAD_FROM:
        return Pooled(ratio, None, None, None)
    reach = students(k - 2, CONFIDENCE) * math.sqrt(tau_2 + error**2)
    tau_high = math.sqrt(tau_squared(values, variances, float(scipy.special.chdtri(k - 1, CONFIDENCE))))
    return Pooled(ratio, math.sqrt(tau_2), tau_high, (math.exp(mean - reach), math.exp(mean + reach)))


_LEAST = 1e-18
"""Least variance of a run's mean. Without this limit, a run with equal values in all blocks would get an infinite
weight."""


def with_deviation(of: Judgement, earlier: Sequence[EarlierRun]) -> Judgement:
    """Copy of the judgement. If a comparison has enough earlier runs, its field ``between`` has the deviation between
    these runs."""
    judged = {
        name: replace(one, between=between)
        for name, one in of.judged.items()
        if (between := deviation([run for run in earlier if name in run.ratios], name)) is not None
    }
    return replace(of, judged={**of.judged, **judged})


def deviation(runs: Sequence[EarlierRun], name: str) -> Deviation | None:
    """Standard deviation of the true log-ratio of the comparison ``name`` between runs of the same version.

    Only versions with two runs or more count. The degrees of freedom are the number of these runs minus the number of
    these versions. None for fewer than ``SPREAD_FROM`` degrees of freedom.
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
    # each log-ratio minus the mean of its version: then every version has the mean 0
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
    """Time in seconds from the start of the first of these runs to the start of the last run."""
    began = [datetime.fromisoformat(run.began_at) for run in runs]
    return (max(began) - min(began)).total_seconds()


def tau_squared(values: Sequence[float], variances: Sequence[float], squares: float | None = None) -> float:
    """Variance between runs at which a weighted sum of squares equals ``squares``. 0 if the sum is smaller at every
    variance.

    The sum is ``sum((value - mean)**2 / (variance of the value + variance between runs))``. The default of ``squares``
    is k − 1, the expected sum for k values. If ``squares`` is a low quantile of chi-squared, the result is an
    upper limit of the variance between runs.
    """
    seen, within = np.asarray(values, dtype=np.float64), np.maximum(variances, _LEAST)
    expected = len(seen) - 1 if squares is None else squares

    def over(tau_2: float) -> float:
        weights = 1 / (within + tau_2)
        mean = np.average(seen, weights=weights)
        return float((weights * (seen - mean) ** 2).sum()) - expected

    if over(0.0) <= 0:
        return 0.0
    high = float(np.var(seen)) * len(seen) / expected  # at this variance the sum is ``expected`` at most
    high *= 1 + _ROUNDING  # at this variance a rounded sum is less than ``expected`` too
    return float(scipy.optimize.brentq(over, 0.0, high, xtol=1e-15))


_ROUNDING = 1e-9
"""Relative step that is larger than the rounding errors of a weighted sum of squares."""


def differences(one: Sweep, other: Sweep) -> str:
    """Differences of two sweeps, in words. Seeds are not compared. Empty for equal sweeps.

    If the sweeps are of two studies, or of two parts of one study, only the names of the studies or parts are given.
    """
    names = (field.name for field in fields(Sweep) if field.compare and field.name != "seed")
    pairs = {name: (getattr(one, name), getattr(other, name)) for name in names}
    found = {name: f"{name} {here} and {there}" for name, (here, there) in pairs.items() if here != there}
    for name in ("study", "part"):
        if name in found:
            return found[name]
    if "comparisons" in found:
        found["comparisons"] = _named(*({each.name: each for each in side} for side in pairs["comparisons"]))
    if "groups" in found:
        found["groups"] = "groups of arms"
    return ", ".join(found.values())


def _named(here: Mapping[str, Comparison], there: Mapping[str, Comparison]) -> str:
    """Text on the comparisons that differ between two sweeps: their number, and the name of one of them. If all
    comparisons are equal, the text says that their order differs."""
    names = [name for name in {**here, **there} if here.get(name) != there.get(name)]
    many = f"{len(names)} comparison{'s' * (len(names) > 1)}"
    return f"{many}, such as {names[0]}" if names else "the order of comparisons"
