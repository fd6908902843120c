"""Clients: what the load client costs beside clients in other languages, in one run, against the goals set for it.

A client's own work is in every time that it reads and limits every rate that it makes. So all clients load the same
server in a closed loop, taking short turns, in reversed order every other time, and a goal is a ratio that is met
by both readings of the turns, the worse of which counts: by the ratio of their medians, and by the median of the ratios
within a turn, as the machine's own speed changes from one turn to the next:

- the median with one connection, at the stock service: what a client adds to each time;
- the 99th percentile with 64 connections, at the stock service: what it adds when much comes at once;
- throughput with 64 connections, at the null server (``clients/load/run/null_server.py``), which is faster than any of
  the gRPC clients but h2load: a client's own limit, where a real server would be the limit of them all.

Sockets have no goal of throughput: there the null server, being Python, is what the C client waits for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Literal

from clients.load.plan.load_plan import ClientKind
from experiments.selfcheck.finding import Finding
from experiments.selfcheck.load import found, known, lookups, null_server, run, stock_server, times
from experiments.selfcheck.peers import Absent, Ask, Peer, Reading, peers

Metric = Literal["p50_us", "p99_us", "throughput_hz"]

Loader = Callable[[Ask], Reading]
"""Any client."""

LEAN, LIBRARY = "ours", "grpcio"

SERVERS = {"stock": stock_server, "null": null_server}

CONNECTIONS = 64


@dataclass(frozen=True, slots=True)
class Cell:
    """One server and number of connections; all clients of the transport are read there."""

    transport: str
    server: str
    connections: int


@dataclass(frozen=True, slots=True)
class Goal:
    """Our client's reading ÷ another's in one cell, and its bound: at most, or at least for a throughput."""

    cell: Cell
    metric: Metric
    than: str
    bound: float

    @property
    def at_least(self) -> bool:
        """Whether more is better."""
        return self.metric == "throughput_hz"

    @property
    def name(self) -> str:
        """For people."""
        many = f"{self.cell.connections} connection{'s' if self.cell.connections > 1 else ''}"
        return f"clients, {self.cell.transport}, {self.metric.rsplit('_', 1)[0]} with {many} ÷ {self.than}"

    @property
    def must(self) -> str:
        """For people."""
        return f"at {'least' if self.at_least else 'most'} {self.bound:g}"


def _goals() -> tuple[Goal, ...]:
    one, many, limit = (Cell("grpc", server, count) for server, count in (("stock", 1), ("stock", 64), ("null", 64)))
    sockets_one, sockets_many = (Cell("sockets", "stock", count) for count in (1, 64))
    return (
        Goal(one, "p50_us", "h2load", 1.05),
        Goal(one, "p50_us", "ghz", 0.75),
        Goal(limit, "throughput_hz", LIBRARY, 4.0),
        Goal(limit, "throughput_hz", "ghz", 1.5),
        Goal(many, "p99_us", "h2load", 1.2),
        Goal(sockets_one, "p50_us", "c", 1.05),
        Goal(sockets_many, "p99_us", "c", 1.2),
    )


GOALS = _goals()

OTHERS: Mapping[str, tuple[str, ...]] = {"grpc": (LIBRARY, "ghz", "h2load"), "sockets": ("c", "go")}
"""Who is read beside our own client, on each transport."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is asked of one version of the check."""

    turns: int
    turns_of_one: int
    """With one connection, whose goals ask for a twentieth: the more turns, the surer."""
    duration_s: float
    warm_up_s: float
    judged: bool = True
    """Whether goals are goals; otherwise it is enough that every client gave a reading."""

    def turns_at(self, cell: Cell) -> int:
        """How often each client is read there."""
        return self.turns_of_one if cell.connections == 1 else self.turns


MINUTES = Scale(turns=9, turns_of_one=25, duration_s=0.6, warm_up_s=0.3)
OVERNIGHT = Scale(turns=101, turns_of_one=101, duration_s=1.0, warm_up_s=0.3)
SECONDS = Scale(turns=1, turns_of_one=1, duration_s=0.4, warm_up_s=0.2, judged=False)


def check(overnight: bool = False, seconds: bool = False) -> list[Finding]:
    """Reads every client in every cell. Blocks: minutes' version five minutes; raises KeyboardInterrupt."""
    scale = OVERNIGHT if overnight else SECONDS if seconds else MINUTES
    findings = []
    with peers() as all_peers:
        for cell in dict.fromkeys(goal.cell for goal in GOALS):
            goals = [goal for goal in GOALS if goal.cell == cell]
            name = f"clients, {cell.transport}, {cell.connections} at the {cell.server} server"

            def look(cell: Cell = cell, goals: list[Goal] = goals) -> list[Finding]:
                read = _read(cell, all_peers, scale)
                return [judge(goal, read, all_peers, scale) for goal in goals]

            findings += found(name, "; ".join(goal.must for goal in goals), look)
    return findings


def _read(cell: Cell, all_peers: Mapping[str, Peer | Absent], scale: Scale) -> Mapping[str, list[Reading]]:
    """Every client's readings in one cell, by its name."""
    loaders: dict[str, Loader] = {LEAN: partial(_own, cell.transport, "lean")}
    for name in OTHERS[cell.transport]:
        peer = all_peers.get(name)
        if name == LIBRARY:
            loaders[name] = partial(_own, cell.transport, "library")
        elif peer is not None and not isinstance(peer, Absent):
            loaders[name] = peer.load
    read: dict[str, list[Reading]] = {name: [] for name in loaders}
    with SERVERS[cell.server](cell.transport) as (_, address):
        ask = Ask(address, cell.connections, scale.duration_s, scale.warm_up_s)
        for turn in range(scale.turns_at(cell)):
            for name in list(loaders)[:: -1 if turn % 2 else 1]:
                read[name].append(loaders[name](ask))
    return read


def _own(transport: str, client: ClientKind, ask: Ask) -> Reading:
    """One of the project's own clients: the lean one, or the one on the transport's library."""
    plan = replace(
        lookups(transport, ask.address),
        client=client,
        connections_per_client=ask.connections,
        warm_up_s=ask.warm_up_s,
        duration_s=ask.duration_s,
    )
    said = times(run(plan))
    return Reading(said.count, said.throughput_hz, known(said.p50_us), known(said.p99_us))


def judge(
    goal: Goal, read: Mapping[str, list[Reading]], all_peers: Mapping[str, Peer | Absent], scale: Scale
) -> Finding:
    """Whether both ratios meet a goal; skipped where there is nobody to compare with."""
    if goal.than not in read:
        return Finding(goal.name, str(all_peers[goal.than]), goal.must, None)
    values = {name: median(getattr(each, goal.metric) for each in readings) for name, readings in read.items()}
    pairs = zip(read[LEAN], read[goal.than], strict=True)
    of_turns = median(getattr(ours, goal.metric) / getattr(theirs, goal.metric) for ours, theirs in pairs)
    of_medians = values[LEAN] / values[goal.than]
    ratio = min(of_turns, of_medians) if goal.at_least else max(of_turns, of_medians)
    met = ratio >= goal.bound if goal.at_least else ratio <= goal.bound
    unit = "1/s" if goal.at_least else "µs"
    beside = ", ".join(f"{name} {value:,.0f}" for name, value in values.items())
    within = f"within turns {of_turns:.2f}, of the medians {of_medians:.2f}"
    shown = f"{ratio:.2f} ({within}); {beside} {unit}, medians of {len(read[LEAN])} turns"
    return Finding(goal.name, shown, goal.must if scale.judged else "a reading", met or not scale.judged)
