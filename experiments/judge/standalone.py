"""Use of servers by themselves: start-up, memory and idle processor time, with intervals over repetitions. Pure.

Intervals are Student's t over the repetitions' values. None of these quantities can be negative, so that an interval
that would reach under 0 ends there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.design.limits import LIMITS, Limits
from experiments.judge.stats import Estimate, mean_interval, positive_interval
from experiments.kinds.standalone import Alone, LoneServer, Repetition


@dataclass(frozen=True, slots=True)
class Holding:
    """A server that holds a number of connections, over the repetitions."""

    connections: int
    resident_mib: Estimate
    added_mib: Estimate
    """Memory above that of the same process without connections, within each repetition; 0 for none."""
    idle_share: Estimate
    """Share of a core, while nobody sent."""
    threads: int
    """Most threads that were seen."""


@dataclass(frozen=True, slots=True)
class Lone:
    """One server, over the repetitions."""

    server: LoneServer
    ready_ms: Estimate
    holding: tuple[Holding, ...]
    """Values by ascending connections, none first."""

    def with_connections(self, connections: int) -> Holding | None:
        """Values with this number of connections; None where it was not measured."""
        return next((each for each in self.holding if each.connections == connections), None)


@dataclass(frozen=True, slots=True)
class Standalone:
    """Servers by themselves, in the plan's order; none without repetitions."""

    servers: tuple[Lone, ...] = ()


def judged(plan: Alone, seen: Sequence[Repetition], limits: Limits = LIMITS) -> Standalone:
    """Every server of the plan."""
    confidence, places = 1 - limits.level, range(len(plan.servers) if seen else 0)
    return Standalone(tuple(_lone(plan, seen, place, confidence) for place in places))


def _lone(plan: Alone, seen: Sequence[Repetition], place: int, confidence: float) -> Lone:
    starts = [repetition.servers[place] for repetition in seen]
    holding = []
    for number, connections in enumerate(plan.servers[place].connections):
        held = [start.held[number] for start in starts]
        holding.append(
            Holding(
                connections=connections,
                resident_mib=positive_interval([each.resident_mib for each in held], confidence),
                added_mib=mean_interval(
                    [start.held[number].resident_mib - start.held[0].resident_mib for start in starts], confidence
                ),
                idle_share=positive_interval([each.cpu_ns / each.watched_ns for each in held], confidence),
                threads=max(each.threads for each in held),
            )
        )
    return Lone(
        plan.servers[place], positive_interval([start.ready_ms for start in starts], confidence), tuple(holding)
    )
