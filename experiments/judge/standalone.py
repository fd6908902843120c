"""Servers without a load: start-up time, memory and idle processor time, with intervals over repetitions.

Each repetition is a block. Intervals are Student's t intervals of the repetitions' values. Start-up time, memory and
processor time are never negative, so their intervals begin at 0 or above. The memory that connections add is a
difference, so its interval may begin under 0. The functions are pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.design.limits import LIMITS, Limits
from experiments.judge.stats import Estimate, mean_interval, positive_interval
from experiments.kinds.block import Block
from experiments.kinds.standalone import LoneServer, StandalonePlan, StartSeen


@dataclass(frozen=True, slots=True)
class Holding:
    """Means with intervals, over the repetitions, for a server that holds ``connections`` idle connections."""

    connections: int
    resident_mib: Estimate
    added_mib: Estimate
    """Resident memory with the connections minus resident memory without connections, of the same process. 0 for no
    connections."""
    idle_share: Estimate
    """Share of a core that the server used while no requests came."""


@dataclass(frozen=True, slots=True)
class LoneJudged:
    """Means of one server over the repetitions, with intervals."""

    server: LoneServer
    ready_ms: Estimate
    holding: tuple[Holding, ...]
    """Values for each number of connections, ascending. The first number is 0."""

    def with_connections(self, connections: int) -> Holding | None:
        """Values for ``connections`` connections. None if the server was not observed with this number."""
        return next((each for each in self.holding if each.connections == connections), None)


@dataclass(frozen=True, slots=True)
class StandaloneJudged:
    """Means of all servers, in the plan's order. Empty without repetitions."""

    servers: tuple[LoneJudged, ...] = ()


def judged(plan: StandalonePlan, blocks: Sequence[Block[StartSeen]], limits: Limits = LIMITS) -> StandaloneJudged:
    """Means of every server of the plan over the repetitions, with intervals of confidence 1 − ``limits.level``."""
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
