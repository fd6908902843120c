"""Gate 20, and gate 14 on a whole sweep: what the instrument can tell apart on this machine, under this load.

An A/A round compares a setting with itself: every difference that it finds is false. At a level of 5 % some are due to
chance, so a round passes with as many as chance exceeds once in a hundred: 2 of 4, 2 of 8, 6 of 40.
"""

import math
from collections.abc import Iterator

import scipy

from experiments.gates.evidence import AARecord, ComparisonEvidence, MachineEvidence
from experiments.gates.refusal import Refusal, Scope
from experiments.stats import ALPHA, EQUIVALENCE, Verdict

AA_MIN = 4
"""A/A comparisons in a round, at least: a sweep has four of its own, made in the very blocks of its comparisons, which
says more of them than eight of another hour."""

_PASSED_BY_CHANCE = 0.99

_TWICE = "run two or more blocks, with settings that are run twice in each"
_MORE = f"run with two or more numbers of clients, so that {AA_MIN} settings are run twice in each block"
_APART = "find what tells equal arms apart (order, drift, neighbours), and repeat"
_BLOCKS = "run more blocks"


def false_differences_allowed(comparisons: int) -> int:
    """False differences that a round of so many A/A comparisons may show: 2 of 4, 2 of 8, 6 of 40."""
    return int(scipy.stats.binom.ppf(_PASSED_BY_CHANCE, comparisons, ALPHA))


def passes(record: AARecord) -> bool:
    """Whether a round is large enough and found no more differences than chance makes."""
    return record.comparisons >= AA_MIN and record.false_differences <= false_differences_allowed(record.comparisons)


def no_passing_aa(machine: MachineEvidence) -> Iterator[Refusal]:
    """Gate 20 on a sweep."""
    own = _own(machine)
    if any(map(passes, own)):
        return
    if own:
        best = min(own, key=lambda record: record.false_differences / max(record.comparisons, 1))
        what = (
            f"A/A found {best.false_differences} false differences in {best.comparisons} "
            f"(allowed {false_differences_allowed(best.comparisons)}, of {AA_MIN} at least)"
        )
        do = _MORE if best.comparisons < AA_MIN else _APART
    else:
        others = sorted({f"{record.machine} under {record.load}" for record in machine.aa})
        elsewhere = f"; there is one for {', '.join(others)}" if others else ""
        what, do = f"no A/A run on this machine under {machine.load}{elsewhere}", _TWICE
    yield Refusal(20, machine.machine, what, do, Scope.ALL)


def effect_too_small(comparison: ComparisonEvidence) -> Iterator[Refusal]:
    """Gate 20 on a comparison: no difference is told that the instrument cannot tell, nor its absence."""
    machine, verdict = comparison.machine, comparison.verdict
    if machine is None:
        yield Refusal(20, comparison.name, "no A/A run is known for its machine and load", _TWICE, Scope.VERDICT)
        return
    smallest = min((record.effect_min for record in _own(machine) if passes(record)), default=None)
    if smallest is None or verdict is Verdict.INCONCLUSIVE or not comparison.log_ratios:
        return  # the machine's own refusal says it, or nothing is concluded
    if verdict is Verdict.EQUIVALENT:
        if not smallest <= EQUIVALENCE[1]:
            least = f"the instrument tells apart no less than {smallest - 1:.1%}"
            what = f"a ratio within {EQUIVALENCE[1] - 1:.0%} of 1, where {least}"
            yield Refusal(20, comparison.name, what, _BLOCKS, Scope.VERDICT)
        return
    effect = math.exp(abs(sum(comparison.log_ratios) / len(comparison.log_ratios)))
    if not effect >= smallest:
        what = f"{verdict.value} by {effect - 1:.1%}, where the instrument tells apart no less than {smallest - 1:.1%}"
        yield Refusal(20, comparison.name, what, _BLOCKS, Scope.VERDICT)


def _own(machine: MachineEvidence) -> list[AARecord]:
    return [record for record in machine.aa if (record.machine, record.load) == (machine.machine, machine.load)]
