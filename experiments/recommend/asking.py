"""Asks a running server: loads of some connections by turns, and its processor time meanwhile.

The loads are closed loops of the lean client on 1, 2, 4 … connections, from one process. They are gone through
up to ``ROUNDS`` times, so that a neighbour's noise hits no load alone, and each load's middle window counts. The
connections stop doubling where throughput stops growing. All of it is bounded: a load window lasts 0.6 to 3 s.

Processor time is that of the processes that listen on the port, and of those that they started. It is read where the
system lets this user read it; elsewhere, and on another machine, it is None.
"""

import contextlib
import platform
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import psutil

from clients.load.plan.load_plan import LoadPlan, RequestType
from clients.load.record.result import ALL
from clients.load.record.times import Times
from clients.load.run import fleet
from experiments.recommend.seen import GROWS, Load
from stock_service.rpc.errors import Unavailable
from stock_service.rpc.transports import Address

CONNECTIONS = (1, 2, 4, 8, 16, 32, 64, 128)

ROUNDS = 3

BUDGET_S = 45.0
"""How long all loads together may take; slow servers get fewer rounds."""

AROUND_S = 0.5
"""What a window takes beside what counts: connecting, warming up, the last replies."""

WINDOW_S, WINDOW_S_MAX = 0.6, 3.0
"""How long a load counts, at least and at most; between them, twenty of the response times of one connection."""

RESPONSES = 20

LONGER = 5
"""A window in which nothing came back, and nothing failed, is repeated so many times as long."""

WARM_UP_S = 0.2

TIMEOUT_S = 10.0
"""A server that takes longer than this for a reply is beyond what is asked here."""

IDLE_S = 0.4
"""How long the server is watched at rest: what it computes then is no request's."""

NO_GIL = re.compile(r"python3\.\d+t\b")
"""The program or library of a Python that was built without a GIL."""

_LINUX = platform.system() == "Linux"

Watch = Callable[[str], None]
"""Is told what is being done, in a few words."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom to ask, and what."""

    transport: str
    address: Address
    request: RequestType | None
    """None: the stock service's lookup."""
    stocks: tuple[str, ...]

    def plan(self, connections: int, duration_s: float, rate_hz: float | None = None, seed: int = 1) -> LoadPlan:
        """A load of one client process."""
        return LoadPlan(
            transport=self.transport,
            address=self.address,
            clients=1,
            mix={self.request.name if self.request else "lookup": 1.0},
            stocks=self.stocks,
            warm_up_s=WARM_UP_S,
            duration_s=duration_s,
            connections_per_client=connections,
            timeout_s=TIMEOUT_S,
            seed=seed,
            request_types=(self.request,) if self.request else (),
            rate_hz=rate_hz,
        )


@dataclass(frozen=True, slots=True)
class Server:
    """The processes of a server on this machine. No processes: it is elsewhere, or not ours to read."""

    pids: tuple[int, ...]
    idle_share: float = 0.0
    """Of a core, what it computes at rest."""

    def processor_s(self) -> float | None:
        """Processor time so far. None where it cannot be read."""
        if not self.pids:
            return None
        try:
            return sum(map(_processor_s, self.pids))
        except (OSError, psutil.Error):
            return None

    def kernel_s(self) -> tuple[float, float]:
        """Processor time so far that the kernel took, and all of it, as its ticks of 10 ms have it; 0 where unread."""
        times = []
        for pid in self.pids:
            with contextlib.suppress(psutil.Error):
                times.append(psutil.Process(pid).cpu_times())
        return sum(each.system for each in times), sum(each.system + each.user for each in times)

    def has_gil(self) -> bool:
        """Whether it is a Python that has a GIL; True where it is not known."""
        try:
            programs = [Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace") for pid in self.pids]
            programs += [psutil.Process(pid).exe() for pid in self.pids]
        except (OSError, psutil.Error):
            return True
        is_python = any("python" in program for program in programs)
        return not programs or (is_python and not any(NO_GIL.search(program) for program in programs))


def server_at(address: Address) -> Server:
    """The server that listens there. Blocks for ``IDLE_S`` where there is one to read."""
    server = Server(_listening(address))
    before_s, began_s = server.processor_s(), time.perf_counter()
    if before_s is None:
        return Server(())
    time.sleep(IDLE_S)
    after_s = server.processor_s()
    if after_s is None:
        return Server(())
    return replace(server, idle_share=(after_s - before_s) / (time.perf_counter() - began_s))


def _listening(address: Address) -> tuple[int, ...]:
    """The processes that listen on a port of this machine, as far as this user sees them, and their children."""
    found: dict[int, None] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            ours = process.net_connections("tcp")
            if any(each.status == psutil.CONN_LISTEN and each.laddr.port == address[1] for each in ours):
                found |= dict.fromkeys([process.pid, *(child.pid for child in process.children(recursive=True))])
    return tuple(found)


def _processor_s(pid: int) -> float:
    """Of one process; from its clock in nanoseconds on Linux (``experiments/measure/programs.py``)."""
    if _LINUX:
        return time.clock_gettime(~pid << 3 | 2)
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def ask(asked: Asked, server: Server, watch: Watch, budget_s: float = BUDGET_S) -> tuple[tuple[Load, ...], float]:
    """The loads and what was seen, by connections; and the kernel's share of the server's processor time.

    Blocks for 10 s to ``budget_s``, and for a round whatever that takes: 30 s at most.

    Raises Unavailable where nothing answers, KeyboardInterrupt after Ctrl-C.
    """
    watch("1 connection")
    kernel_s, all_s = server.kernel_s()
    first = loaded(asked, server, 1, WINDOW_S)
    window_s = min(WINDOW_S_MAX, max(WINDOW_S, RESPONSES * first.mean_s))
    rounds = rounds_within(budget_s, window_s, len(CONNECTIONS), ROUNDS)
    seen: list[list[Load]] = []
    for connections in CONNECTIONS:
        watch(_step(connections, 1, rounds))
        seen.append([loaded(asked, server, connections, window_s)])
        hz = [windows[0].throughput_hz for windows in seen]
        if len(hz) > 2 and hz[-1] < GROWS * max(hz[:-2]) and hz[-2] < GROWS * max(hz[:-2]):
            break
    for number in range(2, rounds + 1):
        for windows, connections in zip(seen, CONNECTIONS, strict=False):
            watch(_step(connections, number, rounds))
            windows.append(loaded(asked, server, connections, window_s))
    kernel_after_s, all_after_s = server.kernel_s()
    kernel_share = (kernel_after_s - kernel_s) / (all_after_s - all_s) if all_after_s > all_s else 0.0
    return tuple(map(_middle, seen)), kernel_share


def _step(connections: int, number: int, rounds: int) -> str:
    return f"{connections} connection{'s' * (connections > 1)}, round {number} of {rounds}"


def rounds_within(budget_s: float, window_s: float, loads: int, most: int) -> int:
    """How many rounds of so many loads there is time for: 1 to ``most``."""
    return max(1, min(most, int(budget_s / (loads * (window_s + AROUND_S)))))


def loaded(asked: Asked, server: Server, connections: int, window_s: float, rate_hz: float | None = None) -> Load:
    """One window. Blocks for it; where the machine stood still and nothing came back, for longer ones after it.

    Raises as ``ask`` does.
    """
    before_s, began_s = server.processor_s(), time.perf_counter()
    result = fleet.run(asked.plan(connections, window_s, rate_hz))
    after_s, took_s = server.processor_s(), time.perf_counter() - began_s
    if result.interrupted:
        raise KeyboardInterrupt
    every = result.requests[ALL]
    if not every.count or every.p99_us is None:
        if not result.errors and window_s < TIMEOUT_S:
            return loaded(asked, server, connections, min(TIMEOUT_S, LONGER * window_s), rate_hz)
        errors = ", ".join(f"{count} {kind}" for kind, count in result.errors.items()) or "none"
        host, port = asked.address
        known = f"does it speak {asked.transport} (--transport), and know this call (--call)?"
        raise Unavailable(f"{host}:{port} gave no valid reply within {window_s:g} s; errors: {errors}; {known}")
    times = Times()
    for part in result.parts.values():
        times.merge(part.response)
    mean_s, deviation_s = usual_s(times)
    computed_s = None
    if before_s is not None and after_s is not None and result.recorded:
        computed_s = max(0.0, after_s - before_s - server.idle_share * took_s) / result.recorded
    share = result.client_cpu_share
    return Load(connections, result.throughput_hz, mean_s, deviation_s, every.p99_us / 1e6, computed_s, share)


def usual_s(times: Times) -> tuple[float, float]:
    """Mean and standard deviation of response times up to the 99th percentile, in seconds; of at least one."""
    lowest, highest, counts = times.buckets()
    ordinary = max(1, round(0.99 * times.count))
    kept = np.clip(ordinary - (np.cumsum(counts) - counts), 0, counts)
    middles_s = (lowest + highest) / 2e9
    mean_s = float(np.average(middles_s, weights=kept))
    return mean_s, float(np.average((middles_s - mean_s) ** 2, weights=kept)) ** 0.5


def _middle(windows: Sequence[Load]) -> Load:
    """Each number's middle over the windows of a load."""
    read = [window.processor_s for window in windows if window.processor_s is not None]
    return Load(
        connections=windows[0].connections,
        throughput_hz=median(window.throughput_hz for window in windows),
        mean_s=median(window.mean_s for window in windows),
        deviation_s=median(window.deviation_s for window in windows),
        p99_s=median(window.p99_s for window in windows),
        processor_s=median(read) if read else None,
        client_share=median(window.client_share for window in windows),
    )
