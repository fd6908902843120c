"""The check ``ab``: A/A and A/B on this machine, with real servers; what is judged and how stands in ``ab``.

In a block each arm has a fresh echo server on sockets, and one lean connection in a closed loop loads the two by turns,
in short slices: what a neighbour does to the machine for seconds then meets both. Servers have one core and the load
another; a server that is not being loaded sleeps. The slowed arm's server computes a tenth of the plain response longer
over every request; the plain response is measured first. The record is written where the check is told to.
"""

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from experiments import environment
from experiments.design import ECHO
from experiments.selfcheck import ab
from experiments.selfcheck.finding import Finding
from experiments.selfcheck.load import found, known, lookups, run, server_cores, times
from experiments.server_process import Program
from experiments.services.workloads import REQUEST_TYPES
from stock_service.rpc.transports import Address

SLICES = 6
"""Of each arm in a block. A load takes a third of a second to start: more and shorter ones would gain nothing."""

WARM_UP_S, DURATION_S = 0.02, 0.1

LOAD = f"an echo on sockets, one lean connection, closed loop, {SLICES} x {DURATION_S:g} s by turns"


def check(overnight: bool = False, record_to: Path | None = None) -> list[Finding]:
    """Runs the pairs: some 6 minutes, an hour or more with ``overnight``.

    Raises OSError where the record cannot be written.
    """
    plan = ab.OVERNIGHT if overnight else ab.MINUTES
    return found("A/A and A/B", "equal arms equal, a slowed one slower", lambda: _check(plan, record_to))


def _check(plan: ab.Plan, record_to: Path | None) -> list[Finding]:
    extra_us = ab.extra_us(fmean(measure(0.0, 0.0)))

    def block(arms: tuple[str, str], _: int) -> tuple[float, ...]:
        first, second = (extra_us if arm == ab.SLOWED else 0.0 for arm in arms)
        return measure(first, second)

    outcomes = ab.run(block, plan, lambda line: print(f"  {line}", file=sys.stderr))
    here = environment.look()
    machine = f"{here.cpu_model}, {here.cores} cores"
    record = ab.recorded(outcomes, plan, machine, LOAD, datetime.now(UTC).date().isoformat())
    if record_to is not None:
        ab.save(record, record_to)
    return list(ab.findings(outcomes, record))


def measure(*extra_us: float) -> tuple[float, ...]:
    """One block: for each server that computes so much longer, the geometric mean of its slices' mean responses, in µs.

    Every other time the order is reversed. Blocks for seconds; raises LoadFailed, ProgramFailed.
    """
    seen: list[list[float]] = [[] for _ in extra_us]
    with ExitStack() as servers:
        addresses = [servers.enter_context(_serving(each_us)) for each_us in extra_us]
        for number in range(SLICES):
            for place in list(range(len(addresses)))[:: -1 if number % 2 else 1]:
                seen[place].append(math.log(_mean_us(addresses[place])))
    return tuple(math.exp(fmean(logs)) for logs in seen)


@contextmanager
def _serving(extra_us: float) -> Iterator[Address]:
    command = [sys.executable, "-m", "experiments.services", "serve", "echo", "--transport", "sockets", "--port", "0"]
    with Program([*command, "--extra-us", repr(extra_us)], server_cores()) as server:
        yield server.ready()


def _mean_us(address: Address) -> float:
    plan = lookups("sockets", address)
    phases = replace(plan, mix=dict(ECHO), request_types=REQUEST_TYPES, warm_up_s=WARM_UP_S, duration_s=DURATION_S)
    return known(times(run(phases)).mean_us)
