"""Cells by blocks: a fresh server, its loads one after the other, and its processor time and memory meanwhile.

The load client in C runs beside this process, which reads the server off every 10 ms. In a cell of a second or more it
does so every 100 ms from there on. So the client's core, or where nothing is pinned any core, also has the reading:
some 50 µs each. The main thread waits for the load, so that Ctrl-C ends it at once. Every reply is checked: the first
one here, the others by the client, to which all of a cell must be the same.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from clients.load.plan.outcomes import FAULT_FIRST, TYPE_STEP
from clients.load.plan.workload import Request, Workload
from experiments.design.arms import Arm
from experiments.kinds.block import Run
from experiments.kinds.table import CLIENT, SAMPLED_S, SHORT_S, SHORT_SAMPLED_S, Cell, CellSeen, TablePlan
from experiments.measure.bench import Bench, server_command
from experiments.measure.http_load import HttpAsk, HttpLoad, HttpSeen
from experiments.measure.others import MachineWatch
from experiments.measure.programs import Program
from experiments.measure.slices import load_plan
from stock_service.rpc.errors import Unavailable
from stock_service.rpc.transports import Address


def runs(plan: TablePlan, number: int, bench: Bench) -> Iterator[Run[CellSeen]]:
    """Observes every cell once. Blocks for as long as it takes.

    Raises ProgramFailed where a server does not start or fails, or the client does; Unavailable for a wrong reply.
    """
    load = HttpLoad(bench.load_programs[CLIENT].program)
    for places in plan.starts(number):
        first = plan.cells[places[0]]
        on = bench if first.pinned else replace(bench, server_cores=None, load_cores=None)
        with Program(server_command(Arm(first.setting).server, bench.catalog), on.server_cores) as program:
            address = program.ready()
            for place in places:
                machine = MachineWatch()
                yield Run(place, _seen(plan.cells[place], program, address, on, load), machine.seen())


def _seen(cell: Cell, program: Program, address: Address, on: Bench, load: HttpLoad) -> CellSeen:
    """A server under a cell's load."""
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
    report, samples = _sampled(program, load, ask)
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
    """A server at a moment."""

    at_s: float
    cpu_s: float
    memory_mib: float


def _sampled(program: Program, load: HttpLoad, ask: HttpAsk) -> tuple[HttpSeen, Sequence[Sample]]:
    """Runs the load, and reads the server off until it ends, from the first moment on at which it was at work."""
    samples: list[Sample] = []
    with load.running(ask) as running:
        idle_s = program.cpu_s()
        every_s = SHORT_SAMPLED_S
        while not running.has_ended(every_s):
            sample = Sample(time.monotonic(), program.cpu_s(), program.resident_mib())
            if sample.cpu_s > idle_s:
                samples.append(sample)
                every_s = SAMPLED_S if sample.at_s - samples[0].at_s >= SHORT_S else SHORT_SAMPLED_S
        return load.seen(running, ask), thinned(samples)


def thinned(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Samples that are ``SAMPLED_S`` apart or more, where they last for ``SHORT_S`` in all or more; else all."""
    if not samples or samples[-1].at_s - samples[0].at_s < SHORT_S:
        return samples
    kept = [samples[0]]
    for sample in samples[1:]:
        if sample.at_s - kept[-1].at_s >= SAMPLED_S:
            kept.append(sample)
    return kept


def _check(request: Request, report: HttpSeen) -> None:
    """Raises Unavailable where the replies were not what the request wants."""
    if not report.requests or request.check(report.first_reply) % TYPE_STEP >= FAULT_FIRST:
        said = report.first_reply[:80].decode(errors="backslashreplace")
        raise Unavailable(f"{request.path}: {report.requests} replies as they should be; the first was {said!r}")
