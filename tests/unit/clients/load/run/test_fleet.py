"""Client processes against real servers: the start, the results, and the end of the processes."""

import dataclasses
import multiprocessing.forkserver
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from clients.load.plan.load_plan import CLIENT_KINDS, ClientKind, ConnectionPolicy
from clients.load.plan.schedule import Arrivals
from clients.load.record.result import ALL
from clients.load.run import fleet, priority
from clients.load.run.fleet import Progress
from stock_service.rpc.errors import Unavailable
from stock_service.rpc.transports import TRANSPORTS
from tests.covering import pairs
from tests.unit.clients.load.run.fleet_bench import (
    CONNECTIONS,
    MIX,
    assert_accounted,
    at_measuring,
    client_pids,
    plan_on,
    run_in_time,
    serving,
    spoken,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warmed")]


@pytest.mark.parametrize(
    ("transport", "client", "policy", "connections", "rate_hz"),
    spoken(pairs(TRANSPORTS, CLIENT_KINDS, ("kept-alive", "per-request"), (1, 3), (None, 100.0))),
)
def test_a_run_counts_what_it_sent(
    transport: str, client: ClientKind, policy: ConnectionPolicy, connections: int, rate_hz: float | None
) -> None:
    """Every kind of load on every transport: all requests answered and accounted for, all connections at work."""
    duration_s = 0.25 if policy == "kept-alive" and rate_hz is None else 0.45  # requests of each type
    with serving(transport) as where:
        plan = plan_on(transport, where, connection=policy, connections_per_client=connections, client=client)
        result = run_in_time(dataclasses.replace(plan, rate_hz=rate_hz, duration_s=duration_s))
    assert_accounted(result)
    assert not result.interrupted
    assert result.started_clients == 2
    assert (result.starved_clients, result.starved_connections) == (0, 0)
    assert result.sending_connections == 2 * connections
    for name in MIX:
        request = result.requests[name]
        assert request.outcomes == {"OK": request.count}
        assert request.response.get_total_count() == request.service.get_total_count() == request.count > 0
    every = result.requests[ALL]
    assert every.count == sum(result.requests[name].count for name in MIX)
    assert result.throughput_hz == (every.count if rate_hz is None else result.completed) / result.duration_s
    assert result.connect_us is not None
    assert result.connect_us.count >= 2 * connections
    assert result.first_call_us is not None
    assert result.first_call_us.count == 2 * connections
    assert 0 < result.client_cpu_share_mean <= result.client_cpu_share
    assert client_pids() == []


@pytest.mark.alone
@pytest.mark.parametrize(
    ("client", "connections", "arrivals"),
    [("lean", 1, "constant"), ("lean", 4, "constant"), ("lean", 4, "poisson"), ("library", 2, "constant")],
)
def test_an_open_loop_offers_its_rate(client: ClientKind, connections: int, arrivals: Arrivals) -> None:
    """An open loop's window has the declared number of due requests. Constant gaps are constant for all clients
    together and for each."""
    rate_hz = 300.0
    with serving("sockets") as where:
        plan = plan_on("sockets", where, client=client, connections_per_client=connections, keep_records=True)
        result = run_in_time(dataclasses.replace(plan, rate_hz=rate_hz, arrivals=arrivals, duration_s=0.5))
    assert_accounted(result)
    expected = rate_hz * result.duration_s
    chance = 2 if arrivals == "constant" else 5 * expected**0.5
    assert result.requests[ALL].count == pytest.approx(expected, abs=chance)
    assert result.late_us is not None
    assert result.late_us.count == result.requests[ALL].count
    raw = result.raw
    assert raw is not None
    assert (len(raw.due_ns), int(raw.first.sum())) == (result.recorded, 2 * connections)
    if arrivals == "constant":
        begun_ns = max(raw.due_ns[~raw.first & (raw.connection == each)].min() for each in set(raw.connection.tolist()))
        scheduled = ~raw.first & (raw.due_ns >= begun_ns)  # from when every client's schedule had begun
        for mine, gap_ns in ((True, 1e9 / rate_hz), (raw.connection < connections, 2e9 / rate_hz)):
            due = np.sort(raw.due_ns[scheduled & mine])
            assert np.abs(np.diff(due) - gap_ns).max() <= 1


@pytest.mark.skipif(not priority.allowed(), reason="no right to real-time priority here: run as root")
def test_a_client_has_real_time_priority_where_it_is_asked_for() -> None:
    """All threads of such a client have real-time priority before the client sends. This process and other clients do
    not have it."""
    seen: set[int] = set()

    def watch(progress: Progress) -> None:
        if progress.phase == "measuring":
            threads = (thread.id for pid in client_pids() for thread in psutil.Process(pid).threads())
            seen.update(map(os.sched_getscheduler, threads))

    for real_time, policy in ((True, os.SCHED_FIFO), (False, os.SCHED_OTHER)):
        seen.clear()
        with serving("sockets") as where:
            plan = plan_on("sockets", where, clients=1, client="library", connections_per_client=2, real_time=real_time)
            plan = dataclasses.replace(plan, rate_hz=100.0)  # so that it sleeps: other tests need its core
            assert_accounted(fleet.run(plan, watch))
        assert seen == {policy}
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_starved_connections_of_one_client_are_counted() -> None:
    """Starved connections are counted, even if other connections of the client are served."""
    with serving("sockets", CONNECTIONS, workers=2) as where:
        result = fleet.run(plan_on("sockets", where, clients=1, connections_per_client=5))
    assert (result.starved_clients, result.starved_connections, result.sending_connections) == (0, 3, 2)
    assert result.errors == {}


@pytest.mark.parametrize("client", CLIENT_KINDS)
def test_nobody_there_is_a_fault(client: ClientKind) -> None:
    """A run without a server is Unavailable."""
    with serving("sockets") as where:
        pass
    plan = plan_on("sockets", where, client=client, timeout_s=0.3)
    with pytest.raises(Unavailable):
        fleet.run(plan)
    assert client_pids() == []


def test_the_run_is_watched_phase_by_phase() -> None:
    """The watch sees every phase in order, with growing elapsed time and a growing number of requests."""
    seen: list[Progress] = []
    with serving("sockets") as where:
        fleet.run(plan_on("sockets", where, duration_s=0.5), seen.append)
    phases = [progress.phase for progress in seen]
    assert list(dict.fromkeys(phases)) == ["starting", "standing", "warm-up", "measuring", "finishing"]
    assert phases.count("standing") == 1
    assert phases == sorted(phases, key=list(dict.fromkeys(phases)).index)
    running = [progress for progress in seen if progress.phase != "starting"]
    assert [progress.elapsed_s for progress in running] == sorted(progress.elapsed_s for progress in running)
    assert all(progress.elapsed_s + progress.remaining_s >= 0.54 for progress in running)
    assert seen[-1].requests > 0


@pytest.mark.skipif(sys.platform != "linux", reason="affinity is Linux's")
def test_clients_keep_to_their_cores_and_get_no_ctrl_c() -> None:
    """The clients run on the cores of the plan. A terminal sends Ctrl-C to the clients, too: clients and fork server
    have it blocked, from the very first on."""
    core = min(os.sched_getaffinity(0))
    seen: list[list[int]] = []
    blocked: list[bool] = []

    def look() -> None:
        server_pid = multiprocessing.forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
        seen.extend(psutil.Process(pid).cpu_affinity() for pid in client_pids())
        for pid in (server_pid, *client_pids()):
            status = Path(f"/proc/{pid}/status").read_text()
            (mask,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigBlk"))
            blocked.append(bool(int(mask, 16) >> (signal.SIGINT - 1) & 1))

    with serving("sockets") as where:
        result = fleet.run(plan_on("sockets", where, cpus=(core,), duration_s=1.0), at_measuring(look))
        anywhere = fleet.run(plan_on("sockets", where, duration_s=0.1))
    assert (seen, blocked) == ([[core], [core]], [True, True, True])
    assert (result.cores, anywhere.cores) == (1, len(os.sched_getaffinity(0)))


def run_with(limits: str, *words: str) -> str:
    """Python's standard output and error, where a shell has set limits first."""
    command = ["sh", "-c", f'{limits} && exec "$@"', "sh", sys.executable, *words]
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False
    )
    return ended.stdout


def test_the_limit_of_descriptors_is_raised_for_the_clients() -> None:
    """The limit of descriptors is raised as far as the clients need, and never lowered. More than the system allows is
    refused in a line."""
    look = (
        "import resource as r; from clients.load.run import processes\n"
        "for clients in (24, 1): processes.make_room(clients); print(r.getrlimit(r.RLIMIT_NOFILE))"
    )
    assert run_with("ulimit -n 500 && ulimit -Sn 64", "-c", look) == "(160, 500)\n" * 2
    assert run_with("ulimit -n 100", "-m", "clients.load", "--clients", "24") == (
        "python -m clients.load: --clients: got 24, allowed: up to 9, or more open files than 100 (ulimit -Hn) "
        "(--help lists the options)\n"
    )


def test_more_clients_run_than_the_soft_limit_has_room_for() -> None:
    """All processes are started, and each reports."""
    with serving("sockets", workers=2) as (host, port):
        server = ("--transport", "sockets", "--address", f"{host}:{port}")
        times = ("--warm-up-s", "0.1", "--duration-s", "0.2", "--no-floor")
        said = run_with("ulimit -Sn 40", "-m", "clients.load", *server, *times, "--clients", "12")
    assert "12 clients · lean" in said
    assert "Traceback" not in said
    assert "client_lost" not in said
