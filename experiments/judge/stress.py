"""Stress tests: a row for each kind of request, and the final states of all keys, over the repetitions.

In a stress test several kinds of request are sent at the same time to many keys of one server. At the end every key is
read. A key is right if it has the value of one of its last writers. The functions are pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.design.limits import LIMITS, Limits
from experiments.design.setting import Setting
from experiments.judge.stats import Estimate, positive_interval
from experiments.kinds.block import Block
from experiments.kinds.stress import KindSeen, StressPlan, StressSeen

TOTAL = "TOTAL"


@dataclass(frozen=True, slots=True)
class StressRow:
    """Row of one kind of request on one server, or of all kinds together. The columns are as in JMeter's summary.
    Intervals are over the repetitions. A KB has 1024 bytes."""

    server: Setting
    kind: str
    samples: int
    """Number of requests in all repetitions, including errors."""
    errors: int
    throughput_hz: Estimate
    received_kb_s: Estimate
    sent_kb_s: Estimate


@dataclass(frozen=True, slots=True)
class StressJudged:
    """Result of a stress test: the rows, and the numbers of keys with a right and with a wrong final state."""

    plan: StressPlan
    rows: tuple[StressRow, ...]
    right: dict[Setting, int]
    """Number of keys with a right final state, summed over the repetitions, by server."""
    wrong: dict[Setting, int]
    """Number of keys with a wrong final state, summed over the repetitions, by server."""

    def row(self, server: Setting, kind: str) -> StressRow | None:
        """Row of a kind of request on a server. None if the kind was not measured."""
        return next((each for each in self.rows if (each.server, each.kind) == (server, kind)), None)


def judged(plan: StressPlan, blocks: Sequence[Block[StressSeen]], limits: Limits = LIMITS) -> StressJudged:
    """Judges the blocks of a stress test. A server has a row for each kind of request, and a last row ``TOTAL`` for all
    kinds."""
    rows: list[StressRow] = []
    seen = [[run.seen for run in block.by_place().runs] for block in blocks]
    right, wrong = dict.fromkeys(plan.servers, 0), dict.fromkeys(plan.servers, 0)
    for place, server in enumerate(plan.servers):
        runs = [block[place] for block in seen]
        kinds = {kind.name: [(run.kinds[number],) for run in runs] for number, kind in enumerate(plan.kinds)}
        named = kinds | {TOTAL: [run.kinds for run in runs]}
        rows += [_row(server, name, own, 1 - limits.level) for name, own in named.items() if runs]
        right[server] = sum(final.right for run in runs for final in run.final)
        wrong[server] = sum(final.wrong for run in runs for final in run.final)
    return StressJudged(plan, tuple(rows), right, wrong)


def _row(server: Setting, kind: str, runs: Sequence[Sequence[KindSeen]], confidence: float) -> StressRow:
    """Row of one kind of request, or of several kinds together. A rate is over the time from the first send to the last
    reply of these kinds."""
    rates: list[list[float]] = []
    for kinds in runs:
        answered = [each for each in kinds if each.requests]  # a kind without an answer has no times
        began_ns = min((each.began_ns for each in answered), default=0)
        lasted_s = (max((each.ended_ns for each in answered), default=0) - began_ns) / 1e9
        requests, received, sent = (
            sum(getattr(each, name) for each in kinds) for name in ("requests", "received_bytes", "sent_bytes")
        )
        rates.append([sum_ / lasted_s if lasted_s else 0.0 for sum_ in (requests, received / 1024, sent / 1024)])
    errors = sum(each.errors for kinds in runs for each in kinds)
    samples = sum(each.requests for kinds in runs for each in kinds) + errors
    hz, received, sent = (positive_interval([each[column] for each in rates], confidence) for column in range(3))
    return StressRow(server, kind, samples, errors, hz, received, sent)
