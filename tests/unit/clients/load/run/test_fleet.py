"""Client processes against real servers: how they start, what they see, and that none is left."""

import dataclasses
import itertools
import multiprocessing.forkserver
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

from clients.load.plan.load_plan import CLIENT_KINDS, ClientKind, ConnectionPolicy, LoadPlan
from clients.load.plan.schedule import Arrivals
from clients.load.record.result import ALL, CLIENT_LOST
from clients.load.run import fleet, priority
from clients.load.run.fleet import Progress
from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.errors import Unavailable
from stock_service.rpc.service import Service
from stock_service.rpc.transports import TRANSPORTS, Address, ServeOptions, load, sockets
from stock_service.rpc.transports.sockets import SocketOptions
from stock_service.trading.service import LOOKUP
from tests.raw_service import raw
from tests.unit.clients.fakes import service
from tests.unit.clients.load.run.fleet_bench import assert_accounted, half, run_in_time

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_warmed")]

MIX = {"lookup": 2.0, "trade": 1.0, "update": 1.0}
STOCKS = ("GameStart", "FishCo")

REQUESTS, CONNECTIONS = ServeOptions(), ServeOptions(own=SocketOptions(dispatch="connection"))
"""What one task of the server's threads is."""


@pytest.fixture(scope="module")
def _warmed() -> None:
    """The fork server runs: what it keeps open is no test's doing."""
    fleet.warm()


@contextmanager
def serving(transport: str, options: ServeOptions = REQUESTS, workers: int = 8) -> Iterator[Address]:
    """A stock service on a transport, in this process."""
    pool = StaticPool(workers, 256)
    server = load(transport).serve(service(), pool, options)
    try:
        yield server.address
    finally:
        server.stop(1.0)
        pool.stop(1.0)


def _plan(transport: str, where: Address, **changes: object) -> LoadPlan:
    plan = LoadPlan(transport, where, 2, MIX, STOCKS, warm_up_s=0.05, duration_s=0.25)
    return dataclasses.replace(plan, **changes)  # type: ignore[arg-type]


def client_pids() -> list[int]:
    """The client processes that run: what the fork server has forked."""
    server_pid = multiprocessing.forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    return [child.pid for child in psutil.Process(server_pid).children()]


@pytest.mark.parametrize(
    ("transport", "client", "policy", "connections", "rate_hz"),
    half(TRANSPORTS, CLIENT_KINDS, ("kept-alive", "per-request"), (1, 3), (None, 60.0)),
)
def test_a_run_counts_what_it_sent(
    transport: str, client: ClientKind, policy: ConnectionPolicy, connections: int, rate_hz: float | None
) -> None:
    """Every kind of load on every transport: all requests answered and accounted for, all connections at work."""
    duration_s = 0.25 if policy == "kept-alive" and rate_hz is None else 0.75  # some of each kind, on busy cores too
    with serving(transport) as where:
        plan = _plan(transport, where, connection=policy, connections_per_client=connections, client=client)
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


@pytest.mark.parametrize(
    ("client", "connections", "arrivals"),
    [("lean", 1, "constant"), ("lean", 4, "constant"), ("lean", 4, "poisson"), ("library", 2, "constant")],
)
def test_an_open_loop_offers_its_rate(client: ClientKind, connections: int, arrivals: Arrivals) -> None:
    """As many requests were due in the window as it says; constant gaps are so for all clients and for each of them."""
    rate_hz = 300.0
    with serving("sockets") as where:
        plan = _plan("sockets", where, client=client, connections_per_client=connections, keep_records=True)
        result = run_in_time(dataclasses.replace(plan, rate_hz=rate_hz, arrivals=arrivals, duration_s=0.5))
    assert_accounted(result)
    expected = rate_hz * result.duration_s
    chance = 2 if arrivals == "constant" else 5 * expected**0.5
    assert result.requests[ALL].count == pytest.approx(expected, abs=chance)
    assert result.late_us is not None
    assert result.late_us.count == result.requests[ALL].count
    raw = result.raw
    assert raw is not None
    if arrivals == "constant":
        begun_ns = max(raw.due_ns[~raw.first & (raw.connection == each)].min() for each in set(raw.connection.tolist()))
        scheduled = ~raw.first & (raw.due_ns >= begun_ns)  # from when every client's schedule had begun
        for mine, gap_ns in ((True, 1e9 / rate_hz), (raw.connection < connections, 2e9 / rate_hz)):
            due = np.sort(raw.due_ns[scheduled & mine])
            assert np.abs(np.diff(due) - gap_ns).max() <= 1


@pytest.mark.skipif(not priority.allowed(), reason="no right to real-time priority here: run as root")
def test_a_client_has_real_time_priority_where_it_is_asked_for() -> None:
    """All of its threads, from before it sends; this process, and a client that is not asked to, do not."""
    seen: set[int] = set()

    def watch(progress: Progress) -> None:
        if progress.phase == "measuring":
            threads = (thread.id for pid in client_pids() for thread in psutil.Process(pid).threads())
            seen.update(map(os.sched_getscheduler, threads))

    for real_time, policy in ((True, os.SCHED_FIFO), (False, os.SCHED_OTHER)):
        seen.clear()
        with serving("sockets") as where:
            plan = _plan("sockets", where, clients=1, client="library", connections_per_client=2, real_time=real_time)
            plan = dataclasses.replace(plan, rate_hz=100.0)  # so that it sleeps: other tests need its core
            assert_accounted(fleet.run(plan, watch))
        assert seen == {policy}
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_raw_records_are_kept_where_they_are_asked_for() -> None:
    """Every request that was recorded, of all clients and connections."""
    with serving("sockets") as where:
        result = fleet.run(_plan("sockets", where, connections_per_client=2, keep_records=True))
    assert result.raw is not None
    assert len(result.raw.due_ns) == result.recorded
    assert set(result.raw.connection.tolist()) == {0, 1, 2, 3}
    assert int(result.raw.first.sum()) == 4


def test_starved_clients_are_counted_and_no_error() -> None:
    """A server whose one thread is one connection's: the others wait from beginning to end, and stop nothing."""
    with serving("sockets", CONNECTIONS, workers=1) as where:
        result = fleet.run(_plan("sockets", where, clients=3))
    assert (result.started_clients, result.starved_clients, result.sending_connections) == (3, 2, 1)
    assert result.errors == {}
    assert result.requests[ALL].count > 0


def test_starved_connections_of_one_client_are_counted() -> None:
    """As many as there are, though their client has others that are served."""
    with serving("sockets", CONNECTIONS, workers=2) as where:
        result = fleet.run(_plan("sockets", where, clients=1, connections_per_client=5))
    assert (result.starved_clients, result.starved_connections, result.sending_connections) == (0, 3, 2)
    assert result.errors == {}


@pytest.mark.parametrize("client", CLIENT_KINDS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_nobody_there_is_a_fault(transport: str, client: ClientKind) -> None:
    """Unavailable, where no client could connect."""
    with serving(transport) as where:
        pass
    plan = _plan(transport, where, client=client, timeout_s=0.3)
    with pytest.raises(Unavailable):
        fleet.run(plan)
    assert client_pids() == []


def test_the_run_is_watched_phase_by_phase() -> None:
    """The time goes on, the time left goes down, and requests are seen to be done."""
    seen: list[Progress] = []
    with serving("sockets") as where:
        fleet.run(_plan("sockets", where, duration_s=0.5), seen.append)
    phases = [progress.phase for progress in seen]
    assert list(dict.fromkeys(phases)) == ["starting", "warm-up", "measuring", "finishing"]
    assert phases == sorted(phases, key=list(dict.fromkeys(phases)).index)
    running = [progress for progress in seen if progress.phase != "starting"]
    assert [progress.elapsed_s for progress in running] == sorted(progress.elapsed_s for progress in running)
    assert all(progress.elapsed_s + progress.remaining_s >= 0.54 for progress in running)
    assert seen[-1].requests > 0


ANSWERED = 150
"""More than eight connections answer between two signs of progress: of so many some were sent in the window."""


def at_measuring(act: Callable[[], None], often: bool = False) -> fleet.Watch:
    """Does something once requests of the window are seen to be answered; ``often``: and at every later look."""
    began: list[int] = []
    acted: list[bool] = []

    def watch(progress: Progress) -> None:
        if progress.phase == "measuring":
            began.append(progress.requests)
        if (acted and often) or (began and not acted and progress.requests >= began[0] + ANSWERED):
            acted.append(True)
            act()

    return watch


@pytest.mark.parametrize(
    ("transport", "client", "connections", "rate_hz"), half(TRANSPORTS, CLIENT_KINDS, (1, 4), (None, 300.0))
)
def test_an_interrupt_keeps_what_was_measured(
    transport: str, client: ClientKind, connections: int, rate_hz: float | None
) -> None:
    """Ctrl-C in the middle: the window ends there, nobody and nothing is lost and no process left."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with serving(transport) as where:
        plan = _plan(transport, where, duration_s=30.0, connections_per_client=connections, client=client)
        result = fleet.run(dataclasses.replace(plan, rate_hz=rate_hz), at_measuring(interrupt))
    assert result.interrupted
    assert_accounted(result)
    assert 0 < result.duration_s < 20
    assert result.requests[ALL].count > 0
    assert client_pids() == []


@pytest.mark.parametrize("phase", ["starting", "warm-up", "measuring", "finishing"])
def test_ctrl_c_is_kept_in_every_phase_and_as_often_as_it_comes(phase: str) -> None:
    """The signal itself, again and again: the run ends early, with what was measured; no process is left."""
    pressed: list[str] = []

    def press() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def press_in_phase(progress: Progress) -> None:
        if pressed or progress.phase == phase:
            pressed.append(progress.phase)
            press()

    watch = at_measuring(press, often=True) if phase == "measuring" else press_in_phase
    with serving("sockets") as where:
        duration_s = 0.3 if phase == "finishing" else 30.0
        result = fleet.run(_plan("sockets", where, connections_per_client=3, duration_s=duration_s), watch)
    assert result.interrupted
    assert result.errors == {}
    assert result.began == result.recorded
    assert (result.requests[ALL].count > 0) == (phase in ("measuring", "finishing"))
    assert client_pids() == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_clients_do_not_get_ctrl_c() -> None:
    """A terminal sends it to them as well: they and the fork server have it blocked, from the very first on."""
    blocked: list[int] = []

    def look() -> None:
        server_pid = multiprocessing.forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
        for pid in (server_pid, *client_pids()):
            status = Path(f"/proc/{pid}/status").read_text()
            (mask,) = [line for line in status.splitlines() if line.startswith("SigBlk")]
            blocked.append(int(mask.split()[1], 16) >> (signal.SIGINT - 1) & 1)

    with serving("sockets") as where:
        fleet.run(_plan("sockets", where, duration_s=1.0), at_measuring(look))
    assert blocked == [1, 1, 1]


def test_ctrl_c_while_the_last_replies_are_waited_for_loses_nothing() -> None:
    """A server that hangs in the end: the window is kept, though clients would wait for their timeout."""
    gate = threading.Event()

    def slow(payload: bytes) -> bytes:
        gate.wait(20)
        return answer(payload)

    stocks = service()
    answer = stocks.methods[LOOKUP].answer()
    calls = itertools.count()
    lookup = raw(lambda p: answer(p) if next(calls) < 200 else slow(p))
    hanging = Service(stocks.name, {**stocks.methods, LOOKUP: lookup})
    pool = StaticPool(8, 256)
    server = sockets.serve(hanging, pool, REQUESTS)

    def press(progress: Progress) -> None:
        if progress.phase == "finishing":
            os.kill(os.getpid(), signal.SIGINT)

    try:
        plan = _plan("sockets", server.address, connections_per_client=2, mix={"lookup": 1.0}, timeout_s=15.0)
        result = fleet.run(plan, press)
    finally:
        gate.set()
        server.stop(1.0)
        pool.stop(1.0)
    assert (result.interrupted, result.errors) == (True, {})
    assert result.recorded >= 190
    assert result.began == result.recorded


def test_an_interrupt_does_not_wait_for_starved_clients() -> None:
    """They sit in their first call, and are counted as starved."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with serving("sockets", CONNECTIONS, workers=1) as where:
        result = fleet.run(_plan("sockets", where, clients=3, duration_s=30.0), at_measuring(interrupt))
    assert (result.interrupted, result.starved_clients, result.errors) == (True, 2, {})


def test_a_client_that_dies_is_counted_as_lost() -> None:
    """The run goes on without it, and says so among the errors."""
    with serving("sockets") as where:
        plan = _plan("sockets", where, duration_s=1.0)
        result = fleet.run(plan, at_measuring(lambda: os.kill(client_pids()[0], signal.SIGKILL)))
    assert result.errors == {CLIENT_LOST: 1}
    assert (result.started_clients, result.starved_clients) == (2, 1)
    assert result.requests[ALL].count > 0


def test_a_server_that_goes_away_leaves_errors() -> None:
    """Of those that were under way, and of those that could not connect any more."""
    pool = StaticPool(4, 64)
    doomed = sockets.serve(service(), pool, REQUESTS)

    def stop() -> None:
        doomed.stop(0.0)

    result = fleet.run(_plan("sockets", doomed.address, duration_s=1.0), at_measuring(stop))
    pool.stop(1.0)
    assert result.errors.keys() == {"unavailable"}
    assert result.requests[ALL].count > 0


@pytest.mark.skipif(sys.platform != "linux", reason="affinity is Linux's")
def test_clients_keep_to_their_cores() -> None:
    """Those of the plan."""
    core = min(os.sched_getaffinity(0))
    seen: list[list[int]] = []

    def look() -> None:
        seen.extend(psutil.Process(pid).cpu_affinity() for pid in client_pids())

    with serving("sockets") as where:
        result = fleet.run(_plan("sockets", where, cpus=(core,), duration_s=1.0), at_measuring(look))
        anywhere = fleet.run(_plan("sockets", where, duration_s=0.1))
    assert seen == [[core], [core]]
    assert (result.cores, anywhere.cores) == (1, len(os.sched_getaffinity(0)))


def test_a_client_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C nobody is waited for that does not report; it is counted as lost, and gone."""
    monkeypatch.setattr(fleet, "INTERRUPTED_S", 0.3)

    def interrupt() -> None:
        os.kill(client_pids()[0], signal.SIGSTOP)
        raise KeyboardInterrupt

    with serving("sockets") as where:
        result = fleet.run(_plan("sockets", where, duration_s=30.0), at_measuring(interrupt))
    assert (result.interrupted, result.errors) == (True, {CLIENT_LOST: 1})
    assert client_pids() == []


def run_with(limits: str, *words: str) -> str:
    """What Python prints, on standard output and error, where a shell has set limits first."""
    command = ["sh", "-c", f'{limits} && exec "$@"', "sh", sys.executable, *words]
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False
    )
    return ended.stdout


def test_the_limit_of_descriptors_is_raised_for_the_clients() -> None:
    """As far as they need, and never lowered; more than the system allows is refused in a line."""
    look = (
        "import resource as r; from clients.load.run import fleet\n"
        "for clients in (24, 1): fleet.make_room(clients); print(r.getrlimit(r.RLIMIT_NOFILE))"
    )
    assert run_with("ulimit -n 500 && ulimit -Sn 64", "-c", look) == "(160, 500)\n" * 2
    assert run_with("ulimit -n 100", "-m", "clients.load", "--clients", "24") == (
        "python -m clients.load: --clients: got 24, allowed: up to 9, or more open files than 100 (ulimit -Hn) "
        "(--help lists the options)\n"
    )


def test_more_clients_run_than_the_soft_limit_has_room_for() -> None:
    """The processes are all started, and sent for."""
    with serving("sockets", workers=2) as (host, port):
        server = ("--transport", "sockets", "--address", f"{host}:{port}")
        times = ("--warm-up-s", "0.1", "--duration-s", "0.2", "--no-floor")
        said = run_with("ulimit -Sn 64", "-m", "clients.load", *server, *times, "--clients", "24")
    assert "24 clients · lean" in said
    assert "Traceback" not in said
    assert "client_lost" not in said
