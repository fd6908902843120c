"""Servers on the cores of ``--cpus``, and the last line of ``--stats`` about these cores."""

import os

import pytest

from tests.conformance.running import until
from tests.end_to_end.process import STARTS, Server, serve

pytestmark = pytest.mark.slow

CORES = tuple(sorted(os.sched_getaffinity(0)))


def cores_of(pid: int) -> set[frozenset[int]]:
    """The cores on which a server's threads may run."""
    return {frozenset(os.sched_getaffinity(int(task))) for task in os.listdir(f"/proc/{pid}/task")}


def until_all_run_on(number: int, pid: int) -> None:
    """Waits until every thread may run on this number of cores. A server on a busy machine may still be choosing
    cores."""
    until(lambda: [len(place) for place in cores_of(pid)] == [number], "its threads are where they belong")


@pytest.mark.parametrize(
    ("given", "several"), [((), False), (("--cpus", "none"), True), (("--cpus", str(CORES[-1])), False)]
)
def test_all_threads_are_where_it_says(given: tuple[str, ...], several: bool) -> None:
    """By default all threads are on one core, and the last line names it."""
    with Server((*STARTS["socket_server"], "--stats", *given)) as server:
        until_all_run_on(len(CORES) if several else 1, server.pid)
        ended = server.stopped()
    said = ended.stderr.splitlines()[-1]
    assert said.startswith("stats: ")
    assert "s computed" in said
    if given[-1:] == (str(CORES[-1]),):
        assert said.endswith(f"on core {CORES[-1]}")


@pytest.mark.parametrize("transport", ["grpc", "grpc_aio"])
def test_a_library_s_own_threads_are_there_too(transport: str) -> None:
    """Threads that grpcio starts before the server exists are on the chosen core, too."""
    with Server(serve(transport)) as server:
        until_all_run_on(1, server.pid)
