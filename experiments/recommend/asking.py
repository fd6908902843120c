"""Measurement of a running server: the server's rate at several numbers of connections, and its processor time.

A level is one number of connections. Each load is a closed loop from one client process. A round loads each level once.
So a disturbance by other programs hits all levels alike. If a level's rate in the first round is far under the best
rate, later rounds leave out this level. The rounds end once the rates of each level agree, or ``BUDGET_S`` is over.

The server's processor time is the time of the processes that listen on the port, and of their child processes. The
processor time is None if this user may not read it, or if the server is on another machine.
"""

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psutil

from clients.load.plan.load_plan import LoadPlan, RequestType
from clients.load.record.result import ALL
from clients.load.run import fleet
from clients.load.run.counters import processes_cpu_ns
from experiments.design.limits import LIMITS
from experiments.measure.others import MachineWatch
from experiments.measure.running import listening
from experiments.recommend.seen import Level, Load
from experiments.results.machine import cores
from stock_service.rpc.errors import Unavailable
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials
from stock_service.rpc.transports import Address

CONNECTIONS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Levels (numbers of connections) in ascending order."""

GROWS = 1.05
"""Smallest factor of the rate that counts as growth: the best rate of the last two levels ÷ the best rate of the
earlier levels.
"""

ROUNDS_LEAST, ROUNDS = 2, 5
"""Smallest and largest number of rounds. After ``ROUNDS_LEAST`` rounds, the measurement ends once the rounds agree."""

AGREE = 1.06
"""Largest ratio of a level's highest rate to its lowest rate, if the level's rounds agree."""

NEAR_BEST = 0.5
"""Share of the best rate of the first round. If a level's rate is under this share, further rounds leave out the level.
"""

TRIES = 3
"""Largest number of tries for a window. A window is tried again if other processes took the cores."""

BUDGET_S = 15.0
"""Time limit in seconds, from the start of the first round. A further round begins only if the round is expected to end
within the limit. The first round has no limit.
"""

WINDOW_S, WINDOW_S_MAX = 0.3, 3.0
"""Shortest and longest counted time of a load, in seconds. Between these limits, the counted time is ``RESPONSES``
response times of one connection."""

RESPONSES = 20
"""Counted time of a load, as a number of response times with one connection."""

LONGER = 5
"""Factor by which a repeated window is longer. A window is repeated if it had no reply and no error."""

WARM_UP_S, OPEN_WARM_UP_S = 0.1, 0.5
"""Seconds of warm-up before a window of a closed loop, and before a window of an open loop. The initial queue of an
open loop drains during the warm-up.
"""

TIMEOUT_S = 10.0
"""Longest time for a reply, in seconds. A server that needs more time cannot be measured here."""

NO_GIL = re.compile(r"python3\.\d+t\b")
"""Pattern that occurs in the path of a program or library only if the Python has no GIL."""

Watch = Callable[[str], None]
"""Function that shows the progress. Before each step of the measurement, the function gets a few words on this step."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Address of the server, and the request to send."""

    transport: str
    address: Address
    request: RequestType | None
    """Method and payload; None for the stock service's Lookup."""
    stocks: tuple[str, ...]
    credentials: ClientCredentials = NO_CREDENTIALS

    def plan(self, connections: int, duration_s: float, rate_hz: float | None = None, seed: int = 1) -> LoadPlan:
        """Plan of a load from one client process: a closed loop, or an open loop at ``rate_hz``."""
        return LoadPlan(
            transport=self.transport,
            address=self.address,
            clients=1,
            mix={self.request.name if self.request else "lookup": 1.0},
            stocks=self.stocks,
            warm_up_s=WARM_UP_S if rate_hz is None else OPEN_WARM_UP_S,
            duration_s=duration_s,
            connections_per_client=connections,
            timeout_s=TIMEOUT_S,
            seed=seed,
            request_types=(self.request,) if self.request else (),
            rate_hz=rate_hz,
            credentials=self.credentials,
        )


@dataclass(frozen=True, slots=True)
class Server:
    """Processes of a server on this machine.

    ``pids`` is empty if the server is on another machine, or if this user may not read the server's processes.
    """

    pids: tuple[int, ...]

    def processor_s(self) -> float | None:
        """Processor time of all processes so far, in seconds; None if unknown."""
        if not self.pids:
            return None
        try:
            return processes_cpu_ns(self.pids) / 1e9
        except Unavailable:
            return None

    def has_gil(self) -> bool:
        """True if the server runs on a Python with a GIL, or if this user may not read the name of the server's
        program.

        False for a Python without a GIL, and for a program that is not Python.
        """
        try:
            programs = [Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace") for pid in self.pids]
            programs += [psutil.Process(pid).exe() for pid in self.pids]
        except (OSError, psutil.Error):
            return True
        is_python = any("python" in program for program in programs)
        return not programs or (is_python and not any(NO_GIL.search(program) for program in programs))


def server_at(address: Address) -> Server:
    """Processes that listen at the address, and their child processes. Empty if this user may not read the processor
    time of these processes.
    """
    found: dict[int, None] = {}
    for pid in listening(address).pids:
        with contextlib.suppress(psutil.Error):  # the process has ended
            children = psutil.Process(pid).children(recursive=True)
            found |= dict.fromkeys([pid, *(child.pid for child in children)])
    server = Server(tuple(found))
    return server if server.processor_s() is not None else Server(())


def ask(asked: Asked, server: Server, watch: Watch) -> tuple[Level, ...]:
    """Measures the levels in ascending order until the rate stops growing. Then measures the levels near the best level
    again, in turn. Blocks for about half a minute. Raises the errors of ``loaded``."""
    long_s = alone_s(asked, server, watch)
    load = partial(loaded, asked, server, window_s=window_s(long_s))
    return by_turns(CONNECTIONS, load, "connections", watch, is_over=has_stopped)


def alone_s(asked: Asked, server: Server, watch: Watch) -> float:
    """Response time with one connection, in seconds. Blocks for the time of a window. Raises the errors of
    ``loaded``."""
    watch("1 connection")
    return 1 / loaded(asked, server, 1, WINDOW_S).throughput_hz


def window_s(response_s: float) -> float:
    """Counted time of a load in seconds. ``response_s``: the server's response time with one connection."""
    return min(WINDOW_S_MAX, max(WINDOW_S, RESPONSES * response_s))


def has_stopped(rates_hz: Sequence[float]) -> bool:
    """True if no rate of the last two levels reaches ``GROWS`` times the best rate of the earlier levels. ``rates_hz``:
    the rates of the levels, in ascending order of the levels."""
    return len(rates_hz) > 2 and max(rates_hz[-2:]) < GROWS * max(rates_hz[:-2])


def by_turns(
    levels: Sequence[int],
    load: Callable[[int], Load],
    what: str,
    watch: Watch,
    is_over: Callable[[Sequence[float]], bool] | None = None,
) -> tuple[Level, ...]:
    """Measures each level once, up to the level at which ``is_over`` is true. Then measures the levels near the best
    level in turn, until the rounds agree or ``BUDGET_S`` is over. Blocks. Raises the errors of ``load``.

    ``load`` loads a level for one window. ``what``: unit of the levels, for ``watch``. ``is_over`` gets the first
    round's rates so far. If this command started the servers, ``is_over`` must be None. All processes outside this
    command then count as other programs.
    """
    load = partial(_undisturbed, load, is_over is None)
    began_s = time.monotonic()
    seen: dict[int, list[Load]] = {}
    for level in levels:
        watch(f"{level} {what}, round 1")
        seen[level] = [load(level)]
        if is_over is not None and is_over([rounds[0].throughput_hz for rounds in seen.values()]):
            break
    round_s = time.monotonic() - began_s
    least_hz = NEAR_BEST * max(rounds[0].throughput_hz for rounds in seen.values())
    near = [level for level, rounds in seen.items() if rounds[0].throughput_hz >= least_hz]
    for number in range(2, ROUNDS + 1):
        over_s = time.monotonic() - began_s + round_s * len(near) / len(seen)
        if over_s > BUDGET_S or (number > ROUNDS_LEAST and all(_agree(seen[level]) for level in near)):
            break
        for level in near:
            watch(f"{level} {what}, round {number} of {ROUNDS} at most")
            seen[level].append(load(level))
    return tuple(Level(level, tuple(rounds)) for level, rounds in seen.items())


def _undisturbed(load: Callable[[int], Load], is_alone: bool, level: int) -> Load:
    """Loads a level again and again, until other processes do not disturb the window. After ``TRIES`` disturbed tries,
    the last load is marked as disturbed. ``is_alone``: true if this command started every server. All other processes
    then count as other programs.
    """
    for _ in range(TRIES):
        machine = MachineWatch(is_alone)
        found, others = load(level), machine.seen()
        if not LIMITS.robbed(others.lost_ticks, others.duration_s, len(cores())):
            return found
    return replace(found, is_disturbed=True)


def _agree(rounds: Sequence[Load]) -> bool:
    """True if the highest rate of a level's rounds is at most ``AGREE`` times the lowest rate."""
    rates_hz = [load.throughput_hz for load in rounds]
    return max(rates_hz) <= AGREE * min(rates_hz)


def loaded(asked: Asked, server: Server, connections: int, window_s: float, rate_hz: float | None = None) -> Load:
    """Loads the server for one window, in an open loop if ``rate_hz`` is given. Blocks for the window and the warm-up.

    If a window has no reply and no error, a longer window is measured. Raises Unavailable if no server gives a valid
    reply, and KeyboardInterrupt after Ctrl-C.
    """
    before_s = server.processor_s()
    result = fleet.run(asked.plan(connections, window_s, rate_hz))
    after_s = server.processor_s()
    if result.interrupted:
        raise KeyboardInterrupt
    every = result.requests[ALL]
    if not every.count or every.p99_us is None:
        if not result.errors and window_s < TIMEOUT_S:
            return loaded(asked, server, connections, min(TIMEOUT_S, LONGER * window_s), rate_hz)
        errors = ", ".join(f"{count} {kind}" for kind, count in result.errors.items()) or "none"
        at = shown_address(asked.address)
        spoken = asked.transport if asked.credentials.authority else f"{asked.transport} without TLS"
        known = f"does it speak {spoken} (--transport, --tls-ca), and know this call (--call)?"
        raise Unavailable(f"{at} gave no valid reply within {window_s:g} s; errors: {errors}; {known}")
    processor_s = None
    if before_s is not None and after_s is not None and result.recorded:
        processor_s = (after_s - before_s) / result.recorded
    return Load(connections, result.throughput_hz, every.p99_us / 1e6, processor_s, result.client_cpu_share)
