"""Observes standalone servers. An observation has the start time, and memory and idle processor time at several numbers
of held connections.

A server is started in the same way as in a sweep, on the core of the servers. This process opens the connections with
the lean client, or with the transport's library if the lean client does not support the transport. Each connection
makes one call and gets a reply, so that the server has the complete state of the connection. After these calls, no
requests are sent. The server's CPU clock has the processor time in nanoseconds. So some seconds are enough to detect a
load of a thousandth of a core.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from clients.load.plan.outcomes import FAULT_FIRST, TYPE_STEP
from clients.load.plan.workload import Workload
from clients.load.run.processes import allow_descriptors
from clients.load.send.lean import connecting
from experiments.design.arms import Arm
from experiments.kinds.block import Run
from experiments.kinds.standalone import HeldSeen, LoneServer, StandalonePlan, StartSeen
from experiments.measure.bench import Bench, server_command
from experiments.measure.others import watched
from experiments.measure.programs import Program, kept_to
from experiments.measure.slices import load_plan
from stock_service.rpc.errors import Unavailable, UsageError
from stock_service.rpc.transports import Address, Connection, ServeOptions
from stock_service.rpc.transports import load as load_transport

SETTLE_S = 0.3
"""Pause in seconds before an observation. After this time, idle threads sleep."""

CALL_S = 10.0
"""Longest time in seconds for connecting and the first call of a connection. A millisecond is usual."""

_SPARE = 64
"""Number of connections that the server allows in addition to the held connections. This process needs one file
descriptor for each held connection, and ``_SPARE`` further descriptors."""


def runs(plan: StandalonePlan, number: int, bench: Bench) -> Iterator[Run[StartSeen]]:
    """Observes every server, in random order. Each step of the iterator waits for one server.

    Raises ProgramFailed if a server does not start or fails. Raises a Fault if a connection or its call fails. Raises
    UsageError if the system does not let this process open enough files.
    """
    return watched(plan.order(number), lambda place: _seen(plan.servers[place], plan.idle_s, bench))


def _seen(server: LoneServer, idle_s: float, bench: Bench) -> StartSeen:
    """Starts a server, observes the server at each number of idle connections, and stops the server."""
    most = server.connections[-1]
    command = [*server_command(Arm(server.setting).server, bench.catalog)]
    if most + _SPARE > ServeOptions().connections_max:
        command += ["--connections-max", str(most + _SPARE)]
    if allow_descriptors(most + _SPARE) < most + _SPARE:
        raise UsageError("connections held", most, "as many as this process may have open files (ulimit -Hn)")
    began_s = time.monotonic()
    with Program(command, bench.server_cores) as program:
        address = program.ready()
        ready_ms = (time.monotonic() - began_s) * 1000
        with kept_to(bench.load_cores), _holding(server, address, bench) as hold:
            watched = tuple(_watched(program, hold, connections, idle_s) for connections in server.connections)
    return StartSeen(ready_ms, watched)


Hold = Callable[[int], None]
"""Function that opens connections until the server holds the given number. Each new connection makes one call. Raises a
Fault if a connection or its call fails."""


@contextmanager
def _holding(server: LoneServer, address: Address, bench: Bench) -> Iterator[Hold]:
    """Context that yields a function to open held connections. The end of the ``with`` block closes the connections."""
    plan = replace(load_plan(Arm(server.setting), address, bench, seed=0), timeout_s=CALL_S)
    lean = load_transport(plan.transport).codec(address) is not None
    plan = replace(plan, client="lean" if lean else "library")
    connect, requests, connections = connecting(plan), Workload(plan).requests(0, 0), list[Connection]()
    with ExitStack() as held:

        def hold(to: int) -> None:
            while len(connections) < to:
                connection = connect(CALL_S)
                connections.append(connection)
                held.callback(connection.close)
                request = next(requests)
                outcome = request.check(connection.call(request.path, request.payload, CALL_S))
                if outcome % TYPE_STEP >= FAULT_FIRST:
                    raise Unavailable(f"a wrong reply to {request.path}")

        yield hold


def _watched(program: Program, hold: Hold, connections: int, idle_s: float) -> HeldSeen:
    """Opens connections until the server holds ``connections``, and then observes the idle server for ``idle_s``
    seconds."""
    hold(connections)
    time.sleep(SETTLE_S)
    began_ns, cpu_s = time.perf_counter_ns(), program.cpu_s()
    time.sleep(idle_s)
    cpu_ns, watched_ns = round((program.cpu_s() - cpu_s) * 1e9), time.perf_counter_ns() - began_ns
    return HeldSeen(connections, program.resident_mib(), program.threads(), cpu_ns, watched_ns)
