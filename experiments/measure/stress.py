"""Observes stress tests. In a test, several clients in C send at the same time, one client for each kind of request. At
the end of the test, every key is read.

Each test has a new server. Our own client reads the keys, one after another, on one connection. The duration of these
reads is not measured.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.kinds.block import Run
from experiments.kinds.stress import FinalSeen, FinalState, KindSeen, StressKind, StressPlan, StressSeen
from experiments.kinds.table import CLIENT
from experiments.measure import http_load
from experiments.measure.bench import Bench, server_command
from experiments.measure.http_load import HttpAsk, HttpSeen
from experiments.measure.others import watched
from experiments.measure.programs import Program, ProgramFailed
from stock_service.rpc.errors import NotFound
from stock_service.rpc.transports import Address, Connection, load

READ_S = 5.0
"""Longest time in seconds for one read at the end. A millisecond is usual."""


def runs(plan: StressPlan, number: int, bench: Bench) -> Iterator[Run[StressSeen]]:
    """Observes every server, in random order. Each step of the iterator waits for one server.

    Raises ProgramFailed if a server or a client does not start or fails. Also raises ProgramFailed if a request of
    ``before`` gets no right reply. Raises a Fault if the server cannot be read at the end.
    """
    return watched(plan.order(number), lambda place: _seen(plan, plan.servers[place], bench))


def _seen(plan: StressPlan, of: Setting, bench: Bench) -> StressSeen:
    client, command = bench.load_programs[CLIENT].program, server_command(Arm(of).server, bench.catalog)
    with Program(command, bench.server_cores) as program:
        address = program.ready()
        for each in plan.before:
            told = http_load.run(client, _ask(each, plan, address, bench))
            if told.requests != each.requests:
                raise ProgramFailed(command, f"{each.name}: {told.requests} of {each.requests} were answered", "")
        with ExitStack() as stack:  # one thread, so that Ctrl-C ends all clients at once
            asked = [_ask(each, plan, address, bench) for each in plan.kinds]
            running = [stack.enter_context(http_load.running(client, ask)) for ask in asked]
            kinds = tuple(_kind(http_load.seen(each, ask)) for each, ask in zip(running, asked, strict=True))
        connection = load(of.text("transport")).connect(address, READ_S)
        try:
            final = tuple(final_seen(each, connection) for each in plan.final)
        finally:
            connection.close()
    return StressSeen(kinds, final)


def _ask(kind: StressKind, plan: StressPlan, address: Address, bench: Bench) -> HttpAsk:
    return HttpAsk(
        address,
        kind.request,
        kind.body,
        plan.connections,
        requests=kind.requests,
        first_id=kind.first_id,
        per_id=kind.per_key,
        expect=kind.expect,
        cpus=bench.load_cores,
    )


def _kind(seen: HttpSeen) -> KindSeen:
    moments = seen.began_ns, seen.ended_ns
    return KindSeen(seen.requests, seen.errors, *moments, seen.received_bytes, seen.sent_bytes)


def final_seen(final: FinalState, connection: Connection) -> FinalSeen:
    """Reads every key of ``final``. Counts the keys with an allowed value (``right``), and all other keys (``wrong``).
    A key without a value counts as wrong."""
    right = 0
    for key in range(final.first_id, final.first_id + final.keys):
        try:
            found = json.loads(connection.call(final.request.replace("{id}", str(key)), b"", READ_S))
        except (NotFound, ValueError):  # a missing key, or no JSON
            continue
        states = (final.state.replace("{id}", str(key)).replace("{turn}", str(turn)) for turn in range(final.turns))
        right += found in map(json.loads, states)
    return FinalSeen(right, final.keys - right)
