"""A cold run: a client process made for it alone, one connection, so many calls, and nothing kept.

The process comes from the fork server that every load run here uses, and is reaped before this returns. Ctrl-C is the
parent's: the process never gets it, and is killed. Left out: what is concluded, and a warm server, which is the
caller's.
"""

import multiprocessing
from multiprocessing.context import ForkServerProcess

from clients.load.plan.load_plan import LoadPlan
from clients.load.record.cold_run import ColdRun
from clients.load.run import fleet
from clients.load.run.cold_client import run_cold_client
from clients.load.run.forked import run_forked
from stock_service.rpc.errors import Unavailable, UsageError

CALLS_MAX = 1_000_000
"""Calls of a run, at most: some minutes on gRPC."""

START_S = 60.0
"""Longest time for a process to begin and to connect; a few milliseconds are usual."""


def run(plan: LoadPlan, calls: int) -> ColdRun:
    """Makes the run with the plan's client, mix and cores. Blocks until the process is gone.

    The plan's ``duration_s`` bounds the calls. Raises UsageError for more than one connection, or a number of calls out
    of range. Raises Unavailable where the process cannot connect, dies, or is not done in time.
    """
    if plan.connections != 1 or plan.rate_hz is not None or plan.connection != "kept-alive":
        raise UsageError("a cold run", plan, "one client with one kept-alive connection, in a closed loop")
    if not 1 <= calls <= CALLS_MAX:
        raise UsageError("a cold run's calls", calls, f"1 to {CALLS_MAX}")
    fleet.make_room(1)
    fleet.warm()
    context = multiprocessing.get_context("forkserver")
    mine, its = context.Pipe()
    process = context.Process(target=run_forked, args=(run_cold_client, plan, calls, its), name="cold-client")
    said: object = None
    try:
        process.start()
        its.close()
        within_s = START_S + plan.duration_s
        said = mine.recv() if mine.poll(within_s) else f"a cold run was not done within {within_s:g} s"
    except (EOFError, ConnectionResetError):
        said = "the client process of a cold run has died"
    finally:
        mine.close()
        _reap(process, done=isinstance(said, ColdRun))
    if not isinstance(said, ColdRun):
        raise Unavailable(str(said))
    return said


def _reap(process: ForkServerProcess, done: bool) -> None:
    """Waits for a process that has reported, and kills any other."""
    if process.pid is None:  # it was never started
        return
    process.join(fleet.REAP_S if done else 0)
    if process.exitcode is None:
        process.kill()
    process.join()
    process.close()
