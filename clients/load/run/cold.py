"""A cold run: a new client process, one connection, and a given number of calls. No later run uses this process.

The process is forked by the fork server of all load runs, and is reaped before ``run`` returns. Only the parent handles
Ctrl-C: the process never gets the signal, and the parent kills the process. Left out: conclusions from the times, and
the start of the server. The caller provides a warm server.
"""

from clients.load.plan.load_plan import LoadPlan
from clients.load.record.cold_run import ColdRun
from clients.load.run.cold_client import run_cold_client
from clients.load.run.processes import REAP_S, Processes, heard, make_room, warm
from stock_service.rpc.errors import Unavailable, UsageError

CALLS_MAX = 1_000_000
"""Largest number of calls of a run. On gRPC, these calls take some minutes."""

START_S = 60.0
"""Longest time for a process to begin and to connect, in seconds. A few milliseconds are usual."""


def run(plan: LoadPlan, calls: int) -> ColdRun:
    """Makes the run with the client, mix and cores of the plan. Blocks until the process has ended.

    The plan's ``duration_s`` is the longest time for all calls together. Raises UsageError for more than one
    connection, or a number of calls out of range. Raises Unavailable if the process cannot connect, dies, or is not
    done in time.
    """
    if plan.connections != 1 or plan.rate_hz is not None or plan.connection != "kept-alive":
        raise UsageError("a cold run", plan, "one client with one kept-alive connection, in a closed loop")
    if not 1 <= calls <= CALLS_MAX:
        raise UsageError("a cold run's calls", calls, f"1 to {CALLS_MAX}")
    make_room(1)
    warm()
    processes = Processes()
    said: object = None
    try:
        said = heard(processes.start(run_cold_client, plan, calls), START_S + plan.duration_s)
    finally:
        processes.reap(REAP_S if isinstance(said, ColdRun) else 0.0)
    if not isinstance(said, ColdRun):
        raise Unavailable(str(said))
    return said
