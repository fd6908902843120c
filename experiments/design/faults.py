"""Faults: observations in a block that contradict a factor's level. Gate 3 of the judgement checks every factor."""

from collections.abc import Callable
from dataclasses import dataclass

from experiments.design.levels import Level, Levels, shown
from experiments.peers import PEER_CLIENT, PYTHON, client_takes
from experiments.services import OURS


@dataclass(frozen=True, slots=True)
class Watched:
    """Observations of an arm and its server in a block."""

    threads: int | None
    """Number of threads of all processes of the server together, after the last slice. None for a server that ran
    already."""
    processes: int | None
    """Number of processes of the server. A parent of several processes is counted too. None for a server that ran
    already, or in an older recording."""
    connections: int | None
    """Number of open connections of the server after the last slice. None for a server that ran already, or if
    connections are closed after each window."""
    updates: int
    """Number of updates that the price updater sent and the server answered."""
    at_work: int | None = None
    """Number of threads of the server's executor that have run requests. None if unknown."""


def few_threads(levels: Levels, seen: Watched) -> str | None:
    """A fault in words if one of our servers has a fixed pool, and has fewer threads than the arm declares. Otherwise
    None."""
    if (
        levels["service"] not in OURS
        or levels["language"] != PYTHON
        or levels["executor"] not in ("static-pool", "leader-followers")
        or seen.threads is None
    ):
        return None  # another project's server has no pool of ours; other executors start threads on demand
    declared, processes = int(str(levels["workers"])), int(str(levels["processes"]))
    least = processes * (declared + 1) + (processes > 1)  # the main threads, and the parent of several processes
    if seen.threads >= least:
        return None
    of_each = "" if processes == 1 else f", in each of {processes} processes"
    return f"threads of its server: {seen.threads}, declared: {declared} workers and the main thread{of_each}"


def one_thread(levels: Levels, seen: Watched) -> str | None:
    """A fault in words if a single thread of a pool ran all requests, although several connections sent requests in a
    closed loop. Otherwise None."""
    pooled = levels["executor"] in ("static-pool", "thread-pool") and int(str(levels["workers"])) > 1
    others_wait = levels["rate_hz"] is None and int(str(levels["clients"])) * int(str(levels["connections"])) > 1
    if not pooled or not others_wait or seen.at_work != 1:
        return None
    return f"one thread of its {levels['executor']} ran all requests, declared: {levels['workers']} workers"


def other_processes(levels: Levels, seen: Watched) -> str | None:
    """A fault in words if one of our servers does not have the number of processes that the arm declares. Otherwise
    None."""
    if levels["service"] not in OURS or levels["language"] != PYTHON or seen.processes is None:
        return None  # another project's server chooses its number of processes
    declared = int(str(levels["processes"]))
    if seen.processes == declared + (declared > 1):
        return None
    parent = "" if declared == 1 else " and a parent"
    return f"processes of its server: {seen.processes}, declared: {declared}{parent}"


def few_connections(levels: Levels, seen: Watched) -> str | None:
    """A fault in words if the server had fewer open connections than the arm declares. Otherwise None."""
    declared = int(str(levels["clients"])) * int(str(levels["connections"]))
    if seen.connections is None or seen.connections >= declared:
        return None
    return f"its server had {seen.connections} connections, declared: {declared}"


def no_update(levels: Levels, seen: Watched) -> str | None:
    """A fault in words if the arm has a price updater, but the server answered none of its updates. Otherwise None."""
    return None if seen.updates or not levels["updater"] else "no update was answered, declared: a price updater"


def not_told(name: str, default: Level, *programs: str) -> Callable[[Levels, Watched], str | None]:
    """Makes a function that checks if an arm's client has an option for the factor ``name``.

    The clients ``programs`` and some peers' clients have the option. For any other client, the function returns a fault
    in words if the level is not ``default``. Otherwise the function returns None.
    """

    def fault(levels: Levels, _: Watched) -> str | None:
        served = str(levels["service"]), str(levels["language"]), str(levels["transport"])
        if levels[name] == default or levels["client"] in programs:
            return None
        if levels["client"] == PEER_CLIENT and client_takes(served, name):
            return None
        return f"its client has no option {name}, declared: {shown(levels[name])}"

    return fault
