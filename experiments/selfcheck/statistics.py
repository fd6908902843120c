"""Check of the statistics on synthetic experiments whose truth is known.

Their noise is that of the project's own recordings, resampled (``noise.py``), in six families. Every experiment is a
sweep with an A/A pair and four headline comparisons: two of equal arms, and two that differ by 3 % and by 20 %. It is
treated as a measured sweep: robbed rounds lose pairs, each block has its trimmed mean, and a gate drops blocks. Then
the judging code itself runs, at the looks of a sweep: intervals, sign-flip test, Holm, the A/A gate.

Where noise is not the same in both arms the typical ratio is not the injected one; the truth then is the mean of all
the family's block values. The bounds of coverage are wider than chance needs: 10,000 intervals a family are good to
0.25 %. Holm's correction uses up the 5 % of false differences, so that bound allows for chance, with 99 %. Beside them:
arrivals that are declared and others, as the gate on arrivals has them. ``check`` takes a minute and a half on one
core. Left out: the gates that need a machine.
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
from experiments.judge.verdicts import Judged, Values, Verdict, judge_values
from experiments.selfcheck.finding import Finding
from experiments.selfcheck.noise import FAMILIES, Draw, Numbers, Shape, Source, recorded
from stock_service.rpc.errors import UsageError

RECORDING = Path(__file__).resolve().parents[1] / "studies" / "stock" / "recorded" / "quick"
"""Recording that the noise is from, unless another is given."""

LOOKS = (10, 14, 20)

PAIRS = 60

TRUE_RATIOS: Mapping[str, float] = {"equal 1": 1.0, "equal 2": 1.0, "3 %": 1.03, "20 %": 1.2}

EQUAL = ("equal 1", "equal 2")

COVERED_LOW, COVERED_HIGH, COVERED_WITH_LOOKS, FALSE_MAX = 0.935, 0.965, 0.94, 0.05

DROPPED_SHARE = 0.03
"""Share of a comparison's blocks that a gate drops, independent of their values."""

ROBBED_SHARE, ROBBED_PAIRS = 0.1, 0.4
"""Share of the blocks that are robbed, and the largest share of its pairs that such a block loses."""

_CHANCE = 0.99
"""Probability with which a right share passes, where the bound allows for chance."""

Judge = Callable[[Sweep, Mapping[str, Values], bool], Mapping[str, Judged]]


MINUTES = OVERNIGHT = 2000
"""Synthetic experiments of each family, in both versions of the check."""


def check(experiments: int, recording: Path = RECORDING, seed: int = 1, judge: Judge = judge_values) -> list[Finding]:
    """Every finding. ``judge`` is the tested function: with a wrong function the check shows if it catches the error.

    A recording that cannot be read is the only finding, and has not passed.
    """
    try:
        sources = recorded(recording)
    except UsageError as error:
        return [Finding("statistics", str(error), "noise of a recording", False)]
    findings: list[Finding] = []
    for number, (name, draw) in enumerate(FAMILIES.items()):
        rng = np.random.default_rng([seed, number])
        findings += of_family(name, drawn(draw, sources, experiments, rng), judge)
    return [*findings, *_arrivals(max(100, experiments // 10), np.random.default_rng([seed, len(FAMILIES)]))]


def sweep(looks: tuple[int, ...], names: Iterable[str] = TRUE_RATIOS) -> Sweep:
    """Sweep of every synthetic experiment: the comparisons above, or some of them, and an A/A pair."""
    above, below = Arm(read("sockets workers=4")), Arm(read("sockets"))
    asked = [Comparison(name, name, above, below, ("workers",), family="headline") for name in names]
    pair, first, again = twins(read("sockets"), "same")
    return Sweep("selfcheck", "statistics", (Group((above, first, again)),), (*asked, pair), PAIRS, looks)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Experiments of one family: every comparison's block values, and its true ratio."""

    values: Mapping[str, Sequence[Sequence[tuple[int, float]]]]
    """Values by comparison and experiment: the blocks that are not dropped, with their numbers."""
    truths: Mapping[str, float]
    """The true log-ratios."""

    @property
    def experiments(self) -> int:
        """Number of experiments."""
        return len(next(iter(self.values.values())))


def drawn(draw: Draw, sources: Sequence[Source], experiments: int, rng: np.random.Generator) -> Drawn:
    """Draws this number of experiments, each comparison with the noise of one A/A pair of the recording."""
    values: dict[str, list[list[tuple[int, float]]]] = {}
    truths: dict[str, float] = {}
    ratios = {**TRUE_RATIOS, sweep((LOOKS[0],)).comparisons[-1].name: 1.0}
    for number, (name, ratio) in enumerate(ratios.items()):
        shape = Shape(experiments, LOOKS[-1], PAIRS, equal=ratio == 1)
        log_ratios = draw(sources[number % len(sources)], shape, rng) + math.log(ratio)
        blocks = _block_values(log_ratios, rng)
        dropped = rng.random(blocks.shape) < DROPPED_SHARE
        truths[name] = 0.0 if ratio == 1 else float(blocks.mean())
        values[name] = [
            [(at + 1, value) for at, (value, lost) in enumerate(zip(*both, strict=True)) if not lost]
            for both in zip(blocks.tolist(), dropped.tolist(), strict=True)
        ]
    return Drawn(values, truths)


def _block_values(log_ratios: Numbers, rng: np.random.Generator) -> Numbers:
    """The trimmed mean of each block's pairs, after robbed rounds have lost some."""
    experiments, blocks, pairs = log_ratios.shape
    trimmed = sweep((LOOKS[0],)).limits.trimmed
    robbed = rng.random((experiments, blocks)) < ROBBED_SHARE
    kept = np.where(robbed, pairs - rng.integers(0, round(ROBBED_PAIRS * pairs), robbed.shape), pairs)
    flat = zip(log_ratios.reshape(-1, pairs), kept.ravel().tolist(), strict=True)
    return np.array([trimmed_mean(each[:left], trimmed) for each, left in flat]).reshape(experiments, blocks)


def of_family(name: str, of: Drawn, judge: Judge = judge_values) -> Iterator[Finding]:
    """Findings on intervals and verdicts of one family."""
    fixed, with_looks, alone = (
        _judged(of, each, judge) for each in (sweep((LOOKS[0],)), sweep(LOOKS), sweep(LOOKS, (EQUAL[0],)))
    )
    share = _covered(of, fixed)
    yield Finding(
        f"coverage, {name}",
        f"{share:.1%} of the 95 % intervals of {LOOKS[0]} blocks hold the true ratio",
        f"{COVERED_LOW:.1%} to {COVERED_HIGH:.1%}",
        COVERED_LOW <= share <= COVERED_HIGH,
    )
    share = _covered(of, with_looks)
    ends = [max(max(one.log_ratios, default=0) for one in each.values()) for each in with_looks]
    at = ", ".join(f"{_share(end <= look for end in ends):.0%} by {look}" for look in LOOKS)
    yield Finding(
        f"coverage with looks, {name}",
        f"{share:.1%} of the intervals printed at the end hold the true ratio (blocks: {at})",
        f"at least {COVERED_WITH_LOOKS:.0%}",
        share >= COVERED_WITH_LOOKS,
    )
    for what, runs in (
        ("with a fixed number of blocks", fixed),
        ("with looks", with_looks),
        ("with looks, one comparison", alone),
    ):
        wrong = _share(any(_differs(one[each]) for each in EQUAL if each in one) for one in runs)
        yield Finding(
            f"false differences {what}, {name}",
            f"{wrong:.1%} of {len(runs)} sweeps call equal arms different",
            f"{FALSE_MAX:.0%}: at most {_at_most(FALSE_MAX, len(runs)):.1%} seen",
            wrong <= _at_most(FALSE_MAX, len(runs)),
        )


def _judged(of: Drawn, asked: Sweep, judge: Judge) -> list[Mapping[str, Judged]]:
    """Judgements of every experiment, at the look that ends it."""
    named = {each.name: of.values[each.name] for each in asked.comparisons}
    return [
        _at_its_end(asked, {name: each[place] for name, each in named.items()}, judge)
        for place in range(of.experiments)
    ]


def _at_its_end(asked: Sweep, seen: Mapping[str, Sequence[tuple[int, float]]], judge: Judge) -> Mapping[str, Judged]:
    comparisons = {each.name: each for each in asked.comparisons}
    judged: Mapping[str, Judged] = {}
    for look in asked.looks:
        by_name = {name: {at: value for at, value in blocks if at <= look} for name, blocks in seen.items()}
        judged = judge(asked, {name: Values(comparisons[name], each, each) for name, each in by_name.items()}, True)
        if all(one.decided for one in judged.values() if one.comparison.family == "headline"):
            break
    return judged


def _covered(of: Drawn, runs: Sequence[Mapping[str, Judged]]) -> float:
    truths = {name: math.exp(truth) for name, truth in of.truths.items()}
    return _share(one[name].typical.low <= truths[name] <= one[name].typical.high for one in runs for name in truths)


def _differs(one: Judged) -> bool:
    return one.verdict in (Verdict.FASTER, Verdict.SLOWER)


def _arrivals(count: int, rng: np.random.Generator) -> Iterator[Finding]:
    """Findings on declared Poisson arrivals at 10,000/s, and on other arrivals that resemble them in one respect."""
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
    """Share of the outcomes that are true; 0 where there are none."""
    values = list(outcomes)
    return sum(values) / len(values) if values else 0.0


def _at_most(share: float, n: int) -> float:
    """Bound that a share found in n trials does not exceed, with 99 %, where the true share is at most ``share``."""
    return bisect_left(range(n + 1), _CHANCE, key=lambda seen: float(scipy.special.bdtr(seen, n, share))) / n
