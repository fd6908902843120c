"""A refusal: what is wrong with the numbers that show it, what to do, and which conclusions it forbids.

A refusal forbids as little as it must. A load side that took its whole core spoils what is said of the server's
capacity, and leaves the latency standing as that of client and server together; a p99.9 of 200 requests spoils itself
alone. ``forbidding`` applies that: a report asks it before it says anything.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

Kind = Literal["latency", "percentile", "throughput", "capacity", "cpu", "interval", "verdict", "sentence"]
"""What one may want to conclude."""


class Scope(Enum):
    """How far a refusal reaches."""

    PERCENTILE = "percentile"
    """One percentile of the run."""
    LATENCY = "latency"
    """Every time of the run; its counts and processor time stand."""
    CAPACITY = "capacity"
    """What the server could do at most; the latency is that of client and server together."""
    RUN = "run"
    """All that the run shows."""
    INTERVAL = "interval"
    """The interval; the value may stand without it."""
    VERDICT = "verdict"
    """The comparison's, or the family's: INCONCLUSIVE, whatever the numbers."""
    SENTENCE = "sentence"
    """It is not said."""
    ALL = "all"
    """Every conclusion from this machine under this load."""


FORBIDS: dict[Scope, frozenset[Kind]] = {
    Scope.PERCENTILE: frozenset({"percentile"}),
    Scope.LATENCY: frozenset({"latency", "percentile", "interval"}),
    Scope.CAPACITY: frozenset({"capacity"}),
    Scope.RUN: frozenset({"latency", "percentile", "throughput", "capacity", "cpu", "interval"}),
    Scope.INTERVAL: frozenset({"interval", "verdict"}),
    Scope.VERDICT: frozenset({"verdict"}),
    Scope.SENTENCE: frozenset({"sentence"}),
    Scope.ALL: frozenset({"latency", "percentile", "throughput", "capacity", "cpu", "interval", "verdict", "sentence"}),
}
"""What each scope forbids to be concluded of the refused itself. A verdict or sentence falls with what it rests on."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One fault that one gate found."""

    gate: int
    where: str
    """The run's id, or the name of the comparison, interval, family or machine, or the sentence."""
    what: str
    """What is wrong, with the numbers that show it."""
    do: str
    scope: Scope
    rank: float | None = None
    """The percentile's, where it is one that is refused."""

    def __str__(self) -> str:
        return f"gate {self.gate}, {self.where}: {self.what}. {self.do[:1].upper()}{self.do[1:]}."


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What is to be concluded, and what it rests on."""

    kind: Kind
    """What is concluded."""
    of: str
    """The run, comparison, interval or sentence that it is concluded of."""
    rests_on: frozenset[str] = frozenset()
    """Further names: a comparison's runs, its interval, family and machine; a sentence's comparisons and all theirs."""
    basis: Kind = "latency"
    """For a verdict or a sentence: what of its runs it is about."""
    rank: float | None = None
    """Of a percentile, or of the percentile that a verdict is about."""


def forbidding(refusals: Iterable[Refusal], conclusion: Conclusion) -> list[Refusal]:
    """Those of the refusals that forbid the conclusion; it may be drawn if there are none."""
    return [refusal for refusal in refusals if _forbids(refusal, conclusion)]


def _forbids(refusal: Refusal, wanted: Conclusion) -> bool:
    if refusal.scope is Scope.ALL:
        return True
    if refusal.rank is not None and refusal.rank != wanted.rank:
        return False
    forbidden = FORBIDS[refusal.scope]
    if refusal.where == wanted.of:
        return wanted.kind in forbidden
    if refusal.where in wanted.rests_on:
        return bool({wanted.basis, "verdict", "sentence"} & forbidden)
    return False
