"""Cold runs by blocks: fresh servers, warmed; then runs of a fresh client process each, cells in random order."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

from clients.load.record.cold_run import ColdRun
from clients.load.run import cold as cold_load
from experiments.design.arms import Arm
from experiments.kinds.block import Run
from experiments.kinds.cold import ColdPlan
from experiments.measure import peer_clients
from experiments.measure.bench import Bench
from experiments.measure.others import MachineWatch
from experiments.measure.peer_clients import PeerRun
from experiments.measure.slices import load_plan, started
from experiments.peers import PEER_CLIENT
from stock_service.trading.model import Status

RUN_S = 600.0
"""Longest time for a run's calls: a hundred times what 10,000 calls on gRPC take here."""


def runs(plan: ColdPlan, number: int, bench: Bench) -> Iterator[Run[ColdRun]]:
    """Observes a block's runs, each server warmed by the load of its first cell. Blocks for as long as it takes.

    Raises ProgramFailed where a server or a peer's client does not start or fails, Unavailable where a client of ours
    cannot connect or dies.
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
        for place, cell in enumerate(plan.order(number), 1):
            machine = MachineWatch()
            yield Run(cell, made(cell, plan.cells[cell].calls, place), machine.seen())


def _of_peer(run: PeerRun) -> ColdRun:
    """A run of a peer's client, which has ended with a fault unless every call was answered right."""
    connect_ns, first_ns = int(run.connect_ns[0]), int(run.first_ns[0])
    outcomes = {Status.OK.name: 1 + len(run.calls_ns)}
    return ColdRun(connect_ns, first_ns, int(run.calls_ns.sum()), len(run.calls_ns), outcomes, {})
