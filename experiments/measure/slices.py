"""One block in slices: fresh servers, all alive; clients that hold a connection to each; slices by turns.

The servers are started afresh, each arm is loaded once to warm its server and to see how soon it answers, then the
slices are drawn and followed. What others took of the cores is read at each round's edges. Whatever happens, every
process is ended. Left out: windows, which are in ``windows``; whether a block is run again, which is the runner's.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import psutil

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.turns import Turn, TurnLoad
from clients.load.run.turn_clients import TurnClients
from experiments.design.arms import Arm, ServerKey
from experiments.design.factors import FACTORS
from experiments.design.slots import Slot, draw, seed_of, starts, warm_up
from experiments.design.sweep import Slices, Sweep
from experiments.measure.access import client_credentials
from experiments.measure.bench import Bench, exits, running_at, server_command
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
"""From telling the clients to the first slice: long enough for the last to have heard it."""

UPDATES_INTERVAL_S = 0.02
"""Mean pause of the price updater, of its arm's own time: some fifty updates a second."""

SHARED_S = 0.1
"""Processor time that a share of it needs: some 25 ticks."""

AT_WORK_SHARE = 0.01
"""Of the processor time of a pool's threads: who has less has woken up in vain."""

Watch = Callable[[float], None]
"""Is told which share of a block's slices is done, at each round's end."""


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of a block, by what makes them. Programs are those that were started here."""

    addresses: Mapping[ServerKey, Address]
    programs: Mapping[ServerKey, Program]
    timelines: Mapping[ServerKey, Path]
    running: Mapping[ServerKey, tuple[int, ...]] = field(default_factory=dict)
    """Processes of servers that ran already, as far as they can be read."""

    def pids(self, key: ServerKey) -> tuple[int, ...]:
        """Processes whose processor time is the server's; none where it cannot be read. Raises ProgramFailed."""
        program = self.programs.get(key)
        return self.running.get(key, ()) if program is None else program.pids


@dataclass(frozen=True, slots=True)
class Observed:
    """Part of a block that its slices or windows showed."""

    slices: SliceColumns
    arms: Sequence[ArmSeen]
    servers: Sequence[ServerSeen | None]
    rounds: Sequence[RoundSeen]


def observe(sweep: Sweep, number: int, attempt: int, bench: Bench, watch: Watch) -> Observed:
    """Observes a block in slices. Blocks for as long as it takes.

    Raises ProgramFailed where a server does not start or fails, Unavailable where a client cannot connect or dies.
    """
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as running:
        first = starts(sweep, seed_of(sweep, number, attempt))
        servers = started(first, bench, running, Path(scratch) if sweep.timeline else None)
        loads = turn_loads(sweep, servers, bench, seed=sweep.seed * 1000 + number * 10 + attempt)
        with TurnClients(loads) as clients:
            responses_s = _responses_s(sweep, loads, clients)
            before = {key: program.user_and_kernel_s() for key, program in servers.programs.items()}
            threads_before = {key: executor_cpu_s(program, key) for key, program in servers.programs.items()}
            slots = _drawn(sweep, responses_s, number, attempt)
            turns = [slot.turn for slot in slots]
            clients.begin(turns)
            rounds = list(_watched(slots, watch, not servers.addresses.keys() - servers.programs.keys()))
            reports = clients.gather()
            seen = [_looked(servers, key, before, threads_before) for key in sweep.servers]
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
    """The numbers of rounds that histograms leave out, as ratios do."""
    return left_out(sweep.limits, rounds, len(cores()))


def started(keys: Sequence[ServerKey], bench: Bench, running: ExitStack, timelines_in: Path | None = None) -> Servers:
    """These servers, started and ready; they stop with ``running``, and write their timelines into a folder if there
    is one. Raises ProgramFailed."""
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
    return Servers(addresses, programs, timelines, running_pids)


def turn_loads(sweep: Sweep, servers: Servers, bench: Bench, seed: int) -> tuple[TurnLoad, ...]:
    """The load of every arm."""
    return tuple(
        TurnLoad(
            load_plan(arm, servers.addresses[arm.server], bench, seed),
            servers.pids(arm.server),
            UPDATES_INTERVAL_S if arm.setting["updater"] else None,
        )
        for arm in sweep.arms
    )


def load_plan(arm: Arm, address: Address, bench: Bench, seed: int) -> LoadPlan:
    """Load plan of an arm's clients. Raises UsageError for levels that do not go together."""
    fields: dict[str, object] = {}
    for name, level in arm.setting.levels:
        fields |= FACTORS[name].plan(level)
    size = None if arm.setting["size"] is None else arm.setting.whole("size")
    if size is not None and arm.setting["mix"] != "echo":
        raise UsageError("size", str(size), f"none where {arm.setting['mix']} is sent: its requests have their own")
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
        **fields,  # type: ignore[arg-type]  # the factors' levels are of the fields' types: a test makes every one
    )


def look(servers: Servers, key: ServerKey, before: Mapping[ServerKey, Mapping[int, float]]) -> ServerSeen | None:
    """A server as it is now; None for one that was not started here. Raises ProgramFailed if it is gone.

    ``before``: what ``executor_cpu_s`` said where the measured part began; a server that is not in it began with it.
    """
    program = servers.programs.get(key)
    if program is None:
        return None
    connections = program.connections(servers.addresses[key])
    threads, memory_mib = program.threads(), program.memory_mib()
    at_work = threads_at_work(before.get(key, {}), executor_cpu_s(program, key))
    return ServerSeen(threads, connections, memory_mib, len(program.pids), at_work=at_work)


def executor_cpu_s(program: Program, key: ServerKey) -> dict[int, float]:
    """The processor time of a server's executor so far."""
    return threads_cpu_s(program.pids, str(dict(key[0]).get("executor")))


def threads_cpu_s(pids: Sequence[int], prefix: str) -> dict[int, float]:
    """Of each thread whose name in the kernel begins so, by its id: its processor time in ticks of 10 ms.

    A system that does not tell the names of threads has none.
    """
    cpu_s: dict[int, float] = {}
    for pid in pids:
        with suppress(psutil.Error, OSError):  # a process or a thread that has ended
            cpu_s |= {
                thread.id: thread.user_time + thread.system_time
                for thread in psutil.Process(pid).threads()
                if Path(f"/proc/{pid}/task/{thread.id}/comm").read_text().startswith(prefix)
            }
    return cpu_s


def threads_at_work(before_s: Mapping[int, float], after_s: Mapping[int, float]) -> int | None:
    """Number of threads that ran requests between two readings; None: they computed too little to say."""
    spent_s = [cpu_s - before_s.get(thread, 0.0) for thread, cpu_s in after_s.items()]
    return sum(each >= AT_WORK_SHARE * sum(spent_s) for each in spent_s) if sum(spent_s) >= SHARED_S else None


def _looked(
    servers: Servers,
    key: ServerKey,
    before: Mapping[ServerKey, tuple[float, float]],
    threads_before: Mapping[ServerKey, Mapping[int, float]],
) -> ServerSeen | None:
    """As ``look``, with the kernel's share of the processor time since then."""
    seen = look(servers, key, threads_before)
    if seen is None:
        return None
    user_s, kernel_s = (
        now - then for now, then in zip(servers.programs[key].user_and_kernel_s(), before[key], strict=True)
    )
    return replace(seen, kernel_share=kernel_s / (user_s + kernel_s)) if user_s + kernel_s >= SHARED_S else seen


def _drawn(sweep: Sweep, responses_s: Sequence[float], number: int, attempt: int) -> tuple[Slot, ...]:
    """The block's slices, on the clock; the first begins in a moment."""
    assert isinstance(sweep.turns, Slices)
    slots = draw(sweep, sweep.turns, responses_s, seed_of(sweep, number, attempt))
    start_ns = _soon_ns()
    return tuple(replace(slot, turn=slot.turn.after(start_ns)) for slot in slots)


def _responses_s(sweep: Sweep, loads: Sequence[TurnLoad], clients: TurnClients) -> list[float]:
    """Each arm's mean response in s, once it has been loaded for a moment; 0 for one that answers nothing.

    A call that outlasts its slice takes the time of those behind it: they are loaded again.
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
    """Waits through the rounds, and reads what others took of the cores in each. ``is_alone``: see ``MachineWatch``."""
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
    """Stages that the arm's server stamped in the counted parts of its slices among these, by request type and of
    all."""
    file = servers.timelines.get(sweep.arms[place].server)
    own = [turn for turn in turns if turn.load == place]
    if file is None or not own:
        return {}
    begins, ends = (np.array([getattr(turn, name) for turn in own]) for name in ("first_ns", "last_ns"))
    by_path = stages.summary(stages.load(file), begins, ends)
    return {path if path == ALL else path.rpartition("/")[2].lower(): each for path, each in by_path.items()}
