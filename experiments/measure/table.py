"""Observes the cells of a table: starts a server, runs the load of one cell after another, and samples the server.

A cell is a server under a number of requests (``kinds/table.py``). A sample has the server's processor time and memory.
A client in C sends the load. This process takes a sample every 10 ms in the first second of a cell, and later every 100
ms. A sample takes some 50 µs of the client's core, or of any core if nothing is pinned. The main thread waits for the
load, so that Ctrl-C ends the load at once. Every reply is checked. This process checks a cell's first reply, and the
client checks that all other replies are equal.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from clients.load.plan.outcomes import FAULT_FIRST, TYPE_STEP
from clients.load.plan.workload import Request, Workload
from experiments.design.arms import Arm
from experiments.kinds.block import Run
from experiments.kinds.table import CLIENT, SAMPLED_S, SHORT_S, SHORT_SAMPLED_S, Cell, CellSeen, TablePlan
from experiments.measure import http_load
from experiments.measure.bench import Bench, server_command
from experiments.measure.http_load import HttpAsk, HttpSeen
from experiments.measure.others import watched
from experiments.measure.programs import Program
from experiments.measure.slices import load_plan
from stock_service.rpc.errors import Unavailable
from stock_service.rpc.transports import Address


def runs(plan: TablePlan, number: int, bench: Bench) -> Iterator[Run[CellSeen]]:
    """Observes every cell, in random order. Each step of the iterator waits for one cell.

    Raises ProgramFailed if a server or the client does not start or fails; Unavailable for a wrong reply.
    """
    for places in plan.starts(number):
        first = plan.cells[places[0]]
        on = bench if first.pinned else replace(bench, server_cores=None, load_cores=None)
        with Program(server_command(Arm(first.setting).server, bench.catalog), on.server_cores) as program:
            address = program.ready()
            yield from watched(places, partial(_seen, plan.cells, program, address, on))


def _seen(cells: Sequence[Cell], program: Program, address: Address, on: Bench, place: int) -> CellSeen:
    """Runs the load of the cell at ``place``, and gives the observation of the cell's server."""
    cell = cells[place]
    request = Workload(load_plan(Arm(cell.setting.but(client="lean")), address, on, seed=0)).population[0]
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
    cpu_s = program.cpu_s()
    report, samples = _sampled(program, on.load_programs[CLIENT].program, ask)
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
        sampled_s=samples[-1].at_s - samples[0].at_s if samples else 0.0,
        sampled_cpu_s=samples[-1].cpu_s - samples[0].cpu_s if samples else 0.0,
        cpu_samples=tuple((after.cpu_s - at.cpu_s) / (after.at_s - at.at_s) for at, after in pairwise(samples)),
        memory_samples_mib=tuple(each.memory_mib for each in samples[1:]),
    )


@dataclass(frozen=True, slots=True)
class Sample:
    """A server's processor time so far and resident memory, at the time ``at_s`` of ``time.monotonic()``."""

    at_s: float
    cpu_s: float
    memory_mib: float


def _sampled(program: Program, client: Path, ask: HttpAsk) -> tuple[HttpSeen, Sequence[Sample]]:
    """Runs the load to its end, and meanwhile samples the server's processor time and memory. The first sample is taken
    when the server has used processor time for the load."""
    samples: list[Sample] = []
    with http_load.running(client, ask) as running:
        idle_s = program.cpu_s()
        every_s = SHORT_SAMPLED_S
        while not running.has_ended(every_s):
            sample = Sample(time.monotonic(), program.cpu_s(), program.resident_mib())
            if sample.cpu_s > idle_s:
                samples.append(sample)
                every_s = SAMPLED_S if sample.at_s - samples[0].at_s >= SHORT_S else SHORT_SAMPLED_S
        return http_load.seen(running, ask), thinned(samples)


def thinned(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Samples that are kept: all samples of a short cell, and samples at least ``SAMPLED_S`` apart of a longer cell."""
    if not samples or samples[-1].at_s - samples[0].at_s < SHORT_S:
        return samples
    kept = [samples[0]]
    for sample in samples[1:]:
        if sample.at_s - kept[-1].at_s >= SAMPLED_S:
            kept.append(sample)
    return kept


def _check(request: Request, report: HttpSeen) -> None:
    """Checks the first reply of a cell. Raises Unavailable for a wrong reply, or if no request got a reply."""
    if not report.requests or request.check(report.first_reply) % TYPE_STEP >= FAULT_FIRST:
        said = report.first_reply[:80].decode(errors="backslashreplace")
        raise Unavailable(f"{request.path}: {report.requests} correct replies; the first reply was {said!r}")
