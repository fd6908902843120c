"""Floor of the load client: the response times that the client measures with a server that does nothing
(``null_server.py``). The floor is valid for this machine at this time.

A response time includes the work of the client, the kernel and the loopback. On this machine, no server can show a
shorter response time than the floor. So the floor is the part of a response time that the server does not cause. The
floor is measured for half a second, in a closed loop on one connection.

If the machine has cores that the client may not use, the null server runs on these cores.
"""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from clients.load.plan.load_plan import ClientKind, LoadPlan
from clients.load.record.result import ALL
from clients.load.run import fleet
from clients.load.run.null_server import answers_of
from stock_service.rpc.errors import Unavailable
from stock_service.rpc.process.command_line import address
from stock_service.rpc.process.lifeline import tied
from stock_service.rpc.transports import Address, load

_TRIES = 3

WARM_UP_S = 0.2
DURATION_S = 0.5

READY_S = 15.0
"""Longest wait for the null server's line ``ready HOST:PORT``, in seconds. Usually this line comes after a tenth of a
second.
"""

STOP_S = 5.0
"""Longest wait for the end of the null server after SIGTERM, in seconds. After this time the null server is killed."""


@dataclass(frozen=True, slots=True)
class Floor:
    """Response times on one connection to a server that does nothing, in µs: the median and the 99th percentile."""

    floor_us_p50: float
    floor_us_p99: float


def floor(transport: str, client: ClientKind, cpus: tuple[int, ...] | None) -> Floor:
    """Measures the floor, with the client on the cores ``cpus`` (None for any core). Blocks for about a second. If the
    null server does not answer in time, measures again, up to three times in all.

    Must not run at the same time as ``fleet.run``. Raises Unavailable if the transport has no null server, or if the
    null server does not start or answer. Raises KeyboardInterrupt after Ctrl-C.
    """
    if answers_of(transport) is None:
        raise Unavailable(f"nothing but its own library speaks {load(transport).LABEL}")
    for _ in range(_TRIES - 1):
        try:
            return _once(transport, client, cpus)
        except Unavailable:
            continue  # the machine may have been busy for a second: try again
    return _once(transport, client, cpus)


def _once(transport: str, client: ClientKind, cpus: tuple[int, ...] | None) -> Floor:
    """Starts a null server, and measures the floor once. Raises Unavailable, KeyboardInterrupt."""
    with null_server(transport, cpus) as where:
        plan = LoadPlan(
            transport=transport,
            address=where,
            clients=1,
            mix={"lookup": 1.0},
            stocks=("null",),
            warm_up_s=WARM_UP_S,
            duration_s=DURATION_S,
            client=client,
            cpus=cpus,
        )
        result = fleet.run(plan)
    if result.interrupted:
        raise KeyboardInterrupt
    every = result.requests[ALL]
    if every.p50_us is None or every.p99_us is None or result.errors:
        raise Unavailable(f"the null server gave {every.count} replies and these errors: {dict(result.errors)}")
    return Floor(every.p50_us, every.p99_us)


@contextmanager
def null_server(transport: str, not_on: Collection[int] | None = None) -> Iterator[Address]:
    """Starts a null server in a new process, and yields the server's address. The process runs on cores outside
    ``not_on``, if there are such cores. The null server ends at the end of the ``with`` block, or when this process
    ends.

    Raises Unavailable if the null server is not ready within ``READY_S``.
    """
    command = [sys.executable, "-m", "clients.load.run.null_server", "--transport", transport]
    process = subprocess.Popen(
        tied(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        others = _other_cores(not_on)
        if others:
            os.sched_setaffinity(process.pid, others)  # the null server has one thread
        descriptor = process.stdout.fileno()
        line = os.read(descriptor, 100).decode() if select.select([descriptor], [], [], READY_S)[0] else ""
        if not line.startswith("ready "):
            raise Unavailable(f"{' '.join(command[1:])} said {line!r} within {READY_S:g} s, not ready HOST:PORT")
        yield address(line.split()[1])
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _other_cores(not_on: Collection[int] | None) -> set[int]:
    """Cores of this process that are not in ``not_on``. Empty if ``not_on`` is None, or if the system cannot choose
    cores."""
    if not_on is None or not hasattr(os, "sched_setaffinity"):
        return set()
    return os.sched_getaffinity(0) - set(not_on)
