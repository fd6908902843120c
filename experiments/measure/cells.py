"""Cells by blocks: a fresh server, its loads one after the other, and its processor time and memory every 100 ms.

The load client in C runs beside this process, which reads the server off meanwhile. So the client's core, or where
nothing is pinned any core, also has the reading: some 20 µs in 100 ms. Every reply is checked: the first one here, the
others by the client, to which all of a cell must be the same.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psutil

from clients.load.plan.outcomes import FAULT_FIRST, TYPE_STEP
from clients.load.plan.workload import Request, Workload
from experiments.design.arms import Arm
from experiments.design.cells import SAMPLED_S, Cell, Cells
from experiments.measure.apart import Kept
from experiments.measure.bench import Bench, server_command
from experiments.measure.block import load_plan
from experiments.measure.http_load import HttpAsk, HttpLoad, HttpSeen
from experiments.measure.programs import Program, kept_to
from experiments.results import cells as results
from experiments.results.cells import CellBlock, CellSeen
from experiments.results.machine import calibrated_us, cores, stolen_ticks
from experiments.results.observed import RoundSeen
from stock_service.rpc.errors import Unavailable
from stock_service.rpc.transports import Address
from stock_service.trading.catalog_file import load as load_catalog

KEPT = Kept(results.CELLS_FILE, results.save, results.load)


def run(
    plan: Cells, folder: Path, resume: bool, bench: Bench, load: HttpLoad, watch: Callable[[int], None]
) -> tuple[CellBlock, ...]:
    """Measures every block that the folder lacks; ``watch`` is told each one's number as it begins. See ``Kept.run``,
    and ``measure`` for what it raises."""

    def measured(number: int) -> CellBlock:
        watch(number)
        return measure(plan, number, bench, load)

    return KEPT.run(plan, plan.blocks, folder, resume, measured)


def measure(plan: Cells, number: int, bench: Bench, load: HttpLoad) -> CellBlock:
    """Measures a block. Blocks for as long as it takes.

    Raises ProgramFailed where a server does not start or fails, or the client does; Unavailable for a wrong reply.
    """
    started_at, began_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    with kept_to(bench.server_cores):
        calibration_us = calibrated_us()
    seen: dict[int, CellSeen] = {}
    for places in plan.order(number):
        first = plan.cells[places[0]]
        on = bench if first.pinned else replace(bench, server_cores=None, load_cores=None)
        with Program(server_command(Arm(first.setting).server, bench.catalog), on.server_cores) as program:
            address = program.ready()
            for place in places:
                seen[place] = _seen(plan.cells[place], program, address, on, load)
    return CellBlock(
        number=number,
        started_at=started_at,
        duration_s=time.monotonic() - began_s,
        calibration_us=calibration_us,
        cores=len(cores()),
        memory_mib=psutil.virtual_memory().total / 2**20,
        cells=tuple(seen[place] for place in range(len(plan.cells))),
    )


def _seen(cell: Cell, program: Program, address: Address, on: Bench, load: HttpLoad) -> CellSeen:
    """A server under a cell's load."""
    stocks = tuple(stock.name for stock in load_catalog(on.catalog))
    request = Workload(load_plan(Arm(cell.setting.but(client="lean")), address, on, stocks, seed=0)).population[0]
    ask = HttpAsk(
        address,
        request.path,
        request.payload.decode(),
        cell.setting.whole("connections"),
        cell.setting["connection"] == "kept-alive",
        requests=cell.requests,
        warm_up=cell.warm_up,
        cpus=on.load_cores,
    )
    own, cpu_s, began_s = cores(), program.cpu_s(), time.monotonic()
    stolen = stolen_ticks(own)
    report, shares, memory = _sampled(program, load, ask)
    _check(request, report)
    return CellSeen(
        requests=report.requests,
        errors=report.errors,
        total_s=report.total_s,
        response_us=report.response_us,
        connect_us=report.connect_us,
        received_bytes=report.received_bytes,
        sent_bytes=report.sent_bytes,
        load_requests=report.all_requests,
        load_s=report.elapsed_s,
        server_cpu_s=program.cpu_s() - cpu_s,
        client_cpu_s=report.cpu_s,
        cpu_samples=tuple(shares),
        memory_samples_mib=tuple(memory),
        machine=RoundSeen(time.monotonic() - began_s, stolen_ticks(own) - stolen),
    )


def _sampled(program: Program, load: HttpLoad, ask: HttpAsk) -> tuple[HttpSeen, list[float], list[float]]:
    """Runs the load; the server's share of a core over each 100 ms meanwhile, and its memory in MiB.

    Samples in which the server did nothing, as while the client starts, are none.
    """
    shares: list[float] = []
    memory: list[float] = []
    with ThreadPoolExecutor(1, "http-load") as pool:
        running = pool.submit(load.run, ask)
        at_s, cpu_s = time.monotonic(), program.cpu_s()
        while not running.done():
            wait((running,), timeout=SAMPLED_S)
            now_s, spent_s = time.monotonic(), program.cpu_s()
            if spent_s > cpu_s:
                shares.append((spent_s - cpu_s) / (now_s - at_s))
                memory.append(program.resident_mib())
            at_s, cpu_s = now_s, spent_s
        return running.result(), shares, memory


def _check(request: Request, report: HttpSeen) -> None:
    """Raises Unavailable where the replies were not what the request wants."""
    if not report.requests or request.check(report.first_reply) % TYPE_STEP >= FAULT_FIRST:
        said = report.first_reply[:80].decode(errors="backslashreplace")
        raise Unavailable(f"{request.path}: {report.requests} replies as they should be; the first was {said!r}")
