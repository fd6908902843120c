"""Cold runs by blocks: fresh servers, warmed; then runs of a fresh client process each, cells in random order."""

import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

from clients.load.record.cold_run import ColdRun
from clients.load.run import cold as cold_load
from experiments.design.arms import ServerKey
from experiments.kinds.cold import Cold, ColdBlock, ColdSeen
from experiments.measure import peer_clients
from experiments.measure.bench import Bench, server_command
from experiments.measure.others import MachineWatch
from experiments.measure.peer_clients import PeerRun
from experiments.measure.programs import Program, kept_to
from experiments.measure.slices import load_plan
from experiments.peers import PEER_CLIENT
from experiments.results.machine import calibrated_us, cores
from stock_service.rpc.transports import Address
from stock_service.trading.catalog_file import load as load_catalog
from stock_service.trading.model import Status

RUN_S = 600.0
"""Longest time for a run's calls: a hundred times what 10,000 calls on gRPC take here."""


def measure(plan: Cold, number: int, bench: Bench) -> ColdBlock:
    """Measures a block. Blocks for as long as it takes.

    Raises ProgramFailed where a server or a peer's client does not start or fails, Unavailable where a client of ours
    cannot connect or dies.
    """
    started_at, began_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    with kept_to(bench.server_cores):
        calibration_us = calibrated_us()
    with ExitStack() as running:
        programs = {
            key: running.enter_context(
                Program(server_command(key, bench.catalog), bench.placed(dict(key[0])).server_cores)
            )
            for key in plan.servers
        }
        runs = _runs(plan, number, bench, {key: program.ready() for key, program in programs.items()})
    return ColdBlock(
        number=number,
        started_at=started_at,
        duration_s=time.monotonic() - began_s,
        pinned=bench.server_cores is not None,
        calibration_us=calibration_us,
        cores=len(cores()),
        runs=runs,
    )


def _runs(plan: Cold, number: int, bench: Bench, addresses: dict[ServerKey, Address]) -> tuple[ColdSeen, ...]:
    """Warms every server by the load of its first cell, then makes the runs in their order."""
    stocks = tuple(stock.name for stock in load_catalog(bench.catalog))

    def made(cell: int, calls: int, place: int) -> ColdSeen:
        arm, seed = plan.cells[cell].arm, (plan.seed * 1000 + number) * 10_000 + place
        machine = MachineWatch()
        if arm.setting["client"] == PEER_CLIENT:
            seen = _of_peer(peer_clients.run(arm.setting, addresses[arm.server], calls, bench.load_cores))
        else:
            load = replace(load_plan(arm, addresses[arm.server], bench, stocks, seed), duration_s=RUN_S)
            seen = cold_load.run(load, calls)
        return ColdSeen(cell, seen, machine.seen())

    first_cells = {each.arm.server: cell for cell, each in reversed(list(enumerate(plan.cells)))}
    for cell in first_cells.values():
        made(cell, plan.warm_up_calls, 0)
    return tuple(made(cell, plan.cells[cell].calls, place) for place, cell in enumerate(plan.order(number), 1))


def _of_peer(run: PeerRun) -> ColdRun:
    """A run of a peer's client, which has ended with a fault unless every call was answered right."""
    connect_ns, first_ns = int(run.connect_ns[0]), int(run.first_ns[0])
    outcomes = {Status.OK.name: 1 + len(run.calls_ns)}
    return ColdRun(connect_ns, first_ns, int(run.calls_ns.sum()), len(run.calls_ns), outcomes, {})
