"""What no gate could look at, because it was not seen: so that a report says so, and silence is no pass.

A gate does not refuse for want of evidence that a study cannot have (a Go peer shows no threads); but where nothing
was looked at nothing was found, and that is not the same as having passed. Only what applies is named: a closed loop
has no arrivals to check.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import assert_never

from experiments.gates.comparison_gates import HELD, SHOULD_CHANGE
from experiments.gates.evidence import (
    ComparisonEvidence,
    Evidence,
    FamilyEvidence,
    IntervalEvidence,
    MachineEvidence,
    RunEvidence,
    SentenceEvidence,
)


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Something that a gate would look at, and could not."""

    gate: int
    where: str
    missing: str

    def __str__(self) -> str:
        return f"gate {self.gate}, {self.where}: {self.missing} was not seen"


def unchecked(evidence: Evidence) -> list[Unchecked]:
    """What was not seen of a piece of evidence and of what it rests on, by gate."""
    match evidence:
        case RunEvidence():
            found = [Unchecked(gate, evidence.run_id, missing) for gate, missing, lacks in _OF_A_RUN if lacks(evidence)]
        case ComparisonEvidence():
            found = [Unchecked(gate, evidence.name, missing) for gate, missing in _of_comparison(evidence)]
            found += [each for run in evidence.runs for each in unchecked(run)]
            found += [] if evidence.machine is None else unchecked(evidence.machine)
        case MachineEvidence():
            around = evidence.surroundings
            found = [Unchecked(14, evidence.machine, "steal")] if around.steal_share is None else []
            found += [Unchecked(14, evidence.machine, "calibration")] if around.calibration_us_after is None else []
        case SentenceEvidence():
            found = [each for comparison in evidence.comparisons for each in unchecked(comparison)]
        case IntervalEvidence() | FamilyEvidence():
            found = []
        case _:
            assert_never(evidence)
    return list(dict.fromkeys(found))


def _open(run: RunEvidence) -> bool:
    return run.load.loop == "open"


_OF_A_RUN: tuple[tuple[int, str, Callable[[RunEvidence], bool]], ...] = (
    (1, "idle time within the times", lambda run: run.times.idle_us_mean is None),
    (3, "sockets open at the server", lambda run: run.seen.get("connections") is None),
    (5, "whether the window was steady", lambda run: run.replies.steady is None),
    (6, "think time", lambda run: not _open(run) and run.times.think_us_mean is None),
    (6, "requests under way", lambda run: _open(run) and run.times.in_flight_mean is None),
    (6, "the server's processor time", lambda run: run.server.cpu_us_per_request is None),
    (6, "the demands of one request", lambda run: run.server.demand_us is None or run.server.demand_us_max is None),
    (7, "late sends", lambda run: _open(run) and run.load.late_us_p99 is None),
    (7, "the median response", lambda run: _open(run) and all(each.rank != 50 for each in run.times.percentiles)),
    (7, "the declared rate", lambda run: _open(run) and run.load.rate_hz is None),
    (7, "the load side's processor time", lambda run: run.load.cpu_share is None and not run.load.spinning),
    (8, "arrivals", lambda run: _open(run) and (run.load.arrivals is None or run.load.process is None)),
    (13, "effective samples", lambda run: any(each.effective is None for each in run.times.percentiles)),
    (14, "steal", lambda run: run.surroundings.steal_share is None),
    (
        14,
        "calibration",
        lambda run: None in (run.surroundings.calibration_us_before, run.surroundings.calibration_us_after),
    ),
)


def _of_comparison(comparison: ComparisonEvidence) -> Iterator[tuple[int, str]]:
    for name in HELD:
        if any(name not in run.seen and name not in run.factors for run in comparison.runs):
            yield 2, name.replace("_", " ")
    for factor in sorted(comparison.declared):
        for name in SHOULD_CHANGE.get(factor, ()):
            if any(name not in run.seen for run in comparison.runs):
                yield 3, f"{name.replace('_', ' ')} of both arms"
