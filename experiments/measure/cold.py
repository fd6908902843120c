"""Observes cold runs. Each block starts and warms up the servers, and then runs the clients of all cells in random
order.

Each run is a new client process. A cell is a setting and a number of calls (``kinds/cold.py``).
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count

from clients.load.record.cold_run import ColdRun
from clients.load.run import cold as cold_load
from experiments.design.arms import Arm
from experiments.kinds.block import Run
from experiments.kinds.cold import ColdPlan
from experiments.measure import peer_clients
from experiments.measure.bench import Bench
from experiments.measure.others import watched
from experiments.measure.peer_clients import PeerRun
from experiments.measure.slices import load_plan, started
from experiments.peers import PEER_CLIENT
from stock_service.trading.model import Status

RUN_S = 600.0
"""Longest time for all calls of a run, in seconds. On gRPC, 10,000 calls take some 6 s."""


def runs(plan: ColdPlan, number: int, bench: Bench) -> Iterator[Run[ColdRun]]:
    """Observes the runs of a block. Before the first run, each server is warmed up with calls of its first cell.

    Each step of the iterator waits for one run.

    Raises ProgramFailed if a server or a peer's client does not start or fails; Unavailable if our client cannot
    connect or dies.
    """
    with ExitStack() as running:
        addresses = started(plan.servers, bench, running).addresses

        def made(cell: int, calls: int, place: int) -> ColdRun:
            arm, seed = Arm(plan.cells[cell].setting), (plan.seed * 1000 + number) * 10_000 + place
            if arm.setting["client"] == PEER_CLIENT:
                return _of_peer(peer_clients.run(arm.setting, addresses[arm.server], calls, bench.load_cores))
            load = replace(load_plan(arm, addresses[arm.server], bench, seed), duration_s=RUN_S)
            return cold_load.run(load, calls)

        for cell in {Arm(each.setting).server: cell for cell, each in reversed(list(enumerate(plan.cells)))}.values():
            made(cell, plan.warm_up_calls, 0)
        place = count(1)
        yield from watched(plan.order(number), lambda cell: made(cell, plan.cells[cell].calls, next(place)))


def _of_peer(run: PeerRun) -> ColdRun:
    """Converts the report of a peer's client into a cold run. All calls count as answered, since a peer's client fails
    at a wrong reply."""
    connect_ns, first_ns = int(run.connect_ns[0]), int(run.first_ns[0])
    outcomes = {Status.OK.name: 1 + len(run.calls_ns)}
    return ColdRun(connect_ns, first_ns, int(run.calls_ns.sum()), len(run.calls_ns), outcomes, {})
