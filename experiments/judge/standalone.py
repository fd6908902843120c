"""Servers without a load: start-up time, memory and idle processor time, with intervals over repetitions. Pure.

Intervals are Student's t over the repetitions' values. The three quantities are never negative, so no interval of them
begins under 0. The memory that connections add is a difference, and its interval may begin under 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.design.limits import LIMITS, Limits
from experiments.judge.stats import Estimate, mean_interval, positive_interval
from experiments.kinds.block import Block
from experiments.kinds.standalone import LoneServer, StandalonePlan, StartSeen


@dataclass(frozen=True, slots=True)
class Holding:
    """Values of a server that holds a number of connections, over the repetitions."""

    connections: int
    resident_mib: Estimate
    added_mib: Estimate
    """Memory that the connections add to the same process, within each repetition; 0 for no connections."""
    idle_share: Estimate
    """Share of a core that the server took while no requests came."""


@dataclass(frozen=True, slots=True)
class LoneJudged:
    """Values of one server, over the repetitions."""

    server: LoneServer
    ready_ms: Estimate
    holding: tuple[Holding, ...]
    """Values by ascending number of connections. The first values are without connections."""

    def with_connections(self, connections: int) -> Holding | None:
        """Values with this number of connections; None where this number was not measured."""
        return next((each for each in self.holding if each.connections == connections), None)


@dataclass(frozen=True, slots=True)
class StandaloneJudged:
    """Values of the servers of a plan, in the plan's order. Empty without repetitions."""

    servers: tuple[LoneJudged, ...] = ()


def judged(plan: StandalonePlan, blocks: Sequence[Block[StartSeen]], limits: Limits = LIMITS) -> StandaloneJudged:
    """Judge the repetitions: the values of every server of the plan."""
    starts = zip(*([run.seen for run in block.by_place().runs] for block in blocks), strict=True)
    servers = zip(plan.servers, starts, strict=False)
    return StandaloneJudged(tuple(_lone(server, own, 1 - limits.level) for server, own in servers))


def _lone(server: LoneServer, starts: Sequence[StartSeen], confidence: float) -> LoneJudged:
    holding = []
    for number, connections in enumerate(server.connections):
        held = [start.held[number] for start in starts]
        added = [start.held[number].resident_mib - start.held[0].resident_mib for start in starts]
        holding.append(
            Holding(
                connections=connections,
                resident_mib=positive_interval([each.resident_mib for each in held], confidence),
                added_mib=mean_interval(added, confidence),
                idle_share=positive_interval([each.cpu_ns / each.watched_ns for each in held], confidence),
            )
        )
    return LoneJudged(server, positive_interval([start.ready_ms for start in starts], confidence), tuple(holding))
