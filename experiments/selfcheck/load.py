"""Functions with which the checks start the load client and the servers.

On a machine with two cores or more, the server has the first core that this process may use, and the load has the
second core. Load programs of other projects also have the second core. If a load has an error, the functions raise an
exception, and the check's finding is a failed finding.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from clients.load.plan.load_plan import LoadPlan
from clients.load.record.result import ALL, LoadResult, RequestResult
from clients.load.run import fleet, priority
from experiments.design.sweep import Sweep
from experiments.measure.bench import CATALOG, bench
from experiments.measure.programs import Program, ProgramFailed
from experiments.measure.runner import measure_block
from experiments.results.observed import Block
from experiments.selfcheck.finding import Finding
from experiments.selfcheck.queue_server import Options
from stock_service.rpc.errors import Fault, StockServiceError
from stock_service.rpc.transports import Address

STOCK = "GameStart"
"""Name of the stock in every Lookup."""

Cores = tuple[int, ...] | None
"""Cores that a process may use; None: any core."""


class LoadFailed(StockServiceError):
    """A load had errors, or no result. The message gives the reason in one line."""


def server_cores() -> Cores:
    """The server's core; None on a machine with one core."""
    return bench(CATALOG).server_cores


def load_cores() -> Cores:
    """The load's core; None on a machine with one core."""
    return bench(CATALOG).load_cores


def no_real_time() -> str:
    """Reason why load and server cannot both have real-time priority, with a remedy. Empty where both can have this
    priority."""
    if server_cores() is None:
        return "no second core here, for a load at real-time priority beside a server: use a machine with two"
    return "" if priority.allowed() else "no right to real-time priority here: run it on Linux as root"


def lookups(transport: str, address: Address) -> LoadPlan:
    """Plan of a load: Lookups of one stock in a closed loop, over one connection, from one process on the load's
    core."""
    return LoadPlan(
        transport=transport,
        address=address,
        clients=1,
        mix={"lookup": 1.0},
        stocks=(STOCK,),
        warm_up_s=0.5,
        duration_s=1.0,
        cpus=load_cores(),
    )


def run(plan: LoadPlan) -> LoadResult:
    """Runs a load to its end. Blocks. Raises LoadFailed if a request failed or no reply came, and KeyboardInterrupt
    after Ctrl-C."""
    result = fleet.run(plan)
    if result.interrupted:
        raise KeyboardInterrupt
    if result.errors or not result.requests[ALL].count:
        raise LoadFailed(f"{result.requests[ALL].count} replies and these errors: {dict(result.errors)}")
    return result


def times(result: LoadResult) -> RequestResult:
    """Times of all requests of a run with replies."""
    return result.requests[ALL]


def known(value: float | None) -> float:
    """Returns the value, typed as never None. Only for a value that a run with replies always has."""
    assert value is not None
    return value


Measure = Callable[[Sweep, int], Block]
"""Function that measures a block of a sweep, given the sweep and the block's number. A call blocks until the end of the
block."""


def measured(sweep: Sweep, number: int) -> Block:
    """Measures the block with this number, as in a study. Blocks. Raises ProgramFailed, or a Fault of connecting."""
    return measure_block(sweep, number, 1, bench(CATALOG))


Started = AbstractContextManager[tuple[Program, Address]]
"""Context of a running server: its process and its address."""


@contextmanager
def _started(*module: str) -> Iterator[tuple[Program, Address]]:
    """Context of a server in Python on the server's core. ``module``: name of the server's module, and options. Raises
    ProgramFailed."""
    with Program([sys.executable, "-m", *module], server_cores()) as server:
        yield server, server.ready()


def queue_server(options: Options) -> Started:
    """Context of a server with known service times. Raises ProgramFailed. On a machine with one core the option
    ``spin`` is ignored, and the server sleeps between departures."""
    words = ["--servers", str(options.servers), "--queues", str(options.queues)]
    words += ["--mean-s", repr(options.mean_s), "--seed", str(options.seed)]
    words += ["--spin"] if options.spin and server_cores() is not None else []
    words += ["--real-time"] if options.real_time else []
    words += [] if options.log is None else ["--log", str(options.log)]
    return _started("experiments.selfcheck.queue_server", *words)


def stock_server(transport: str) -> Started:
    """Context of a server of the stock service, in memory. Raises ProgramFailed."""
    return _started("stock_service", "serve", "--transport", transport, "--port", "0", "--store", "memory")


def null_server(transport: str) -> Started:
    """Context of a server that answers every request at once. Raises ProgramFailed."""
    return _started("clients.load.run.null_server", "--transport", transport)


def found(name: str, must: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    """Returns the findings of ``look``, which runs a check. If a load or a server of the check fails, returns one
    failed finding with the reason. ``name``, ``must``: the name and the required value of this finding."""
    try:
        return look()
    except (LoadFailed, ProgramFailed, Fault) as failed:
        return [Finding(name, str(failed), must, False)]
