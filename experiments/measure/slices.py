"""Observes one block in slices. A slice is a short load of one arm, and an arm is a server under a load.

All servers of the block start, and run through the whole block. Clients keep a connection to each server. First each
arm gets one load. This load warms up the arm's server, and gives the arm's response time. Then the slices are sent one
after another, in random order. The time that other processes used on the cores is read at the end of each round. All
processes end with the block, even after an error. Left out: windows (``windows.py``); the decision to repeat a block
(``runner.py``).
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
import psutil

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.turns import Turn, TurnLoad
from clients.load.run.turn_clients import TurnClients
from experiments.design.arms import Arm, ServerKey
from experiments.design.factors import FACTORS
from experiments.design.slots import Slot, draw, seed_of, starts, warm_up
from experiments.design.sweep import Slices, Sweep
from experiments.measure.bench import Bench, client_credentials, exits, is_somebodys, running_at, server_command
from experiments.measure.fold import fold, mean_responses_s
from experiments.measure.others import MachineWatch
from experiments.measure.programs import Program
from experiments.measure.running import listening
from experiments.results import stages
from experiments.results.machine import cores
from experiments.results.observed import ALL, KEPT, ArmSeen, RoundSeen, ServerSeen, SliceColumns, left_out
from experiments.services.workloads import request_types
from stock_service.rpc.errors import UsageError
from stock_service.rpc.transports import Address

START_S = 0.05
"""Time in seconds from the message with the clients' slices until the first slice begins. Every client reads the
message within this time."""

UPDATES_INTERVAL_S = 0.02
"""Mean pause in seconds between two updates of the price updater. The updater sends only in the slices of its arm: some
fifty updates per second."""

SHARED_S = 0.1
"""Smallest processor time, in seconds, of which shares are computed, such as the kernel's share. The kernel counts the
time in ticks of 10 ms, and so shares of a shorter time would be inexact."""

AT_WORK_SHARE = 0.01
"""Smallest share of the executor's processor time that a thread must use to count as a thread that ran requests. A
thread with a smaller share only woke up and found no request."""

Watch = Callable[[float], None]
"""Function that is called at the end of each round, with the finished share of the block."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Servers of a block, by server key. ``programs`` has the servers that this process started. ``timelines`` has the
    files into which these servers write their timelines."""

    addresses: Mapping[ServerKey, Address]
    programs: Mapping[ServerKey, Program]
    timelines: Mapping[ServerKey, Path]
    running: Mapping[ServerKey, tuple[int, ...]] = field(default_factory=dict)
    """Process ids of servers that ran already, if this user may read the processes."""

    def pids(self, key: ServerKey) -> tuple[int, ...]:
        """Ids of the server's processes. Empty if the ids are unknown. Raises ProgramFailed for a server that has
        ended."""
        program = self.programs.get(key)
        return self.running.get(key, ()) if program is None else program.pids


@dataclass(frozen=True, slots=True)
class Observed:
    """Observations of a block in slices or windows. Each field has the meaning of the field of
    ``results.observed.Block`` with the same name."""

    slices: SliceColumns
    arms: Sequence[ArmSeen]
    servers: Sequence[ServerSeen | None]
    rounds: Sequence[RoundSeen]


def observe(sweep: Sweep, number: int, attempt: int, bench: Bench, watch: Watch) -> Observed:
    """Observes a block in slices. Waits until the end of the block. At the end of each round, calls ``watch`` with the
    finished share of the block.

    Raises ProgramFailed if a server does not start or fails, Unavailable if a client cannot connect or dies.
    """
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as running:
        first = starts(sweep, seed_of(sweep, number, attempt))
        servers = started(first, bench, running, Path(scratch) if sweep.timeline else None)
        loads = turn_loads(sweep, servers, bench, seed=sweep.seed * 1000 + number * 10 + attempt)
        with TurnClients(loads) as clients:
            responses_s = _responses_s(sweep, loads, clients)
            before = {key: Spent.so_far(program, key) for key, program in servers.programs.items()}
            slots = _drawn(sweep, responses_s, number, attempt)
            turns = [slot.turn for slot in slots]
            clients.begin(turns)
            rounds = list(_watched(slots, watch, not servers.addresses.keys() - servers.programs.keys()))
            reports = clients.gather()
            seen = [look(servers, key, before.get(key)) for key in sweep.servers]
        running.close()  # servers write their timelines as they stop
        order = [(slot.round, slot.appearance) for slot in slots]
        robbed = robbed_rounds(sweep, rounds)
        slices, arms = fold(order, turns, loads, reports, robbed)
        stamped = [
            slot.turn
            for slot, fate in zip(slots, slices.fate, strict=True)
            if fate == KEPT and slot.round not in robbed
        ]
        arms = [replace(arm, stages=_stages(servers, sweep, place, stamped)) for place, arm in enumerate(arms)]
    return Observed(slices, arms, seen, rounds)


def robbed_rounds(sweep: Sweep, rounds: Sequence[RoundSeen]) -> frozenset[int]:
    """Numbers of the robbed rounds, which lost too much processor time to other programs. Histograms and ratios leave
    out robbed rounds."""
    return left_out(sweep.limits, rounds, len(cores()))


def started(keys: Sequence[ServerKey], bench: Bench, running: ExitStack, timelines_in: Path | None = None) -> Servers:
    """Starts the servers with these keys, and waits until all are ready. The servers stop when ``running`` is closed.

    The servers write timelines of their requests into the folder ``timelines_in``; with None, they write no timelines.
    Raises ProgramFailed if a server does not start.
    """
    programs: dict[ServerKey, Program] = {}
    addresses: dict[ServerKey, Address] = {}
    timelines: dict[ServerKey, Path] = {}
    for place, key in enumerate(keys):
        address = running_at(key)
        if address is not None:
            addresses[key] = address
            continue
        if timelines_in is not None:
            timelines[key] = timelines_in / f"timeline-{place}"
        cpus = bench.placed(dict(key[0])).server_cores
        listen = None if bench.hosts is None else bench.hosts.listen
        command = server_command(key, bench.catalog, timelines.get(key), listen)
        programs[key] = running.enter_context(Program(command, cpus, exits(key)))
    running_pids = {key: listening(address).pids for key, address in addresses.items()}
    addresses |= {key: program.ready() for key, program in programs.items()}
    for program in (each for key, each in programs.items() if is_somebodys(dict(key[0]))):
        running.enter_context(program.drained())
    return Servers(addresses, programs, timelines, running_pids)


def turn_loads(sweep: Sweep, servers: Servers, bench: Bench, seed: int) -> tuple[TurnLoad, ...]:
    """Loads of all arms, in the order of ``Sweep.arms``. A load has its load plan, the ids of its server's processes,
    and the mean pause of the price updater."""
    return tuple(
        TurnLoad(
            load_plan(arm, servers.addresses[arm.server], bench, seed),
            servers.pids(arm.server),
            UPDATES_INTERVAL_S if arm.setting["updater"] else None,
        )
        for arm in sweep.arms
    )


def load_plan(arm: Arm, address: Address, bench: Bench, seed: int) -> LoadPlan:
    """Load plan for an arm's clients. Raises UsageError for an invalid combination of levels."""
    fields: dict[str, object] = {}
    for name, level in arm.setting.levels:
        fields |= FACTORS[name].plan(level)
    size = None if arm.setting["size"] is None else arm.setting.whole("size")
    if size is not None and arm.setting["mix"] != "echo":
        raise UsageError("size", str(size), f"none with {arm.setting['mix']}, whose requests have sizes of their own")
    return LoadPlan(
        transport=arm.setting.text("transport"),
        address=address,
        stocks=bench.stocks,
        warm_up_s=0,
        duration_s=1,
        seed=seed,
        cpus=bench.placed(dict(arm.setting.levels)).load_cores,
        request_types=(*request_types(arm.setting.whole("array_len"), size), *bench.request_types),
        credentials=client_credentials(dict(arm.setting.levels), bench.credentials),
        **fields,  # type: ignore[arg-type]  # levels have the types of the fields: a test makes every field
    )


@dataclass(frozen=True, slots=True)
class Spent:
    """Processor time that a server has used so far, in seconds."""

    user_s: float
    kernel_s: float
    executor_s: Mapping[int, float]
    """Time of each thread of the server's executor, by the thread's id."""

    @classmethod
    def so_far(cls, program: Program, key: ServerKey) -> Self:
        """Processor time of a running server. Raises ProgramFailed for an ended server."""
        return cls(*program.user_and_kernel_s(), threads_cpu_s(program.pids, str(dict(key[0]).get("executor"))))


def look(servers: Servers, key: ServerKey, before: Spent | None = None) -> ServerSeen | None:
    """State of a server now. None for a server that the sweep did not start. Raises ProgramFailed for an ended server.

    ``before`` is the processor time that the server used before the first slice. With None, the threads at work are
    computed from the processor time since the server's start, and the kernel's share is not computed.
    """
    program = servers.programs.get(key)
    if program is None:
        return None
    connections = program.connections(servers.addresses[key])
    threads, memory_mib, now = program.threads(), program.memory_mib(), Spent.so_far(program, key)
    at_work = threads_at_work({} if before is None else before.executor_s, now.executor_s)
    seen = ServerSeen(threads, connections, memory_mib, len(program.pids), at_work=at_work)
    if before is None:
        return seen
    kernel_s = now.kernel_s - before.kernel_s
    spent_s = now.user_s - before.user_s + kernel_s
    return replace(seen, kernel_share=kernel_s / spent_s) if spent_s >= SHARED_S else seen


def threads_cpu_s(pids: Sequence[int], prefix: str) -> dict[int, float]:
    """Processor time of each thread whose name in the kernel begins with ``prefix``, by the thread's id.

    The time is in seconds, and is counted in ticks of 10 ms. Empty on a system where threads have no names.
    """
    cpu_s: dict[int, float] = {}
    for pid in pids:
        with suppress(psutil.Error, OSError):  # a process or a thread has ended
            cpu_s |= {
                thread.id: thread.user_time + thread.system_time
                for thread in psutil.Process(pid).threads()
                if Path(f"/proc/{pid}/task/{thread.id}/comm").read_text().startswith(prefix)
            }
    return cpu_s


def threads_at_work(before_s: Mapping[int, float], after_s: Mapping[int, float]) -> int | None:
    """Number of an executor's threads that ran requests between two readings of the threads' processor time. None if
    all threads together used less than ``SHARED_S``."""
    spent_s = [cpu_s - before_s.get(thread, 0.0) for thread, cpu_s in after_s.items()]
    return sum(each >= AT_WORK_SHARE * sum(spent_s) for each in spent_s) if sum(spent_s) >= SHARED_S else None


def _drawn(sweep: Sweep, responses_s: Sequence[float], number: int, attempt: int) -> tuple[Slot, ...]:
    """Slices of the block, with times of ``time.perf_counter_ns()``. The first slice begins ``START_S`` from now."""
    assert isinstance(sweep.turns, Slices)
    slots = draw(sweep, sweep.turns, responses_s, seed_of(sweep, number, attempt))
    start_ns = _soon_ns()
    return tuple(replace(slot, turn=slot.turn.after(start_ns)) for slot in slots)


def _responses_s(sweep: Sweep, loads: Sequence[TurnLoad], clients: TurnClients) -> list[float]:
    """Mean response time of each arm in seconds, under a short load. 0 for an arm that got no reply.

    A call may take longer than its slice. Then the arms of the following slices may get no reply. Arms without a reply
    are loaded again. The repetition ends when every arm has a reply, or when no further arm gets a reply.
    """
    responses_s = [0.0] * len(loads)
    waiting, before = warm_up(sweep), len(loads) + 1
    while 0 < len(waiting) < before:
        before, start_ns = len(waiting), _soon_ns()
        turns = [slot.turn.after(start_ns) for slot in waiting]
        clients.begin(turns)
        seen, _ = fold([(0, place) for place in range(len(turns))], turns, loads, clients.gather())
        for turn, response_s in zip(turns, mean_responses_s(seen), strict=True):
            responses_s[turn.load] = response_s
        waiting = tuple(slot for slot in waiting if not responses_s[slot.turn.load])
    return responses_s


def _soon_ns() -> int:
    return time.perf_counter_ns() + round(START_S * 1e9)


def _watched(slots: Sequence[Slot], watch: Watch, is_alone: bool) -> Iterator[RoundSeen]:
    """Stolen and foreign time of each round. Each step of the iterator waits for the end of a round.

    ``is_alone`` is true if this process has started every server. Otherwise foreign time is unknown.
    """
    ends = {slot.round: slot.turn.end_ns for slot in slots}
    _sleep_until(slots[0].turn.begin_ns)
    machine = MachineWatch(is_alone)
    for number, end_ns in ends.items():
        _sleep_until(end_ns)
        yield machine.seen()
        watch((number + 1) / len(ends))


def _sleep_until(at_ns: int) -> None:
    time.sleep(max(0, at_ns - time.perf_counter_ns()) / 1e9)


def _stages(servers: Servers, sweep: Sweep, place: int, turns: Sequence[Turn]) -> Mapping[str, stages.StageSummary]:
    """Summaries of the stages of an arm's requests, by request type and for ``all``. One stage is the wait for a
    thread. Only requests in the counted parts of the slices ``turns`` count. Empty without a timeline."""
    file = servers.timelines.get(sweep.arms[place].server)
    own = [turn for turn in turns if turn.load == place]
    if file is None or not own:
        return {}
    begins, ends = (np.array([getattr(turn, name) for turn in own]) for name in ("first_ns", "last_ns"))
    by_path = stages.summary(stages.load(file), begins, ends)
    return {path if path == ALL else path.rpartition("/")[2].lower(): each for path, each in by_path.items()}
