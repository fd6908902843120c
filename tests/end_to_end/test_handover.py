"""Successors that fail, as real processes: the server that runs takes the store back, and serves on."""

import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from stock_service.rpc.transports import load
from tests.conformance.running import until
from tests.end_to_end.process import WAIT_S, Running, Server
from tests.end_to_end.test_store import sent, stored, volume

pytestmark = pytest.mark.slow

FAKE = """
import os, socket, sys, time
path, steps, how = sys.argv[1:]
old = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
old.connect(path)
for step in range(int(steps)):
    if step == 0:
        socket.recv_fds(old, 16384, 1)
    elif step == 1:
        old.send(b"!")
    else:
        assert old.recv(10) == b"store"
print("there", flush=True)
if how == "hangs":
    time.sleep(3600)
os._exit(3)
"""
"""A successor that follows the protocol for some steps, and then ends or hangs."""

REAL = """
import os, pkgutil, runpy, sys
_, owner, name, number, *arguments = sys.argv
sys.argv = ["stock_service", *arguments]
setattr(pkgutil.resolve_name(owner), name, lambda *_, **__: os.kill(os.getpid(), int(number)))
runpy.run_module("stock_service", run_name="__main__", alter_sys=True)
"""
"""A real successor that sends itself a signal when it calls a given method."""

LOADING = ("stock_service.storage.sqlite_file:StoreFile", "load")
CONCLUDING = ("stock_service.rpc.process.listener_handover:HandOver", "conclude")


def serves_on(server: Server, failed: int) -> None:
    """Waits until the server's log has a line for each of these successors. Fails for any other line."""
    until(lambda: server.said().count("this one serves on") == failed, "the server says that it serves on")
    assert len(server.said().splitlines()) == 1 + failed, server.said()


@pytest.mark.parametrize("how", ["ends", "hangs"])
def test_a_successor_may_fail_at_any_step(how: str, tmp_path: Path) -> None:
    """An open connection stays open, trades are only held up, and the next real successor has all trades."""
    path = str(tmp_path / "socket")
    start = (*stored(tmp_path / "store"), "--hand-over", path, "--hand-over-s")
    seconds = "0.2" if how == "hangs" else "30"
    with Server((*start, seconds)) as server, ThreadPoolExecutor(1) as thread:
        with closing(load("sockets").connect(server.address, WAIT_S)) as open_before:
            for step in range(4):
                with Running("-ISc", FAKE, path, str(step), how, program=(sys.executable,)) as heir:
                    assert heir.line() == "there"
                    held = thread.submit(sent, open_before, f"held {step}")
                    if how == "ends":
                        assert heir.ended().code == 3
                    assert held.result(WAIT_S).sequence == 2 * step + 1
                    serves_on(server, step + 1)
                with closing(load("sockets").connect(server.address, WAIT_S)) as opened_now:
                    assert sent(opened_now, f"then {step}").sequence == 2 * step + 2
        if how == "ends":  # one that hangs has little time there, which a real one may not keep to
            with Server((*start, seconds)) as successor:
                assert server.ended().code == 0
                with closing(load("sockets").connect(successor.address, WAIT_S)) as connection:
                    assert sent(connection, "held 3").sequence == 7
                    assert volume(connection) == 8


@pytest.mark.parametrize(("where", "number"), [(LOADING, signal.SIGSTOP), (CONCLUDING, signal.SIGKILL)])
def test_a_real_successor_may_fail_with_the_store_open(
    where: tuple[str, str], number: signal.Signals, tmp_path: Path
) -> None:
    """A successor is stopped while it reads the store, or killed when it accepts connections already. A second
    hand-over succeeds."""
    start = (*stored(tmp_path / "store"), "--hand-over", str(tmp_path / "socket"))
    seconds = "2" if number == signal.SIGSTOP else "30"
    with Server((*start, "--hand-over-s", seconds)) as server:
        with closing(load("sockets").connect(server.address, WAIT_S)) as connection:
            assert sent(connection, "before").sequence == 1
            options = (*where, str(int(number)), *start[1:], "--port", "0")
            with Running("-c", REAL, *options, program=(sys.executable,)) as heir:
                assert heir.ended().code == -signal.SIGKILL
            serves_on(server, 1)
            assert sent(connection, "after").sequence == 2
        with Server(start) as successor:
            assert (server.ended().code, successor.address) == (0, server.address)
            with closing(load("sockets").connect(successor.address, WAIT_S)) as connection:
                assert sent(connection, "after").sequence == 2
                assert sent(connection, "next").sequence == 3


def test_a_successor_whose_catalog_does_not_fit_the_store_leaves_it(tmp_path: Path) -> None:
    """A successor with an unsuitable catalog says so and exits with 2. The running server takes the store back."""
    catalog = tmp_path / "catalog.toml"
    catalog.write_text('[[stocks]]\nname = "Other"\nprice = 1.00\nvolume_limit = 1\n')
    start = (*stored(tmp_path / "store"), "--hand-over", str(tmp_path / "socket"))
    with Server(start) as server:
        with Running(*start, "--port", "0", "--catalog", str(catalog)) as heir:
            ended = heir.ended()
        assert (ended.code, "a file with all stocks of" in ended.error) == (2, True), ended
        serves_on(server, 1)
        with closing(load("sockets").connect(server.address, WAIT_S)) as connection:
            assert sent(connection, "after").sequence == 1


def test_the_metrics_have_the_port_that_the_last_server_s_had(tmp_path: Path) -> None:
    """The successor's metrics have the port of the last server, once that server has ended."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        metrics = f"127.0.0.1:{free.getsockname()[1]}"
    start = (*stored(tmp_path / "store"), "--hand-over", str(tmp_path / "socket"), "--metrics", metrics)
    with Server(start) as server, Server(start) as successor:
        assert server.ended().code == 0
        until(lambda: f"metrics at {metrics}" in successor.said(), "it says so")
        assert successor.stopped().code == 0


def test_a_server_that_is_told_to_stop_amid_a_hand_over_stops(tmp_path: Path) -> None:
    """A server that gets SIGTERM during a hand-over stops. It does not wait for the successor, and does not end the
    successor."""
    path = str(tmp_path / "socket")
    with Server((*stored(tmp_path / "store"), "--hand-over", path)) as server:
        with Running("-ISc", FAKE, path, "3", "hangs", program=(sys.executable,)) as heir:
            assert heir.line() == "there"
            assert server.stopped().code == 0
            assert heir.runs()
