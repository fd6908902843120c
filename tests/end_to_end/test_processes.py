"""Servers of several processes: one port, one catalog, one process contract."""

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event, Semaphore

import psutil
import pytest

from clients.load.history.by_sequence import violations
from clients.remote_exchange import RemoteExchange
from stock_service.rpc.errors import InvalidRequest, Unavailable
from stock_service.rpc.transports import Connection, load
from stock_service.trading.model import LookupReply, Side, Status, Stock, TradeReply, UpdateReply
from stock_service.trading.service import LOOKUP
from tests.conformance.raw_socket import RawSocket, frame
from tests.conformance.running import refuses, until
from tests.covering import half
from tests.each_thread import OfEachThread
from tests.end_to_end.process import LOOKUP_ONE, STARTS, WAIT_S, Running, Server, run, serve
from tests.end_to_end.test_stopping import trade_on
from tests.more_methods import HANG, HANGING, PROGRAM
from tests.races.history import plan, record

pytestmark = pytest.mark.slow


def members(server: Running) -> list[psutil.Process]:
    """The processes that serve, in the order of their start."""
    return sorted(psutil.Process(server.pid).children(), key=lambda each: each.create_time())


@contextmanager
def connections_to_each(server: Server, transport: str) -> Iterator[list[Connection]]:
    """A connection to each process of a server, in the order of ``members``. The system chooses the process of a
    connection, so further connections may stay open."""
    found: dict[int, Connection] = {}
    with ExitStack() as opened:
        processes = members(server)
        while len(found) < len(processes):
            before = [len(each.net_connections()) for each in processes]
            connection = load(transport).connect(server.address, WAIT_S)
            opened.callback(connection.close)
            assert connection.call(LOOKUP, LOOKUP_ONE, WAIT_S)
            after = [len(each.net_connections()) for each in processes]
            (place,) = [place for place in range(len(processes)) if after[place] > before[place]]
            found.setdefault(place, connection)
        yield [found[place] for place in range(len(processes))]


@pytest.mark.parametrize("transport", ["sockets", "grpc_aio"])
def test_one_catalog_behind_all_processes(transport: str, rng: object, tmp_path: Path) -> None:
    """All processes share a trade, its number, and the reply to its request_id. Concurrent clients of three processes,
    with retries of each other's requests, get replies as from a sequential order.

    Other transports listen in the way of sockets. Tests below try several processes of other transports.
    """
    asked = plan(rng, threads=6, rounds=12)  # type: ignore[arg-type]
    catalog = tmp_path / "catalog.toml"
    catalog.write_text(
        "".join(
            f'[[stocks]]\nname = "{stock.name}"\nprice = {stock.price_cents / 100:.2f}\n'
            f"volume_limit = {stock.volume_limit}\n"
            for stock in (*asked.stocks, Stock("FishCo", 4250, 100))
        )
    )
    with Server(serve(transport), "--processes", "3", "--catalog", str(catalog)) as server:
        assert server.ready == f"ready 127.0.0.1:{server.address[1]}"
        with (
            connections_to_each(server, transport) as connections,
            connections_to_each(server, transport) as more,
            connections_to_each(server, transport) as last,
        ):
            every = [RemoteExchange(each, WAIT_S) for each in (*connections, *more, last[0])]
            history = record(OfEachThread(every), asked)
            one, _, other, *_ = every
            first = one.trade("FishCo", 3, Side.BUY, "id")
            number = first.sequence
            assert first == TradeReply(Status.OK, 3, number)
            assert other.lookup("FishCo") == LookupReply(Status.OK, 4250, 3, number)
            assert other.trade("FishCo", 3, Side.BUY, "id") == first
            assert other.update("FishCo", 7) == UpdateReply(Status.OK, number + 1)
            assert one.lookup("FishCo") == LookupReply(Status.OK, 7, 3, number + 1)
            with pytest.raises(InvalidRequest):
                one.trade("FishCo", 4, Side.BUY, "id")
        ended = server.stopped()
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")
    assert violations(asked.stocks, history) == []


def gone(processes: list[psutil.Process]) -> bool:
    """True if no process runs any more."""
    return not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in processes)


def hangs(client: RawSocket) -> bool:
    """True if a handler hangs at the client's process."""
    client.send(frame(2, HANGING, b""))
    reply = client.reply()
    return reply is not None and reply.payload > b"\x00"


def pending(process: int, number: signal.Signals) -> bool:
    """True if a signal to a process waits to be taken."""
    status = Path(f"/proc/{process}/status").read_text()
    (mask,) = (line.split()[1] for line in status.splitlines() if line.startswith("ShdPnd:"))
    return bool(int(mask, 16) >> number - 1 & 1)


def test_the_first_signal_behind_a_death_is_the_first_one() -> None:
    """After the death of a process the other process finishes. A signal at this time counts as the first signal. A
    process that is killed meanwhile is named, too."""
    start = (PROGRAM, "--transport", "sockets", "--processes", "2")
    with Server(start, "--grace-s", "3600", "--workers", "32") as server, ExitStack() as clients:
        asking = [clients.enter_context(RawSocket(server.address)) for _ in range(16)]  # some of them at each process
        for each in asking:
            each.send(frame(1, HANG, b""))
        until(lambda: all(map(hangs, asking)), "a handler hangs at each process")
        first, other = members(server)
        first.kill()
        until(lambda: refuses(server.address), "the other one stops accepting")
        server.signal(signal.SIGTERM)
        until(lambda: not pending(server.pid, signal.SIGTERM), "the signal is taken")
        other.kill()
        ended = server.ended()
    assert (ended.code, ended.stdout) == (1, "")
    died, killed = ended.stderr.splitlines()
    assert f"process 1 of 2 (id {first.pid}) was killed by signal 9; the others are stopped" in died
    assert f"process 2 of 2 (id {other.pid}) was killed by signal 9 while it stopped" in killed


@pytest.mark.parametrize(("number", "which"), half((signal.SIGKILL, signal.SIGTERM), (0, 1)))
def test_a_process_that_ends_ends_all(number: signal.Signals, which: int) -> None:
    """A process that is killed or stopped from outside ends all: one line names it, the others are stopped, exit code
    1."""
    with Server(STARTS["socket_server"], "--processes", "2") as server:
        processes = members(server)
        processes[which].send_signal(number)
        ended = server.ended()
        assert (ended.code, ended.stdout) == (1, "")
        how = "was killed by signal 9" if number is signal.SIGKILL else "ended with exit code 0"
        assert f"process {which + 1} of 2 (id {processes[which].pid}) {how}; the others are stopped" in ended.error
        assert gone(processes)


def test_a_process_that_ends_under_load_loses_nothing_of_the_others() -> None:
    """If one process is killed, clients of the other processes get a reply to every request that was done."""
    with Server(STARTS["grpc_server"], "--processes", "2") as server, ThreadPoolExecutor(2) as threads:
        with connections_to_each(server, "grpc") as connections:
            traded = [Semaphore(0) for _ in connections]
            traders = [
                threads.submit(trade_on, each, done.release, Event())
                for each, done in zip(connections, traded, strict=True)
            ]
            assert all(done.acquire(timeout=WAIT_S) for done in traded for _ in range(20)), "both trade"
            members(server)[0].kill()
            ended = server.ended()
            cut, stopped = (trader.result(WAIT_S) for trader in traders)
        assert ended.code == 1
        assert type(cut[1]) is type(stopped[1]) is Unavailable
        sequences = sorted(cut[0] + stopped[0])
        assert len(range(1, max(sequences) + 1)) - len(sequences) <= 1, "of the killed one at most one has no reply"


def test_a_killed_parent_takes_all_along() -> None:
    """If the parent is killed, all processes end, and the port is free."""
    with Server(STARTS["socket_server"], "--processes", "2") as server:
        processes = members(server)
        server.signal(signal.SIGKILL)
        server.ended()
        until(lambda: gone(processes) and refuses(server.address), "they are gone")


def test_a_signal_to_the_whole_group_is_one_signal() -> None:
    """A signal to the whole group, as Ctrl-C sends it, is one signal: the processes are in sessions of their own, and
    drain."""
    with Server(STARTS["socket_server"], "--processes", "2", program=("setsid", sys.executable, "-m")) as server:
        assert os.getpgid(server.pid) == server.pid
        assert all(os.getsid(each.pid) == each.pid for each in members(server))
        os.killpg(server.pid, signal.SIGINT)
        ended = server.ended()
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


def test_a_signal_to_every_process_is_one_signal() -> None:
    """A supervisor's signal to every process is one signal: each child gets it twice, and drains all the same."""
    with Server(STARTS["socket_server"], "--processes", "2") as server:
        for pid in (server.pid, *[each.pid for each in members(server)]):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        ended = server.ended()
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


def reaped(process: psutil.Process) -> bool:
    """True if a process has ended, and its parent knows."""
    return not process.is_running()


def test_a_signal_that_the_parent_gets_last_is_one_signal() -> None:
    """An idle child that gets the signal first ends before the parent gets the signal. The parent waits a moment for
    the signal. On a busy machine this test may miss the moment, so it tries again.
    """
    outcomes = []
    for _ in range(20):
        with Server(STARTS["socket_server"], "--processes", "2") as server:
            first, *_ = members(server)
            first.terminate()
            until(partial(reaped, first), "the parent has seen its end")
            server.signal(signal.SIGTERM)
            ended = server.ended()
        outcomes.append((ended.code, ended.stderr))
        if outcomes[-1] == (0, ""):
            return
    raise AssertionError(f"the parent took the child's end for a failure, each time: {outcomes}")


def test_a_port_is_for_one_server() -> None:
    """A second server on the port is refused in one line, with one process or several. The first server serves on."""
    advice = "is taken, by a server or a connection; stop it, or give --port N (0: any"
    for first, second in (("2", "1"), ("1", "2")):
        with Server(STARTS["socket_server"], "--processes", first) as server:
            ended = run(*STARTS["grpc_server"], "--port", str(server.address[1]), "--processes", second)
            assert (ended.code, f": port {server.address[1]} of 127.0.0.1 {advice}" in ended.error) == (2, True)
            with RawSocket(server.address) as client:
                client.send(frame(1, LOOKUP, LOOKUP_ONE))
                assert client.reply()


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "timeline": ((*STARTS["grpc_server"], "--timeline", "x"), "--timeline: got 'x', allowed: none with several"),
    "host": ((*STARTS["grpc_server"], "--host", "192.0.2.1", "--insecure"), "--host 192.0.2.1 --port "),
    "a child": (
        ("experiments.services", "serve", "echo", "--transport", "sockets", "--tls-cert", "no/such", "--tls-key", "x"),
        "--tls-cert: got 'no/such', allowed: a readable file",
    ),
    "a state": (
        ("experiments.services", "serve", "entity", "--transport", "http1"),
        "--processes: got 2, allowed: 1 of entity, whose state is its own",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_several_processes_cannot_have_is_refused_once(why: str) -> None:
    """Options that several processes cannot have are refused in one line with exit code 2, by the parent or by a child.
    ``test_bad_options.py`` has options alone."""
    start, said = REFUSED[why]
    ended = run(*start, "--port", "0", "--processes", "2")
    assert (ended.code, ended.stdout) == (2, "")
    assert said in ended.error


@pytest.mark.parametrize(("service", "transport"), [("stock --store memory", "grpc_aio"), ("greeter", "http1")])
def test_the_services_of_the_studies_are_served_by_several(service: str, transport: str) -> None:
    """The command of the studies' services serves with several processes: the stock service, and a service without
    state."""
    start = ("experiments.services", "serve", *service.split(), "--transport", transport)
    with Server(start, "--processes", "2") as server:
        assert len(members(server)) == 2
        ended = server.stopped()
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


def test_a_signal_during_the_start_ends_it_with_0() -> None:
    """A signal before the ready line ends the server with 0, even if a process takes for ever to start."""
    with Running(*STARTS["grpc_server"], "--port", "0", "--processes", "2") as server:
        until(lambda: any("--member" in each.cmdline() for each in members(server)), "it has a child, which is itself")
        members(server)[0].suspend()
        server.signal(signal.SIGTERM)
        ended = server.ended()
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


def test_processes_that_the_command_line_does_not_ask_for_are_refused() -> None:
    """``--processes`` must be on the command line itself: a child gets the parent's command line, and would otherwise
    start children without an end."""
    words = ["--port", "0", "--store", "memory", "--processes", "2"]
    source = f"from stock_service.stock_server import main; main('it', 'sockets', {words})"
    with Running("-c", source, program=(sys.executable,)) as server:
        ended = server.ended()
    assert (ended.code, ended.stdout) == (2, "")
    assert "--processes: got 2, allowed: 1 where it is not on the command line itself" in ended.error
