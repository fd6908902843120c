"""Check of the statistics on synthetic experiments whose true ratios are known.

The noise of the experiments is resampled from the project's own recordings, in six families (``noise.py``). Every
experiment is a sweep with five comparisons: an A/A pair (equal arms), and four headline comparisons. Two headline
comparisons have equal arms. In the remaining two, the arms differ by 3 % and by 20 %. The values are treated as in a
measured sweep: pairs in robbed rounds are lost, each block has a trimmed mean, and a gate drops blocks. Then the
project's own judging code runs, at the looks of a sweep: intervals, sign-flip test, Holm's correction, the gate on the
A/A pair.

If the two arms have different noise, the typical ratio may differ from the injected ratio. The true ratio is then the
mean of all block values of the family. Coverage is the share of intervals that contain the true ratio. With 10,000
intervals in each family, the coverage has a standard error of about 0.25 %. The bounds of coverage are four standard
errors or more from 95 %. With Holm's correction, equal arms may be called different in 5 % of the sweeps, and chance
may give a larger share. So the bound on the observed share is higher: correct statistics pass with a probability of 99
%. A further check applies the gate on arrivals to Poisson arrivals and to other arrivals. ``check`` takes a minute and
a half on one core. Left out: the gates that need measurements of a machine.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy

from clients.load.record.dependence import arrival_check
from experiments.design.arms import Arm, Comparison, Group, twins
from experiments.design.setting import read
from experiments.design.sweep import Sweep
from experiments.judge.stats import trimmed_mean
from experiments.judge.verdicts import APART, Judged, Values, judge_values
from experiments.selfcheck.finding import Finding
from experiments.selfcheck.noise import FAMILIES, Draw, Numbers, Shape, Source, recorded
from stock_service.rpc.errors import UsageError

RECORDING = Path(__file__).resolve().parents[1] / "studies" / "stock" / "recorded" / "quick"
"""Recording whose noise is resampled, if no other recording is given."""

LOOKS = (10, 14, 20)

PAIRS = 60

SEED = 1

TRUE_RATIOS: Mapping[str, float] = {"equal 1": 1.0, "equal 2": 1.0, "3 %": 1.03, "20 %": 1.2}
"""Injected ratio of each headline comparison."""

EQUAL = ("equal 1", "equal 2")

COVERED_LOW, COVERED_HIGH, COVERED_WITH_LOOKS, FALSE_MAX = 0.935, 0.965, 0.94, 0.05
"""Bounds. ``COVERED_LOW``, ``COVERED_HIGH``: coverage with a fixed number of blocks. ``COVERED_WITH_LOOKS``: smallest
coverage with looks. ``FALSE_MAX``: largest true share of the sweeps in which equal arms are called different."""

DROPPED_SHARE = 0.03
"""Share of a comparison's blocks that a gate drops. The choice of these blocks is random, and does not depend on the
blocks' values."""

ROBBED_SHARE, ROBBED_PAIRS = 0.1, 0.4
"""``ROBBED_SHARE``: share of robbed blocks, in which other processes take the cores. ``ROBBED_PAIRS``: largest share of
its pairs that a robbed block loses."""

_CHANCE = 0.99
"""Probability with which correct statistics pass, for bounds that allow for chance."""

Judge = Callable[[Sweep, Mapping[str, Values], bool], Mapping[str, Judged]]


MINUTES = OVERNIGHT = 2000
"""Number of synthetic experiments of each family, in both versions of the check."""


def check(experiments: int, recording: Path = RECORDING) -> list[Finding]:
    """Findings on every family and on arrivals. If the recording cannot be read, the result is one failed finding."""
    try:
        sources = recorded(recording)
    except UsageError as error:
        return [Finding("statistics", str(error), "noise of a recording", False)]
    findings: list[Finding] = []
    for number, (name, draw) in enumerate(FAMILIES.items()):
        rng = np.random.default_rng([SEED, number])
        findings += of_family(name, drawn(draw, sources, experiments, rng))
    return [*findings, *_arrivals(max(100, experiments // 10), np.random.default_rng([SEED, len(FAMILIES)]))]


def sweep(looks: tuple[int, ...], names: Iterable[str] = TRUE_RATIOS) -> Sweep:
    """Sweep of the synthetic experiments: the headline comparisons ``names``, and an A/A pair."""
    above, below = Arm(read("sockets workers=4")), Arm(read("sockets"))
    asked = [Comparison(name, name, above, below, ("workers",), family="headline") for name in names]
    pair, first, again = twins(read("sockets"), "same")
    return Sweep("selfcheck", "statistics", (Group((above, first, again)),), (*asked, pair), PAIRS, looks)


FIXED, WITH_LOOKS = "with a fixed number of blocks", "with looks"

ENDS = {
    FIXED: sweep((LOOKS[0],)),
    WITH_LOOKS: sweep(LOOKS),
    "with looks, one comparison": sweep(LOOKS, (EQUAL[0],)),
}
"""Plans of the synthetic sweeps, by the rule that ends the sweep: one look, several looks, or several looks with one
comparison."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Experiments of one family: the block values and the true ratio of every comparison."""

    values: Mapping[str, Sequence[Mapping[int, float]]]
    """Log-ratios of the blocks, by the block's number, for each experiment of each comparison. Dropped blocks have no
    log-ratio."""
    truths: Mapping[str, float]
    """True log-ratio of each comparison."""


def drawn(draw: Draw, sources: Sequence[Source], experiments: int, rng: np.random.Generator) -> Drawn:
    """Draws ``experiments`` experiments. Each comparison has the noise of one A/A pair of the recording."""
    values: dict[str, list[dict[int, float]]] = {}
    truths: dict[str, float] = {}
    ratios = {**TRUE_RATIOS, ENDS[FIXED].comparisons[-1].name: 1.0}
    for number, (name, ratio) in enumerate(ratios.items()):
        shape = Shape(experiments, LOOKS[-1], PAIRS, equal=ratio == 1)
        log_ratios = draw(sources[number % len(sources)], shape, rng) + math.log(ratio)
        blocks = _block_values(log_ratios, rng)
        dropped = rng.random(blocks.shape) < DROPPED_SHARE
        truths[name] = 0.0 if ratio == 1 else float(blocks.mean())
        values[name] = [
            {at: value for at, (value, lost) in enumerate(zip(*both, strict=True), 1) if not lost}
            for both in zip(blocks.tolist(), dropped.tolist(), strict=True)
        ]
    return Drawn(values, truths)


def _block_values(log_ratios: Numbers, rng: np.random.Generator) -> Numbers:
    """Trimmed means of all blocks. Lost pairs of robbed blocks do not count."""
    experiments, blocks, pairs = log_ratios.shape
    trimmed = ENDS[FIXED].limits.trimmed
    robbed = rng.random((experiments, blocks)) < ROBBED_SHARE
    kept = np.where(robbed, pairs - rng.integers(0, round(ROBBED_PAIRS * pairs), robbed.shape), pairs)
    flat = zip(log_ratios.reshape(-1, pairs), kept.ravel().tolist(), strict=True)
    return np.array([trimmed_mean(each[:left], trimmed) for each, left in flat]).reshape(experiments, blocks)


def of_family(name: str, of: Drawn) -> Iterator[Finding]:
    """Findings on intervals and verdicts of one family."""
    for end in ENDS:
        yield from of_end(name, of, end)


def of_end(name: str, of: Drawn, end: str, judge: Judge = judge_values) -> Iterator[Finding]:
    """Findings on a family's sweeps with the plan ``ENDS[end]``. Tests also pass a faulty ``judge``, and expect failed
    findings."""
    runs = _judged(of, ENDS[end], judge)
    if end == FIXED:
        share = _covered(of, runs)
        yield Finding(
            f"coverage, {name}",
            f"{share:.1%} of the 95 % intervals of {LOOKS[0]} blocks hold the true ratio",
            f"{COVERED_LOW:.1%} to {COVERED_HIGH:.1%}",
            COVERED_LOW <= share <= COVERED_HIGH,
        )
    elif end == WITH_LOOKS:
        share = _covered(of, runs)
        blocks = [max(max(one.log_ratios, default=0) for one in each.values()) for each in runs]
        at = ", ".join(f"{_share(last <= look for last in blocks):.0%} by {look}" for look in LOOKS)
        yield Finding(
            f"coverage with looks, {name}",
            f"{share:.1%} of the intervals printed at the end hold the true ratio (blocks: {at})",
            f"at least {COVERED_WITH_LOOKS:.0%}",
            share >= COVERED_WITH_LOOKS,
        )
    wrong = _share(any(one[each].verdict in APART for each in EQUAL if each in one) for one in runs)
    yield Finding(
        f"false differences {end}, {name}",
        f"{wrong:.1%} of {len(runs)} sweeps call equal arms different",
        f"{FALSE_MAX:.0%}: at most {_at_most(FALSE_MAX, len(runs)):.1%} seen",
        wrong <= _at_most(FALSE_MAX, len(runs)),
    )


def _judged(of: Drawn, asked: Sweep, judge: Judge) -> list[Mapping[str, Judged]]:
    """Judgements on every experiment, at the look that ends the experiment."""
    experiments = zip(*(of.values[each.name] for each in asked.comparisons), strict=True)
    return [_at_its_end(asked, seen, judge) for seen in experiments]


def _at_its_end(asked: Sweep, seen: Sequence[Mapping[int, float]], judge: Judge) -> Mapping[str, Judged]:
    """Judgement of one experiment at the first look that decides every headline comparison, or at the last look."""
    judged: Mapping[str, Judged] = {}
    for look in asked.looks:
        values = {}
        for comparison, blocks in zip(asked.comparisons, seen, strict=True):
            so_far = {at: value for at, value in blocks.items() if at <= look}
            values[comparison.name] = Values(comparison, so_far, so_far)
        judged = judge(asked, values, True)
        if all(one.decided for one in judged.values() if one.comparison.family == "headline"):
            break
    return judged


def _covered(of: Drawn, runs: Sequence[Mapping[str, Judged]]) -> float:
    """Share of the intervals that contain the true ratio, over all comparisons."""
    truths = {name: math.exp(truth) for name, truth in of.truths.items()}
    return _share(one[name].typical.low <= truths[name] <= one[name].typical.high for one in runs for name in truths)


def _arrivals(count: int, rng: np.random.Generator) -> Iterator[Finding]:
    """Findings on the gate on arrivals, with Poisson arrivals at 10,000/s and with other arrivals of a similar rate."""
    n, mean_ns = 20_000, 100_000.0

    def refused(gaps: Callable[[], Numbers]) -> float:
        return _share(
            bool(arrival_check(np.rint(gaps()).astype(np.int64), 10_000, "poisson").faults) for _ in range(count)
        )

    def pairs() -> Numbers:
        return np.stack([np.zeros(n // 2), rng.exponential(2 * mean_ns, n // 2)], axis=1).ravel()

    def waves() -> Numbers:
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


def _share(outcomes: Iterable[bool]) -> float:
    """Share of the outcomes that are true; 0 without outcomes."""
    values = list(outcomes)
    return sum(values) / len(values) if values else 0.0


def _at_most(share: float, n: int) -> float:
    """Upper bound on the share of n trials that have an outcome. If the outcome's probability is at most ``share``, the
    observed share exceeds the bound with a probability of 1 % at most."""
    return bisect_left(range(n + 1), _CHANCE, key=lambda seen: float(scipy.special.bdtr(seen, n, share))) / n
