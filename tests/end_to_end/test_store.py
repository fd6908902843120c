"""Servers with a store, as processes: kills under load, restarts, and the commands for the store's file."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from subprocess import PIPE

import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from stock_service import __main__, stock_server
from stock_service.rpc.errors import Fault, InternalFault
from stock_service.rpc.health import CHECK
from stock_service.rpc.transports import TRANSPORTS, Connection, load
from stock_service.storage.sqlite_file import StoreFile
from stock_service.trading.model import Stock
from stock_service.trading.service import LOOKUP, TRADE
from stock_service.v1 import stock_pb2
from tests.end_to_end.process import ROOT, WAIT_S, Ended, Server, run

pytestmark = pytest.mark.slow

CLIENTS, KILLS, TRADES = 4, 3, 60


def stored(path: Path, transport: str = "sockets") -> tuple[str, ...]:
    """The command that starts a server with this store."""
    return ("stock_service", "serve", "--transport", transport, "--store", f"sqlite:{path}")


def sent(connection: Connection, request_id: str) -> stock_pb2.TradeResponse:
    """A trade of one share under an id."""
    request = stock_pb2.TradeRequest(name="FishCo", quantity=1, side=stock_pb2.SIDE_BUY, request_id=request_id)
    return stock_pb2.TradeResponse.FromString(connection.call(TRADE, request.SerializeToString(), WAIT_S))


def volume(connection: Connection) -> int:
    """The shares traded so far."""
    request = stock_pb2.LookupRequest(name="FishCo").SerializeToString()
    return stock_pb2.LookupResponse.FromString(connection.call(LOOKUP, request, WAIT_S)).volume


def trade_until_killed(connection: Connection, client: str, traded: threading.Semaphore) -> tuple[dict[str, int], str]:
    """The acknowledged commits of a client, by request id, and the id of the trade without a reply."""
    told: dict[str, int] = {}
    while True:
        request_id = f"{client}-{len(told)}"
        try:
            told[request_id] = sent(connection, request_id).sequence
        except Fault:
            return told, request_id
        traded.release()


def killed(server: Server, clients: int, trades: int, prefix: str) -> tuple[dict[str, int], list[str]]:
    """Kills a server under load once it has acknowledged this number of trades. Gives the acknowledged commits, by ids
    that begin with ``prefix``, and the ids of the trades without a reply."""
    connections = [load("sockets").connect(server.address, WAIT_S) for _ in range(clients)]
    traded = threading.Semaphore(0)
    with ThreadPoolExecutor(clients) as threads:
        trading = [
            threads.submit(trade_until_killed, connection, f"{prefix}-{number}", traded)
            for number, connection in enumerate(connections)
        ]
        assert all(traded.acquire(timeout=WAIT_S) for _ in range(trades))
        server.signal(signal.SIGKILL)
        ended = [client.result(WAIT_S) for client in trading]
    for connection in connections:
        connection.close()
    return {name: sequence for told, _ in ended for name, sequence in told.items()}, [name for _, name in ended]


def assert_all_there(connection: Connection, commits: dict[str, int], doubtful: list[str]) -> None:
    """Every acknowledged trade is there, and its retry gets the same reply. A trade without a reply, sent three times,
    is done once, and joins ``commits``. Commits have no gaps."""
    for request_id in doubtful:
        (commits[request_id],) = {sent(connection, request_id).sequence for _ in range(3)}
    assert {request_id: sent(connection, request_id).sequence for request_id in commits} == commits
    assert volume(connection) == len(commits)
    assert sorted(commits.values()) == list(range(1, len(commits) + 1))


def test_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    """After each kill -9 under load every acknowledged trade is there, also over several restarts."""
    commits: dict[str, int] = {}
    doubtful: list[str] = []
    for kill in range(KILLS + 1):
        with Server(stored(tmp_path / "store"), "--workers", "16") as server:
            with closing(load("sockets").connect(server.address, WAIT_S)) as connection:
                assert_all_there(connection, commits, doubtful)
            if kill < KILLS:
                told, doubtful = killed(server, CLIENTS, TRADES, f"{kill}")
                commits |= told
    assert len(commits) >= TRADES * KILLS


@pytest.mark.parametrize("transport", ["sockets", "grpc_aio"])
def test_a_restart_goes_on(transport: str, tmp_path: Path) -> None:
    """Volumes and commit numbers survive a restart, on threads and on an event loop. The log names the file, and
    SIGTERM leaves one file."""
    path = tmp_path / "store"
    for turn in (1, 2):
        with Server(stored(path, transport)) as server:
            connection = load(transport).connect(server.address, WAIT_S)
            assert (sent(connection, f"{turn}").volume, sent(connection, f"{turn}").sequence) == (turn, turn)
            connection.close()
            ended = server.stopped()
        assert (ended.code, ended.stdout) == (0, "")
        assert ended.error == f"stocks are kept in {path}"
        assert os.listdir(tmp_path) == ["store"]


def test_the_default_store_is_named_after_the_transport(capsys: pytest.CaptureFixture[str]) -> None:
    """``--help`` says where a server keeps its stocks unless told."""
    for transport in TRANSPORTS:
        with pytest.raises(SystemExit):
            stock_server.main("program", transport, ["--help"])
        said = " ".join(capsys.readouterr().out.split())
        assert f"(default: sqlite:./stock_service-{transport}.sqlite3)" in said


def store(*arguments: object) -> Ended:
    """``python -m stock_service store``, in this process."""
    out, error = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(error), pytest.raises(SystemExit) as ended:
        __main__.main(["store", *map(str, arguments)])
    assert isinstance(ended.value.code, int)
    return Ended(ended.value.code, out.getvalue(), error.getvalue())


def test_a_store_is_one_servers_alone(tmp_path: Path) -> None:
    """While a server has the store open, a second server and every command are refused with the file's name. The first
    server goes on."""
    path = tmp_path / "store"
    with Server(stored(path)) as server:
        for ended in (run(*stored(path), "--port", "0"), *(store(each, path) for each in ("check", "show", "new-day"))):
            assert (ended.code, ended.stdout) == (2, "")
            allowed = "a file that no other process has open: stop the server"
            assert f"store file: got '{path}', allowed: {allowed}" in ended.error
        with closing(load("sockets").connect(server.address, WAIT_S)) as connection:
            assert sent(connection, "1").volume == 1
        assert server.stopped().code == 0


@pytest.mark.parametrize("there", [False, True])
def test_a_refused_start_leaves_no_file(there: bool, tmp_path: Path) -> None:
    """A refused start removes the file that it made. An older file stays."""
    path = tmp_path / "s"
    if there:
        StoreFile.create(path, [Stock("A", 1, 1)])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = run(*stored(path), "--port", str(taken.getsockname()[1]))
    assert (ended.code, ended.stdout) == (2, "")
    assert "port" in ended.error
    assert list(tmp_path.iterdir()) == [path] * there


def test_a_file_is_looked_after(tmp_path: Path) -> None:
    """``show``, ``check``, ``backup`` and ``new-day`` work on the store of a killed server, and a server starts on the
    result."""
    path, copy = tmp_path / "store", tmp_path / "copy"
    with Server(stored(path)) as server:
        with closing(load("sockets").connect(server.address, WAIT_S)) as connection:
            assert [sent(connection, f"{number}").volume for number in range(3)] == [1, 2, 3]
        server.signal(signal.SIGKILL)
        server.ended()
    assert store("check", path).stdout == "sound: 4 stocks, 3 request ids, last commit 3\n"
    assert store("backup", path, copy).stdout == f"{path} is copied to {copy}\n"
    assert "allowed: a new file that can be made (File exists) (--help" in store("backup", path, copy).error
    assert "TO: missing, allowed: the file to make" in store("backup", path).error
    assert "TO: got" in store("check", path, copy).error
    assert store("new-day", path).stdout == "a new day: set to 0 the volumes of 1 of 4 stocks\n"
    assert store("show", path).stdout.splitlines()[:2] == [
        "GameStart $15.99 volume 0 of 1000000 sequence 0",
        "FishCo $42.50 volume 0 of 1000000 sequence 4",
    ]
    assert store("show", copy).stdout.splitlines()[1] == "FishCo $42.50 volume 3 of 1000000 sequence 3"
    with Server(stored(path)) as server:
        with closing(load("sockets").connect(server.address, WAIT_S)) as connection:
            assert (sent(connection, "2").sequence, sent(connection, "new").sequence, volume(connection)) == (3, 5, 1)
        assert server.stopped().code == 0
    path.write_bytes(path.read_bytes().replace(b"FishCo", b"FishGo"))
    damaged = store("check", path)
    assert (damaged.code, damaged.stderr) == (1, "")
    assert "row 2 of stocks is not as it was written; restore a backup, without a log" in damaged.stdout
    assert "row 2 of stocks is not as it was written" in run(*stored(path), "--port", "0").error
    assert "No such file" in store("check", tmp_path / "none").error


def test_nothing_is_acknowledged_into_a_file_that_is_gone(tmp_path: Path) -> None:
    """If the store's file is gone, trades are refused with its name, health is NOT_SERVING, another start is refused,
    and the exit code is 1. Every acknowledged trade is saved. The next start refuses to ignore the saved file. Renamed
    to the store's name, the saved file is the store."""
    path = tmp_path / "store"
    with Server(stored(path)) as server:
        connection = load("sockets").connect(server.address, WAIT_S)
        assert sent(connection, "1").volume == 1
        path.unlink()
        for number in range(3):
            with pytest.raises(InternalFault, match=f"{path} is not the file .*put {path}.saved there, which has all"):
                sent(connection, f"late {number}")
        assert volume(connection) == 1
        health = connection.call(CHECK, HealthCheckRequest().SerializeToString(), WAIT_S)
        assert HealthCheckResponse.FromString(health).status == HealthCheckResponse.NOT_SERVING
        again = run(*stored(path), "--port", "0")
        assert (again.code, again.stdout) == (2, "")
        connection.close()
        ended = server.stopped()
    assert ended.code == 1
    assert f"{path} is not the file any more that this server opened: " in ended.stderr
    assert "one without store.saved, which has all of a server" in run(*stored(path), "--port", "0").error
    path.with_name("store-wal").unlink()
    path.with_name("store.saved").rename(path)
    with Server(stored(path)) as server:
        with closing(load("sockets").connect(server.address, WAIT_S)) as connection:
            assert sent(connection, "1").volume == volume(connection) - 1 == 1  # and a trade that was in doubt
        assert server.stopped().code == 0
    assert os.listdir(tmp_path) == ["store"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 8 MiB."""
    mounting = ("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(tmp_path))
    if os.geteuid() != 0 or subprocess.run(mounting, stderr=PIPE, check=False).returncode != 0:
        pytest.skip("needs the right to mount a small disk")
    yield tmp_path
    subprocess.run(("umount", str(tmp_path)), check=True)


def test_a_small_disk_is_not_filled_by_the_log(small_disk: Path) -> None:
    """On a disk of 8 MiB 1,500 trades with a commit each are all done. In all they write twice as much log."""
    with Server(stored(small_disk / "store")) as server:
        connection = load("sockets").connect(server.address, WAIT_S)
        for number in range(1, 1501):
            assert sent(connection, f"{number}").volume == number
        assert sum(file.stat().st_size for file in small_disk.iterdir()) < 2 << 20
        connection.close()
        assert server.stopped().code == 0


def test_the_first_lines_of_the_readme_are_true_twice(tmp_path: Path) -> None:
    """The README's first commands print what the README shows, apart from the port, in a new folder and a second
    time."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(make install.*?)```", text, re.DOTALL)
    commands = [line.partition("  # ") for line in block.splitlines()[1:]]
    server, *clients = [shlex.split(command.partition(" &")[0])[1:] for command, _, _ in commands]
    ready, *replies = [shown for _, _, shown in commands]
    for _ in range(2):
        command = [sys.executable, *server, "--port", "0"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=PIPE, stderr=PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            try:
                said = process.stdout.readline().split()
                assert [said[0], said[1].partition(":")[0]] == ready.partition(":50052")[0].split()
                assert process.stderr.readline() == "stocks are kept in stock_service-sockets.sqlite3\n"
                for words, reply in zip(clients, replies, strict=True):
                    line = [sys.executable, *words, "--address", said[1]]
                    assert subprocess.run(line, cwd=tmp_path, stdout=PIPE, text=True).stdout == f"{reply}\n"
            finally:
                process.terminate()
    assert os.listdir(tmp_path) == ["stock_service-sockets.sqlite3"]
