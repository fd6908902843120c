"""One block in windows by turns: for loads that a slice cannot serve.

Open loops, whose queues must settle; connections made anew for each request; a worker for each connection; over 64
connections; load programs that are none of our client, and peers' own clients. A window's clients and connections are
made before it and end with it, the load client's own way. Every server of the block stays up meanwhile. Where a sweep
says so (``Windows.in_turn``), only those of the window's group are up. The order is drawn as that of slices is, and the
block that comes out is the same.
"""

import tempfile
import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import numpy as np

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.outcomes import FAULT_FIRST, TYPE_STEP
from clients.load.plan.workload import Workload
from clients.load.record.dependence import cluster_effect
from clients.load.record.result import ALL as ALL_REQUESTS
from clients.load.record.result import LoadResult
from clients.load.record.times import Times
from clients.load.run import fleet
from clients.load.run.counters import loopback_bytes, processes_cpu_ns
from experiments.design.arms import ServerKey
from experiments.design.setting import Setting
from experiments.design.slots import order, seed_of, starts
from experiments.design.sweep import Sweep, Windows
from experiments.measure import peer_clients
from experiments.measure.bench import Bench, running_at
from experiments.measure.load_programs import Ask, LoadProgram
from experiments.measure.others import MachineWatch
from experiments.measure.programs import kept_to
from experiments.measure.slices import Servers, Watch, load_plan, look, robbed_rounds, started
from experiments.peers import PEER_CLIENT
from experiments.results.machine import calibrated_us, cores
from experiments.results.observed import (
    ALL,
    FAILED,
    KEPT,
    SILENT,
    Answered,
    ArmSeen,
    Block,
    HostSeen,
    RoundSeen,
    ServerSeen,
    SliceColumns,
    Window,
)
from stock_service.rpc.errors import Fault
from stock_service.rpc.transports import Address
from stock_service.trading.catalog_file import load as load_catalog


@dataclass(frozen=True, slots=True)
class Part:
    """One request type in a window."""

    response: Times
    outcomes: Mapping[str, int]
    errors: Mapping[str, int]


@dataclass(slots=True)
class Columns:
    """The block's columns, filled window by window."""

    round: list[int] = field(default_factory=list)
    appearance: list[int] = field(default_factory=list)
    arm: list[int] = field(default_factory=list)
    fate: list[int] = field(default_factory=list)
    counted_ns: list[int] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    active_ns: list[int] = field(default_factory=list)
    server_cpu_ns: list[int] = field(default_factory=list)
    client_cpu_ns: list[int] = field(default_factory=list)
    wire_bytes: list[int] = field(default_factory=list)
    parts: list[Mapping[str, Part]] = field(default_factory=list)
    """By request type; none in a window that failed."""
    windows: list[Window | None] = field(default_factory=list)
    unrecorded: list[int] = field(default_factory=list)
    """Requests begun and never written down."""

    def columns(self, requests: Sequence[str]) -> SliceColumns:
        """As a block keeps them."""
        counts = {name: [_times(parts, name).count for parts in self.parts] for name in requests}
        sums = {name: [_times(parts, name).sum_ns for parts in self.parts] for name in requests}
        return SliceColumns(
            self.round,
            self.appearance,
            self.arm,
            self.fate,
            self.counted_ns,
            self.requests,
            self.active_ns,
            self.server_cpu_ns,
            self.client_cpu_ns,
            self.wire_bytes,
            counts,
            sums,
        )


def measure(sweep: Sweep, number: int, attempt: int, bench: Bench, watch: Watch) -> Block:
    """Measures a block. Blocks for as long as it takes.

    Raises ProgramFailed where a server does not start or fails; KeyboardInterrupt. A window whose clients cannot
    connect is kept as one that failed.
    """
    assert isinstance(sweep.turns, Windows)
    started_at, began_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    with kept_to(bench.server_cores):
        calibration_us = calibrated_us()
    columns, rounds, after = Columns(), list[RoundSeen](), dict[ServerKey, ServerSeen | None]()
    with closing(_rounds(sweep, number, attempt, bench, columns, after)) as passing:
        for seen in passing:
            rounds.append(seen)
            watch(len(rounds) / sweep.rounds)
    first = () if sweep.turns.in_turn else starts(sweep, seed_of(sweep, number, attempt))
    return Block(
        number=number,
        attempt=attempt,
        started_at=started_at,
        duration_s=time.monotonic() - began_s,
        pinned=bench.server_cores is not None,
        calibration_us=calibration_us,
        slices=columns.columns([*sorted({name for parts in columns.parts for name in parts}), ALL]),
        arms=[arm_seen(place, columns, robbed_rounds(sweep, rounds)) for place in range(len(sweep.arms))],
        servers=[after[key] for key in sweep.servers],
        rounds=rounds,
        cores=len(cores()),
        server_cores=bench.server_cores or (),
        load_cores=bench.load_cores or (),
        starts=[sweep.servers.index(key) for key in first],
    )


@contextmanager
def serving(
    sweep: Sweep, keys: Sequence[ServerKey], bench: Bench, after: dict[ServerKey, ServerSeen | None]
) -> Iterator[Servers]:
    """These servers while they are needed; what each is like in the end is put into ``after``."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as running:
        servers = started(sweep, keys, bench, Path(scratch), running)
        yield servers
        after |= {key: look(servers, key, {}) for key in keys}


def _rounds(
    sweep: Sweep,
    number: int,
    attempt: int,
    bench: Bench,
    columns: Columns,
    after: dict[ServerKey, ServerSeen | None],
) -> Generator[RoundSeen, None, None]:
    """Runs every window, and says after each round what others took meanwhile. See ``serving`` for ``after``."""
    assert isinstance(sweep.turns, Windows)
    stocks = tuple(stock.name for stock in load_catalog(bench.catalog))
    seed = seed_of(sweep, number, attempt)
    machine, current = MachineWatch(not any(map(running_at, sweep.servers)) and bench.hosts is None), 0
    with ExitStack() as block:
        whole = None if sweep.turns.in_turn else block.enter_context(serving(sweep, starts(sweep, seed), bench, after))
        for (round_, _), group in groupby(enumerate(order(sweep, seed)), key=lambda turn: turn[1][:2]):
            if round_ != current:
                yield machine.seen()
                current = round_
            beside = list(group)
            keys = tuple(dict.fromkeys(sweep.arms[arm].server for _, (_, _, arm) in beside))
            with nullcontext(whole) if whole is not None else serving(sweep, keys, bench, after) as servers:
                for place, turn in beside:
                    own = ((sweep.seed * 100 + number) * 10 + attempt) * 10_000 + place
                    _turn(sweep, turn, bench, servers, stocks, own, columns)
    yield machine.seen()


def _turn(
    sweep: Sweep,
    turn: tuple[int, int, int],
    bench: Bench,
    servers: Servers,
    stocks: tuple[str, ...],
    seed: int,
    columns: Columns,
) -> None:
    """Runs one window, and fills its place in the columns."""
    assert isinstance(sweep.turns, Windows)
    asked = sweep.arms[turn[2]]
    for column, value in zip((columns.round, columns.appearance, columns.arm), turn, strict=True):
        column.append(value)
    at, pids = servers.addresses[asked.server], servers.pids(asked.server)
    if asked.setting["client"] == PEER_CLIENT:
        _peer_window(asked.setting, at, sweep.turns, bench, pids, columns)
        return
    foreign = bench.load_programs.get(asked.setting.text("client"))
    asked = asked if foreign is None else replace(asked, setting=asked.setting.but(client="lean"))
    plan = load_plan(asked, at, bench, stocks, seed)
    plan = replace(plan, warm_up_s=sweep.turns.warm_up_s, duration_s=sweep.turns.duration_s)
    columns.counted_ns.append(round(plan.duration_s * 1e9))
    columns.active_ns.append(round(plan.duration_s * 1e9))
    if foreign is None:
        _window(plan, bench, pids, columns)
    else:
        _foreign_window(foreign, plan, asked.setting, pids, columns)


def _window(plan: LoadPlan, bench: Bench, pids: tuple[int, ...], columns: Columns) -> None:
    """Runs one window with our own client, and fills its place in the columns.

    Where other hosts send, the load's processor time is that of the busiest core of any host. Bytes are as if
    they could not be read. Raises Refused where a host did not do its share.
    """
    cpu_ns, carried = processes_cpu_ns(pids), loopback_bytes()
    hosts: Sequence[HostSeen] = ()
    try:
        result: LoadResult | None = None
        if bench.hosts is None:
            result = fleet.run(plan)
        else:
            from experiments.measure.hosts import sent  # which needs Dask

            result, hosts = sent(plan, bench.hosts)
    except Fault:  # no client could connect: the window is kept as failed, and shown
        result = None
    if result is not None and result.interrupted:
        raise KeyboardInterrupt
    parts = {} if result is None else result.parts
    columns.parts.append({name: Part(each.response, each.outcomes, each.errors) for name, each in parts.items()})
    columns.windows.append(None if result is None else replace(_seen(plan, result), hosts=hosts))
    columns.unrecorded.append(0 if result is None else result.began - result.recorded)
    columns.fate.append(FAILED if result is None else KEPT if _times(columns.parts[-1], ALL).count else SILENT)
    columns.requests.append(0 if result is None else result.recorded)
    columns.server_cpu_ns.append(processes_cpu_ns(pids) - cpu_ns)
    own_s = 0.0 if result is None else result.client_cpu_s
    columns.client_cpu_ns.append(round(1e9 * max((host.core_s for host in hosts), default=own_s)))
    columns.wire_bytes.append(0 if bench.hosts is not None else loopback_bytes() - carried)


def _foreign_window(program: LoadProgram, plan: LoadPlan, of: Setting, pids: tuple[int, ...], columns: Columns) -> None:
    """Runs one window with a program that is not our client, and fills its place in the columns.

    Bytes are as if they could not be read, and so is the server's processor time where the program does not say how
    many requests it made in all: they are of the warm-up too. Its own time is what it says. Raises ProgramFailed.
    """
    (request,) = plan.mix
    sent = Workload(plan).population[0]
    where = plan.address, sent.path, sent.payload
    how = plan.connection == "per-request", of.whole("in_flight"), of.text("headers")
    ask = Ask(*where, plan.connections, plan.duration_s, plan.warm_up_s, plan.cpus, *how)
    deadline_s = None if of["deadline_ms"] is None else plan.timeout_s
    cpu_ns = processes_cpu_ns(pids)
    reading = program.load(replace(ask, deadline_s=deadline_s, rate_hz=plan.rate_hz, arrivals=plan.arrivals))
    spent_ns = 0 if reading.all_requests is None else processes_cpu_ns(pids) - cpu_ns
    times = reading.times
    assert times is not None, "a program that says no single time"
    if reading.reply is not None and sent.check(reading.reply) % TYPE_STEP >= FAULT_FIRST:  # all others were the same
        reading, times = replace(reading, requests=0, errors=reading.errors + reading.requests), Times()
    errors = {"failed": reading.errors, "never_sent": reading.never_sent}
    errors = {kind: count for kind, count in errors.items() if count}
    columns.parts.append({request: Part(times, {}, errors)})
    sent_hz = (reading.requests + reading.errors) / plan.duration_s
    never_sent, late_us = reading.never_sent, reading.late_us_p99
    seen = Window(plan.rate_hz, sent_hz, reading.throughput_hz, 0, never_sent, late_us, plan.duration_s)
    columns.windows.append(seen)
    columns.unrecorded.append(0)
    columns.fate.append(KEPT if reading.requests else SILENT)
    columns.requests.append(reading.all_requests or reading.requests)
    columns.server_cpu_ns.append(spent_ns)
    columns.client_cpu_ns.append(round((reading.cpu_share or 0) * plan.duration_s * 1e9))
    columns.wire_bytes.append(0)


def _peer_window(
    of: Setting, at: Address, turns: Windows, bench: Bench, pids: tuple[int, ...], columns: Columns
) -> None:
    """Runs one window with the client of a peer, and fills its place in the columns.

    The times are of the calls behind each client's first, and so are the clients' rates and processor time, where the
    program says them. Whether a rate was kept is seen where the program says when it sent: by a constant schedule from
    its first call on. The server's processor time is of all calls, and of connecting. Bytes are as if they could not be
    read. Raises Absent and ProgramFailed.
    """
    rate_hz = of["rate_hz"]
    calls = round(float(rate_hz) * turns.duration_s) if isinstance(rate_hz, float) else turns.calls
    cpu_ns = processes_cpu_ns(pids)
    run = peer_clients.run(of, at, max(2, calls), bench.placed(dict(of.levels)).load_cores)
    times = Times()
    times.record(run.calls_ns)
    answered = len(run.calls_ns) + len(run.first_ns)
    if run.total is not None:
        busy_s = run.total.wall_ns / 1e9
    elif isinstance(rate_hz, float):
        busy_s = turns.duration_s
    else:
        busy_s = float(run.calls_ns.sum()) / len(run.first_ns) / 1e9
    clients_hz = [1e9 * each.calls / each.wall_ns for each in run.clients]
    columns.counted_ns.append(round(busy_s * 1e9))
    columns.active_ns.append(round(busy_s * 1e9))
    columns.parts.append({of.text("mix"): Part(times, {}, {})})
    seen = Window(None, answered / busy_s, times.count / busy_s, 0, 0, None, busy_s, clients_hz=clients_hz)
    if isinstance(rate_hz, float) and run.sent_ns is not None and len(run.first_ns) == 1:
        sent_hz, late_us = peer_clients.on_schedule(run.sent_ns, rate_hz)
        seen = replace(seen, rate_hz=rate_hz, sent_hz=sent_hz, late_us_p99=late_us)
    columns.windows.append(seen)
    columns.unrecorded.append(0)
    columns.fate.append(KEPT)
    columns.requests.append(answered)
    columns.server_cpu_ns.append(processes_cpu_ns(pids) - cpu_ns)
    columns.client_cpu_ns.append(0 if run.total is None else run.total.processor_ns)
    columns.wire_bytes.append(0)


def _times(parts: Mapping[str, Part], request: str) -> Times:
    """Response times of a window, of one request type or of all."""
    merged = Times()
    for name, part in parts.items():
        if request in (name, ALL):
            merged.merge(part.response)
    return merged


def arm_seen(place: int, columns: Columns, robbed: Collection[int]) -> ArmSeen:
    """One arm, of its windows. Of those in rounds that were robbed of time, only the errors count."""
    own = [number for number, each in enumerate(columns.arm) if each == place]
    seen = [
        _errors_alone(columns.parts[number]) if columns.round[number] in robbed else columns.parts[number]
        for number in own
        if columns.parts[number]
    ]
    spared = [columns.windows[number] for number in own if columns.round[number] not in robbed]
    names = dict.fromkeys(name for parts in seen for name in parts)
    answered = {name: _answered(seen, (name,)) for name in names}
    return ArmSeen(
        answered | {ALL: _answered(seen, tuple(names))},
        unrecorded=sum(columns.unrecorded[number] for number in own),
        windows=[window for window in spared if window is not None],
    )


def _errors_alone(parts: Mapping[str, Part]) -> Mapping[str, Part]:
    return {name: Part(Times(), {}, part.errors) for name, part in parts.items()}


def _answered(seen: Sequence[Mapping[str, Part]], requests: Sequence[str]) -> Answered:
    windows: list[Times] = []
    outcomes: dict[str, int] = {}
    errors: dict[str, int] = {}
    for parts in seen:
        windows.append(Times())
        for name in requests:
            if name not in parts:
                continue
            part = parts[name]
            windows[-1].merge(part.response)
            for total, counts in ((outcomes, part.outcomes), (errors, part.errors)):
                for kind, count in counts.items():
                    total[kind] = total.get(kind, 0) + count
    times = Times()
    for each in windows:
        times.merge(each)
    return Answered(times, outcomes, errors, effective(times, windows))


def effective(times: Times, windows: Sequence[Times], percent: float = 99.0) -> float:
    """Number of independent requests that these are worth for a percentile: windows are clusters. 0 for none."""
    if not times.count:
        return 0.0
    _, highest, counts = times.buckets()
    cut_ns = highest[np.searchsorted(np.cumsum(counts), percent / 100 * times.count)]
    beyond = np.array([sum(counts[lowest > cut_ns]) for lowest, _, counts in (each.buckets() for each in windows)])
    share = beyond.sum() / times.count
    sizes = np.array([each.count for each in windows])
    return times.count / cluster_effect(sizes, beyond, float(share * (1 - share)))


def _seen(plan: LoadPlan, result: LoadResult) -> Window:
    count = result.requests[ALL_REQUESTS].count
    errors = result.requests[ALL_REQUESTS].errors
    late, never_sent = result.late_us, errors.get("never_sent", 0)
    return Window(
        rate_hz=plan.rate_hz,
        sent_hz=(count + sum(errors.values()) - never_sent) / result.duration_s,
        duration_s=result.duration_s,
        answered_hz=result.throughput_hz,
        starved_clients=result.starved_connections,
        never_sent=never_sent,
        late_us_p99=None if late is None else late.p99_us,
        arrival_faults=tuple(fault for check in result.arrivals for fault in check.faults),
    )
