"""Whether the statistics say what they claim: tried on synthetic experiments whose truth is known.

Every experiment goes the way of a measured one: the steady-state gate first, on the runs of each arm put together, and
what passes goes through ``stats`` just as the report does it. Counted is how often intervals hold the true ratio, how
often noise is called a difference or a difference equivalence, how often a real difference is found, and how often a
gate refuses what is sound and accepts what is not.

The bounds allow for chance: a share that is as it should be passes with 99 % (coverage: two-sided, which is 93.7 to
96.2 % for 2,000 experiments; error rates: one-sided). With some thirty findings, one seed in five fails somewhere by
chance alone: then another seed tells. What the families are, and how noisy, is said in ``synthetic``. ``check`` blocks;
2,000 experiments take about 45 s on one core. Left out: the gates that need a machine.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy

from clients.load.record.dependence import arrival_check, design_effect
from experiments import percentiles, stats, steady_state, synthetic
from experiments.selfcheck.finding import Finding
from experiments.stats import Estimate, Verdict
from experiments.synthetic import Experiments, Family, Size

BLOCKS = 9

_CHANCE = 0.99
"""How sure a right share is to pass."""

_BOOTSTRAP_DRAWS = 2000
"""Where the bootstrap alone is counted: enough for its two ends, in a fifth of the time of the report's draws."""

_UNSOUND_REFUSED_MIN = 0.99
_SOUND_REFUSED = 0.025
"""Of sound experiments, what the steady-state gate may refuse: it looks at two arms, with 1 false alarm in 100 each."""

_HELD_MIN = 0.93
"""Share of percentile intervals that must hold the truth: their design effect is itself an estimate."""

Interval = Callable[[Sequence[float]], Estimate]
Floats = synthetic.Floats


def check(experiments: int = 2000, seed: int = 1, interval: Interval = stats.ratio_interval) -> list[Finding]:
    """Every finding. ``experiments`` are those of a family that no gate refuses by design; at least 100.

    ``interval`` is what is tried: another one than the report's shows whether a wrong one would be caught.
    """
    if experiments < 100:
        raise ValueError(f"{experiments} experiments, needed: 100, or shares of them say nothing")
    findings: list[Finding] = []
    for number, family in enumerate(synthetic.FAMILIES):
        drawn = experiments * 2 if family.drifts else experiments  # half of those are to be refused
        rng = np.random.default_rng([seed, number])
        findings += coverage(synthetic.draw(family, drawn, Size(BLOCKS), rng), seed, interval)
    rng = np.random.default_rng([seed, len(synthetic.FAMILIES)])
    return [
        *findings,
        _bootstrap(experiments, rng, seed),
        *_verdicts(experiments, rng, seed),
        *_percentiles(experiments, rng),
        _steady_runs(experiments, rng),
        *_arrivals(max(100, experiments // 10), rng),
    ]


# ---- intervals of ratios


def coverage(drawn: Experiments, seed: int, interval: Interval = stats.ratio_interval) -> list[Finding]:
    """How often the intervals of one family hold its ratio where the gate passes, and what the gate refuses."""
    family = drawn.family
    passed = np.array([_is_steady(means) for means in drawn.slice_means_us])
    accepted = drawn.log_ratios[passed]
    held = _share(_holds(interval(values), family.ratio) for values in accepted.tolist())
    crossed = _share(
        _holds(stats.bootstrap_ratio_interval(values, seed, _BOOTSTRAP_DRAWS), family.ratio)
        for values in accepted.tolist()
    )
    low, high = _band(0.95, len(accepted))
    sound = ~drawn.unsound
    refused = float(1 - passed[sound].mean())
    refused_max = _at_most(_SOUND_REFUSED, int(sound.sum()))
    findings = [
        Finding(
            f"coverage, {family.name}",
            f"{held:.1%} of {len(accepted)} intervals of {drawn.log_ratios.shape[1]} blocks hold the true ratio "
            f"{family.ratio:g} (bootstrap: {crossed:.1%})",
            f"{low:.1%} to {high:.1%}",
            low <= held <= high,
        ),
        Finding(
            f"sound experiments refused, {family.name}",
            f"{refused:.1%} of {int(sound.sum())} refused as not steady",
            f"at most {refused_max:.1%}",
            refused <= refused_max,
        ),
    ]
    if family.drifts:
        found = float(1 - passed[drawn.unsound].mean())
        findings.append(
            Finding(
                f"unsound experiments refused, {family.name}",
                f"{found:.1%} of {int(drawn.unsound.sum())} refused as not steady",
                f"at least {_UNSOUND_REFUSED_MIN:.0%}",
                found >= _UNSOUND_REFUSED_MIN,
            )
        )
    return findings


def _is_steady(slice_means_us: synthetic.Doubles) -> bool:
    """Whether the gate lets an experiment pass: the runs of either arm, together, are steady from their start."""
    return all(steady_state.arm_is_steady([*map(steady_state.tenths, slice_means_us[:, arm])]) for arm in (0, 1))


def _bootstrap(experiments: int, rng: np.random.Generator, seed: int) -> Finding:
    """The percentile bootstrap alone: why it is a cross-check and no more."""
    drawn = synthetic.draw(_noisy(1.0), experiments, Size(12), rng).log_ratios
    shares = {
        blocks: _share(
            _holds(stats.bootstrap_ratio_interval(values, seed, _BOOTSTRAP_DRAWS), 1.0)
            for values in drawn[:, :blocks].tolist()
        )
        for blocks in (6, 9, 12)
    }
    low, high = _band(0.86, experiments)[0], _band(0.93, experiments)[1]
    return Finding(
        "the percentile bootstrap covers too little",
        ", ".join(f"{share:.1%} with {blocks} blocks" for blocks, share in shares.items()),
        f"{low:.1%} to {high:.1%}: a cross-check alone",
        all(low <= share <= high for share in shares.values()),
    )


# ---- verdicts


def _verdicts(experiments: int, rng: np.random.Generator, seed: int) -> Iterator[Finding]:
    """Wrong differences, wrong equivalences, differences found, and what too few blocks decide."""
    nothing = synthetic.draw(_noisy(1.0), experiments, Size(BLOCKS), rng)
    verdicts = [_alone(values, seed) for values in nothing.log_ratios.tolist()]
    yield _no_more_than("wrong differences", "equal arms called FASTER or SLOWER", map(_differs, verdicts), stats.ALPHA)
    yield _families(max(100, experiments // 5), rng, seed)
    limit = stats.EQUIVALENCE[1]
    at_limit = synthetic.draw(replace(synthetic.FAMILIES[0], ratio=limit), experiments, Size(BLOCKS), rng)
    wrong = (_alone(values, seed) is Verdict.EQUIVALENT for values in at_limit.log_ratios.tolist())
    what = f"arms with a true ratio of {limit:g} called EQUIVALENT"
    yield _no_more_than("wrong equivalences", what, wrong, stats.ALPHA_EQUIVALENT)
    yield _power(max(100, experiments // 10), rng, seed)
    few = synthetic.draw(_noisy(2.0), max(100, experiments // 10), Size(stats.BLOCKS_MIN - 1), rng)
    decided = _share(_alone(values, seed) is not Verdict.INCONCLUSIVE for values in few.log_ratios.tolist())
    yield Finding(
        "too few blocks decide nothing",
        f"{decided:.0%} of experiments of {stats.BLOCKS_MIN - 1} blocks decided, of a ratio of 2",
        "none",
        decided == 0,
    )


def _families(count: int, rng: np.random.Generator, seed: int) -> Finding:
    """Twelve comparisons of equal arms a family: how often any of them is called different."""
    members = 12
    drawn = synthetic.draw(_noisy(1.0), count * members, Size(stats.blocks_min(members)), rng).log_ratios
    families = [
        stats.compare({str(number): values for number, values in enumerate(family)}, seed)
        for family in drawn.reshape(count, members, -1).tolist()
    ]
    uncorrected = _share(any(one.p < stats.ALPHA for one in family) for family in families)
    what = f"families of {members} with any wrong difference (without Holm's correction: {uncorrected:.0%})"
    wrong = (any(_differs(one.verdict) for one in family) for family in families)
    return _no_more_than("wrong differences, Holm", what, wrong, stats.ALPHA)


def _power(count: int, rng: np.random.Generator, seed: int) -> Finding:
    """How often a difference of 10 % is found, with runs that differ by themselves as the project's do."""
    drawn = synthetic.draw(_noisy(1.1), count, Size(20), rng).log_ratios
    found = {
        blocks: _share(_alone(values, seed) is Verdict.SLOWER for values in drawn[:, :blocks].tolist())
        for blocks in (6, 9, 12, 20)
    }
    return Finding(
        "a difference of 10 % is found",
        ", ".join(f"{share:.0%} with {blocks} blocks" for blocks, share in found.items())
        + f" (deviation of a log-ratio {float(drawn.std()):.3f})",
        "at least 90 % with 20 blocks",
        found[20] >= 0.9,
    )


def _alone(values: Sequence[float], seed: int) -> Verdict:
    """The verdict on a comparison that is a family by itself."""
    return stats.judge(stats.ratio_interval(values), stats.sign_flip_p(values, seed))


def _differs(verdict: Verdict) -> bool:
    return verdict in (Verdict.FASTER, Verdict.SLOWER)


def _noisy(ratio: float) -> Family:
    """The family with block and run effects, with this ratio: as noisy as runs of the project are."""
    return replace(synthetic.FAMILIES[-1], ratio=ratio)


# ---- percentiles, steady state, arrivals


@dataclass(frozen=True, slots=True)
class _Sample:
    """How the response times of one run come about, and their true percentiles."""

    name: str
    draw: synthetic.Draw
    true: Callable[[float], float]
    """By share, such as 0.99."""


def _percentiles(experiments: int, rng: np.random.Generator) -> Iterator[Finding]:
    """Intervals of percentiles within a run, independent and not, with the design effect that the run itself shows."""
    samples = (
        _Sample("independent", synthetic.exponential, lambda share: -math.log(1 - share)),
        _Sample(
            "autocorrelated",
            synthetic.autoregressive,
            lambda share: 1 + 0.5 * float(scipy.stats.norm.ppf(share)),
        ),
    )
    for sample in samples:
        runs = [sample.draw(rng, (20_000,)) for _ in range(experiments)]
        for percent in (50.0, 90.0, 99.0):
            yield _percentile(sample, percent, runs)


def _percentile(sample: _Sample, percent: float, runs: Sequence[Floats]) -> Finding:
    held = plain = carried = 0
    truth = sample.true(percent / 100)
    for run in runs:
        ascending = np.sort(run).astype(np.float64)
        effect = design_effect(run > ascending[math.ceil(len(run) * percent / 100) - 1])
        found = percentiles.of_values(ascending, percent, percentiles.effective_count(len(run), effect))
        naive = percentiles.of_values(ascending, percent, len(run))
        plain += naive.low <= truth <= naive.high
        carried += found.carried
        held += found.carried and found.low <= truth <= found.high
    share, least = held / max(1, carried), _band(_HELD_MIN, max(1, carried))[0]
    return Finding(
        f"p{percent:g} of a run, {sample.name}",
        f"{share:.1%} of {carried} intervals hold it (taken as independent: {plain / len(runs):.1%}; "
        f"not carried: {len(runs) - carried})",
        f"at least {least:.1%}",
        carried > 0 and share >= least,
    )


def _steady_runs(experiments: int, rng: np.random.Generator) -> Finding:
    """Single runs of 50 slices, mean and count, autocorrelated from slice to slice: how often one raises an alarm."""
    slices = partial(synthetic.autoregressive, rng, (experiments, synthetic.SLICES))
    alarms = {
        correlation: _share(
            not steady_state.detect(means, counts).from_start
            for means, counts in zip(slices(correlation, 0.1), slices(correlation, 0.1), strict=True)
        )
        for correlation in (0.0, 0.5, 0.9)
    }
    most = _at_most(0.04, experiments)
    return Finding(
        "steady runs called unsteady",
        ", ".join(f"{share:.1%} with autocorrelation {at:g}" for at, share in alarms.items()),
        f"at most {most:.1%} up to 0.5",
        max(alarms[0.0], alarms[0.5]) <= most,
    )


def _arrivals(count: int, rng: np.random.Generator) -> Iterator[Finding]:
    """Declared Poisson arrivals at 10,000/s, and others that only look like them in one respect."""
    n, mean_ns = 20_000, 100_000.0

    def refused(gaps: Callable[[], synthetic.Doubles]) -> float:
        return _share(
            bool(arrival_check(np.rint(gaps()).astype(np.int64), 10_000, "poisson").faults) for _ in range(count)
        )

    def pairs() -> synthetic.Doubles:
        return np.stack([np.zeros(n // 2), rng.exponential(2 * mean_ns, n // 2)], axis=1).ravel()

    def waves() -> synthetic.Doubles:
        strength = np.where(np.arange(n) // 500 % 2, 1.3, 0.7)
        return rng.exponential(mean_ns, n) * strength

    wrong = refused(lambda: rng.exponential(mean_ns, n))
    most = _at_most(0.01, count)
    yield Finding("Poisson arrivals refused", f"{wrong:.1%} of {count}", f"at most {most:.1%}", wrong <= most)
    others = {
        "constant": refused(lambda: np.full(n, mean_ns)),
        "8 % slow": refused(lambda: rng.exponential(1.08 * mean_ns, n)),
        "in pairs": refused(pairs),
        "in waves": refused(waves),
        "sorted": refused(lambda: np.sort(rng.exponential(mean_ns, n))),
    }
    yield Finding(
        "other arrivals refused",
        ", ".join(f"{name} {share:.0%}" for name, share in others.items()),
        "all of them",
        min(others.values()) == 1,
    )


# ---- shares and their bounds


def _holds(estimate: Estimate, ratio: float) -> bool:
    return estimate.low <= ratio <= estimate.high


def _share(outcomes: Iterable[bool]) -> float:
    """Of those that are so; 0 of none."""
    values = list(outcomes)
    return sum(values) / len(values) if values else 0.0


def _band(share: float, n: int) -> tuple[float, float]:
    """Within what a share found in n trials lies, with 99 %, where the true one is that."""
    tail = (1 - _CHANCE) / 2
    return float(scipy.stats.binom.ppf(tail, n, share)) / n, float(scipy.stats.binom.ppf(1 - tail, n, share)) / n


def _at_most(share: float, n: int) -> float:
    """What a share found in n trials does not exceed, with 99 %, where the true one is at most that."""
    return float(scipy.stats.binom.ppf(_CHANCE, n, share)) / n


def _no_more_than(name: str, what: str, wrong: Iterable[bool], level: float) -> Finding:
    outcomes = list(wrong)
    share, most = _share(outcomes), _at_most(level, len(outcomes))
    return Finding(
        name, f"{share:.1%} of {len(outcomes)} {what}", f"{level:.1%}: at most {most:.1%} seen", share <= most
    )
