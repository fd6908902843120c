"""Clients: our load client and clients of other projects must measure equal response times on one server.

Our lean client and the other clients load one stock server in turn. On gRPC the other clients are h2load and ghz. On
sockets they are a client in C and a client in Go (``measure/load_programs.py``). In a turn each client loads the server
for about a second, in a closed loop, with one connection or with 64. In every second turn the order is reversed. Our
client must agree with the client in C, which on gRPC is h2load. Our median may be up to 5 % + 10 µs larger or smaller,
and our 99th percentile up to 20 %. The machine's speed changes from turn to turn. So the ratio of the two clients'
times is computed within each turn, and the median of these ratios is judged. The times of ghz and of the Go client are
only shown, not judged: with 64 connections these times include much work of the client.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from statistics import median

from experiments.measure.load_programs import Ask, LoadProgram, Reading, load_programs
from experiments.peers import Absent
from experiments.selfcheck.finding import Finding
from experiments.selfcheck.load import STOCK, LoadFailed, found, known, load_cores, lookups, run, stock_server, times
from stock_service.trading.service import LOOKUP
from stock_service.v1 import stock_pb2

Loader = Callable[[Ask], Reading]
"""Function that loads a server with one client, and returns the client's measurement as a ``Reading``. Blocks."""

OURS = "ours"

THEIRS: Mapping[str, tuple[str, ...]] = {"grpc": ("h2load", "ghz"), "sockets": ("c", "go")}
"""Other clients on each transport. Our client must agree with the first client, which is written in C."""

CONNECTIONS = (1, 64)

PAYLOAD = stock_pb2.LookupRequest(name=STOCK).SerializeToString()

P50_SHARE, P50_US, P99_SHARE = 0.05, 10.0, 0.20
"""Largest allowed differences. The median may differ by ``P50_SHARE`` plus ``P50_US``, the 99th percentile by
``P99_SHARE``."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Size of the check. ``MINUTES`` is for minutes, ``OVERNIGHT`` is for a night."""

    turns: int
    duration_s: float
    warm_up_s: float


MINUTES = Scale(turns=13, duration_s=0.6, warm_up_s=0.2)
OVERNIGHT = Scale(turns=201, duration_s=1.0, warm_up_s=0.3)


def check(scale: Scale) -> list[Finding]:
    """Compares the clients for every number of connections. The call takes three minutes with the scale ``MINUTES``.
    Raises KeyboardInterrupt.
    """
    with load_programs() as programs:

        def look(name: str, transport: str, connections: int) -> list[Finding]:
            return judge(name, THEIRS[transport][0], read(transport, connections, programs, scale), programs)

        findings = []
        for transport, connections in product(THEIRS, CONNECTIONS):
            name = f"clients, {transport}, {connections} connection{'s' if connections > 1 else ''}"
            must = f"as {THEIRS[transport][0]} reads"
            findings += found(name, must, partial(look, name, transport, connections))
    return findings


def read(
    transport: str, connections: int, programs: Mapping[str, LoadProgram | Absent], scale: Scale
) -> Mapping[str, list[Reading]]:
    """Measures with every client in turn. Returns the readings by the client's name. Raises LoadFailed."""
    loaders: dict[str, Loader] = {OURS: partial(_own, transport)}
    there = {name: programs[name] for name in THEIRS[transport]}
    loaders |= {name: program.load for name, program in there.items() if not isinstance(program, Absent)}
    readings: dict[str, list[Reading]] = {name: [] for name in loaders}
    with stock_server(transport) as (_, address):
        ask = Ask(address, LOOKUP, PAYLOAD, connections, scale.duration_s, scale.warm_up_s, load_cores())
        for turn in range(scale.turns):
            for name in list(loaders)[:: -1 if turn % 2 else 1]:
                reading = loaders[name](ask)
                if reading.errors or not reading.requests:
                    raise LoadFailed(f"{name}: {reading.errors} of {reading.requests + reading.errors} requests failed")
                readings[name].append(reading)
    return readings


def judge(
    name: str,
    than: str,
    readings: Mapping[str, list[Reading]],
    programs: Mapping[str, LoadProgram | Absent],
) -> list[Finding]:
    """Findings on the agreement of our client with the client ``than``. If ``than`` is absent, the only finding says
    that the check was skipped."""
    if than not in readings:
        return [Finding(name, str(programs[than]), f"as {than} reads", None)]
    return [
        _judge(f"{name}, p50", than, {client: [one.p50_us for one in each] for client, each in readings.items()}),
        _judge(f"{name}, p99", than, {client: [one.p99_us for one in each] for client, each in readings.items()}),
    ]


def _judge(name: str, than: str, values_us: Mapping[str, list[float]]) -> Finding:
    theirs_us = median(values_us[than])
    off = median(ours / theirs for ours, theirs in zip(values_us[OURS], values_us[than], strict=True)) - 1
    if name.endswith("p50"):
        allowed, must = P50_SHARE + P50_US / theirs_us, f"within {P50_SHARE:.0%} + {P50_US:g} µs of {than}"
    else:
        allowed, must = P99_SHARE, f"within {P99_SHARE:.0%} of {than}"
    beside = ", ".join(f"{client} {median(each):,.0f}" for client, each in values_us.items())
    shown = f"{off:+.1%} within turns; {beside} µs, medians of {len(values_us[OURS])} turns"
    return Finding(name, shown, must, abs(off) <= allowed)


def _own(transport: str, ask: Ask) -> Reading:
    """Loads a server with our lean client, and returns the reading. Blocks."""
    plan = replace(
        lookups(transport, ask.address),
        connections_per_client=ask.connections,
        warm_up_s=ask.warm_up_s,
        duration_s=ask.duration_s,
    )
    said = times(run(plan))
    return Reading(said.count, said.throughput_hz, known(said.p50_us), known(said.p99_us))
