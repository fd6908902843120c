"""Observes one block in windows. An arm is a server under a load.

In a window, clients that were started for this window load the server of one arm. A window is longer than a slice
(``slices.py``). Windows are for loads that slices cannot measure: open loops, whose queues must settle; a new
connection for each request; a worker for each connection; over 64 connections; other load programs than our client;
clients of peers. The clients start and connect before the window, and end with the window. All servers of the block run
all the time. But with ``Windows.in_turn``, the servers of a group run only during the group's windows. The order of
windows is drawn like the order of slices. A block of windows has the same form as a block of slices.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.outcomes import FAULT_FIRST, TYPE_STEP
from clients.load.plan.workload import Workload
from clients.load.record.dependence import cluster_effect
from clients.load.record.result import ALL as ALL_REQUESTS
from clients.load.record.result import LoadResult
from clients.load.record.times import Times, total
from clients.load.run import fleet
from clients.load.run.counters import loopback_bytes, processes_cpu_ns
from experiments.design.arms import Arm, ServerKey
from experiments.design.setting import Setting
from experiments.design.slots import order, seed_of, starts
from experiments.design.sweep import Sweep, Windows
from experiments.measure import peer_clients
from experiments.measure.bench import Bench, running_at
from experiments.measure.load_programs import Ask, LoadProgram
from experiments.measure.others import MachineWatch
from experiments.measure.slices import Observed, Servers, Watch, load_plan, look, robbed_rounds, started
from experiments.peers import PEER_CLIENT
from experiments.results.observed import (
    ALL,
    FAILED,
    KEPT,
    SILENT,
    Answered,
    ArmSeen,
    HostSeen,
    RoundSeen,
    ServerSeen,
    SliceColumns,
    Window,
)
from stock_service.rpc.errors import Fault
from stock_service.rpc.transports import Address


@dataclass(frozen=True, slots=True)
class Part:
    """Requests of one request type in a window: response times, numbers of replies by status (``outcomes``), and
    numbers of errors by kind."""

    response: Times
    outcomes: Mapping[str, int]
    errors: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Seen:
    """Observation of one window, from the results of its load and from the counters of this machine."""

    parts: Mapping[str, Part]
    """Requests and times for each request type. Empty if the load could not run."""
    window: Window | None
    """Rates and lateness of the window. None if the load could not run."""
    duration_ns: int
    requests: int
    """Number of answered requests. Requests of the warm-up are included only if the load reports their number."""
    server_cpu_ns: int
    client_cpu_ns: int
    wire_bytes: int = 0
    unrecorded: int = 0
    """Number of requests that a client began but did not record. 0 without a fault of the client."""

    def times(self, request: str) -> Times:
        """Response times of one request type, or of ``all``."""
        return total([part.response for name, part in self.parts.items() if request in (name, ALL)])

    @property
    def fate(self) -> int:
        """Fate of the window: ``FAILED`` if the load could not run, ``KEPT`` if a request was answered, otherwise
        ``SILENT``."""
        if self.window is None:
            return FAILED
        return KEPT if self.times(ALL).count else SILENT


Place = tuple[int, int, int]
"""Place of a window in its block: the number of the round, the number of the group's appearance in the block, and the
index of the arm in ``Sweep.arms``."""


def observe(sweep: Sweep, number: int, attempt: int, bench: Bench, watch: Watch) -> Observed:
    """Observes a block in windows. Waits until the end of the block. At the end of each round, calls ``watch`` with the
    finished share of the block.

    Raises ProgramFailed if a server does not start or fails; KeyboardInterrupt. A window whose clients cannot connect
    is kept as a failed window.
    """
    assert isinstance(sweep.turns, Windows)
    seed = seed_of(sweep, number, attempt)
    places, seen = tuple(order(sweep, seed)), list[Seen]()
    rounds, after = list[RoundSeen](), dict[ServerKey, ServerSeen | None]()
    machine = MachineWatch(not any(map(running_at, sweep.servers)) and bench.hosts is None)

    def end_round() -> None:
        rounds.append(machine.seen())
        watch(len(rounds) / sweep.rounds)

    with ExitStack() as block:
        whole = block.enter_context(serving(starts(sweep, seed), bench, after)) if sweep.starts_at_once else None
        for (round_, _), group in groupby(places, key=lambda place: place[:2]):
            if round_ != len(rounds):
                end_round()
            arms = [sweep.arms[arm] for _, _, arm in group]
            keys = tuple(dict.fromkeys(arm.server for arm in arms))
            with nullcontext(whole) if whole is not None else serving(keys, bench, after) as servers:
                for arm in arms:
                    own = ((sweep.seed * 100 + number) * 10 + attempt) * 10_000 + len(seen)
                    seen.append(_seen(sweep.turns, arm, bench, servers, own))
    end_round()
    robbed = robbed_rounds(sweep, rounds)
    arms_seen = [arm_seen(arm, places, seen, robbed) for arm in range(len(sweep.arms))]
    return Observed(_columns(places, seen), arms_seen, [after[key] for key in sweep.servers], rounds)


def _columns(places: Sequence[Place], seen: Sequence[Seen]) -> SliceColumns:
    """Columns of a block of windows. Each column has a value for each window, in the order of time."""
    types = [*sorted({name for each in seen for name in each.parts}), ALL]
    times = {name: [each.times(name) for each in seen] for name in types}
    durations_ns = [each.duration_ns for each in seen]
    return SliceColumns(
        round=[round_ for round_, _, _ in places],
        appearance=[appearance for _, appearance, _ in places],
        arm=[arm for _, _, arm in places],
        fate=[each.fate for each in seen],
        counted_ns=durations_ns,
        requests=[each.requests for each in seen],
        active_ns=durations_ns,
        server_cpu_ns=[each.server_cpu_ns for each in seen],
        client_cpu_ns=[each.client_cpu_ns for each in seen],
        wire_bytes=[each.wire_bytes for each in seen],
        counts={name: [each.count for each in of] for name, of in times.items()},
        sums_ns={name: [each.sum_ns for each in of] for name, of in times.items()},
    )


@contextmanager
def serving(keys: Sequence[ServerKey], bench: Bench, after: dict[ServerKey, ServerSeen | None]) -> Iterator[Servers]:
    """Runs these servers during a ``with`` block. At the end of the ``with`` block, writes the state of each server
    into ``after``."""
    with ExitStack() as running:
        servers = started(keys, bench, running)
        yield servers
        after |= {key: look(servers, key) for key in keys}


def _seen(turns: Windows, arm: Arm, bench: Bench, servers: Servers, seed: int) -> Seen:
    """Runs one window of an arm to its end. Our own client, another load program or a peer's client sends the load."""
    at, pids, of = servers.addresses[arm.server], servers.pids(arm.server), arm.setting
    if of["client"] == PEER_CLIENT:
        return _peer_window(of, at, turns, bench, pids)
    program = bench.load_programs.get(of.text("client"))
    sent = arm if program is None else replace(arm, setting=of.but(client="lean"))
    plan = load_plan(sent, at, bench, seed)
    plan = replace(plan, warm_up_s=turns.warm_up_s, duration_s=turns.duration_s)
    if program is None:
        return _own_window(plan, bench, pids)
    return _foreign_window(program, plan, sent.setting, pids)


def _own_window(plan: LoadPlan, bench: Bench, pids: tuple[int, ...]) -> Seen:
    """Runs one window with our own client, to the end of the window.

    If other hosts send the load, the load's processor time is the time of the busiest core of all hosts. Then the bytes
    on the wire are unknown. Raises Refused if a host did not send its share.
    """
    cpu_ns, carried = processes_cpu_ns(pids), loopback_bytes()
    hosts: Sequence[HostSeen] = ()
    try:
        if bench.hosts is None:
            result = fleet.run(plan)
        else:
            from experiments.measure.hosts import sent  # needs Dask

            result, hosts = sent(plan, bench.hosts)
    except Fault:  # no client could connect: the window is kept as a failed window
        result = None
    spent_ns, sent_bytes = processes_cpu_ns(pids) - cpu_ns, 0 if bench.hosts else loopback_bytes() - carried
    duration_ns = round(plan.duration_s * 1e9)
    if result is None:
        return Seen({}, None, duration_ns, 0, spent_ns, 0, sent_bytes)
    if result.interrupted:
        raise KeyboardInterrupt
    return Seen(
        parts={name: Part(each.response, each.outcomes, each.errors) for name, each in result.parts.items()},
        window=replace(_window(plan, result), hosts=hosts),
        duration_ns=duration_ns,
        requests=result.recorded,
        server_cpu_ns=spent_ns,
        client_cpu_ns=round(1e9 * max((host.core_s for host in hosts), default=result.client_cpu_s)),
        wire_bytes=sent_bytes,
        unrecorded=result.began - result.recorded,
    )


def _foreign_window(program: LoadProgram, plan: LoadPlan, of: Setting, pids: tuple[int, ...]) -> Seen:
    """Runs one window with a load program other than our own client, to the end of the program. Raises ProgramFailed.

    The bytes on the wire are unknown. The server's processor time includes the warm-up. So the server's processor time
    for each request is known only if the program reports the number of all requests, including the warm-up. The load's
    processor time is the time that the program reports.
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
    assert times is not None, "a program without the times of its requests"
    if reading.reply is not None and sent.check(reading.reply) % TYPE_STEP >= FAULT_FIRST:  # all replies are equal
        reading, times = replace(reading, requests=0, errors=reading.errors + reading.requests), Times()
    errors = {"failed": reading.errors, "never_sent": reading.never_sent}
    sent_hz = (reading.requests + reading.errors) / plan.duration_s
    never_sent, late_us = reading.never_sent, reading.late_us_p99
    return Seen(
        parts={request: Part(times, {}, {kind: count for kind, count in errors.items() if count})},
        window=Window(plan.rate_hz, sent_hz, reading.throughput_hz, 0, never_sent, late_us, plan.duration_s),
        duration_ns=round(plan.duration_s * 1e9),
        requests=reading.all_requests or reading.requests,
        server_cpu_ns=spent_ns,
        client_cpu_ns=round((reading.cpu_share or 0) * plan.duration_s * 1e9),
    )


def _peer_window(of: Setting, at: Address, turns: Windows, bench: Bench, pids: tuple[int, ...]) -> Seen:
    """Runs one window with the client of a peer, to the end of the client. Raises ProgramFailed. Raises Absent if the
    peer is not built.

    The response times leave out the first call of each client. The clients' rates and processor time, if reported, also
    leave out the first calls. The sends of a single client with a rate, if reported, are compared with a constant
    schedule that begins at the first call. The server's processor time includes all calls and the connecting. The bytes
    on the wire are unknown.
    """
    rate_hz = of["rate_hz"]
    calls = round(float(rate_hz) * turns.duration_s) if isinstance(rate_hz, float) else turns.calls
    cpu_ns = processes_cpu_ns(pids)
    run = peer_clients.run(of, at, max(2, calls), bench.placed(dict(of.levels)).load_cores)
    spent_ns = processes_cpu_ns(pids) - cpu_ns
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
    window = Window(None, answered / busy_s, times.count / busy_s, 0, 0, None, busy_s, clients_hz=clients_hz)
    if isinstance(rate_hz, float) and run.sent_ns is not None and len(run.first_ns) == 1:
        sent_hz, late_us = peer_clients.on_schedule(run.sent_ns, rate_hz)
        window = replace(window, rate_hz=rate_hz, sent_hz=sent_hz, late_us_p99=late_us)
    return Seen(
        parts={of.text("mix"): Part(times, {}, {})},
        window=window,
        duration_ns=round(busy_s * 1e9),
        requests=answered,
        server_cpu_ns=spent_ns,
        client_cpu_ns=0 if run.total is None else run.total.processor_ns,
    )


def arm_seen(arm: int, places: Sequence[Place], seen: Sequence[Seen], robbed: Collection[int]) -> ArmSeen:
    """Observation of one arm, from the arm's windows. ``robbed`` has the rounds that lost too much time to other
    programs. From the windows in robbed rounds, only the errors count."""
    own = [(one, round_ in robbed) for (round_, _, of), one in zip(places, seen, strict=True) if of == arm]
    parts = [_errors_alone(one.parts) if is_robbed else one.parts for one, is_robbed in own if one.parts]
    names = dict.fromkeys(name for each in parts for name in each)
    answered = {name: _answered(parts, (name,)) for name in names}
    return ArmSeen(
        answered | {ALL: _answered(parts, tuple(names))},
        unrecorded=sum(one.unrecorded for one, _ in own),
        windows=[one.window for one, is_robbed in own if one.window is not None and not is_robbed],
    )


def _errors_alone(parts: Mapping[str, Part]) -> Mapping[str, Part]:
    return {name: Part(Times(), {}, part.errors) for name, part in parts.items()}


def _answered(seen: Sequence[Mapping[str, Part]], requests: Sequence[str]) -> Answered:
    windows, outcomes, errors = list[Times](), Counter[str](), Counter[str]()
    for parts in seen:
        of_types = [parts[name] for name in requests if name in parts]
        windows.append(total([part.response for part in of_types]))
        for part in of_types:
            outcomes.update(part.outcomes)
            errors.update(part.errors)
    times = total(windows)
    return Answered(times, dict(outcomes), dict(errors), effective(times, windows))


def effective(times: Times, windows: Sequence[Times]) -> float:
    """Effective sample size for the 99th percentile. An equal number of independent requests would estimate the
    percentile equally well. Requests of one window depend on one another. 0 without requests."""
    if not times.count:
        return 0.0
    _, highest, counts = times.buckets()
    cut_ns = highest[np.searchsorted(np.cumsum(counts), 0.99 * times.count)]
    beyond = np.array([sum(counts[lowest > cut_ns]) for lowest, _, counts in (each.buckets() for each in windows)])
    share = beyond.sum() / times.count
    sizes = np.array([each.count for each in windows])
    return times.count / cluster_effect(sizes, beyond, float(share * (1 - share)))


def _window(plan: LoadPlan, result: LoadResult) -> Window:
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
