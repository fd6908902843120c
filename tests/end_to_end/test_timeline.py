"""Servers with ``--timeline``: the file that a server writes when it stops."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Semaphore

import pytest

from experiments.results.stages import ALL, load, summary
from experiments.services.echo import ECHO
from stock_service.rpc.transports import load as load_transport
from stock_service.trading.service import TRADE
from tests.conformance.raw_socket import RawSocket, frame
from tests.end_to_end.process import STARTS, WAIT_S, Server
from tests.end_to_end.test_stopping import trade_on
from tests.more_methods import HANG, HANGING, PROGRAM

pytestmark = pytest.mark.slow

FOREVER_NS = 1 << 62


def test_a_server_writes_one_when_stopped(tmp_path: Path) -> None:
    """The file has every answered request, also under load, with the times of its lock."""
    transport, traded = load_transport("sockets"), Semaphore(0)
    with Server(STARTS["socket_server"], "--timeline", str(tmp_path / "t")) as server, ThreadPoolExecutor(4) as threads:
        connections = [transport.connect(server.address, WAIT_S) for _ in range(4)]
        loops = [threads.submit(trade_on, connection, traded.release, Event()) for connection in connections]
        assert all(traded.acquire(timeout=WAIT_S) for _ in range(200))
        ended = server.stopped()
        answered = sum(len(loop.result(WAIT_S)[0]) for loop in loops)
        for connection in connections:
            connection.close()
    assert (ended.code, ended.stderr) == (0, "")
    stages = load(tmp_path / "t")
    whole = summary(stages, 0, FOREVER_NS)
    assert (whole[TRADE].count, whole[TRADE].locked, whole[ALL].violations) == (answered, answered, 0)


def test_a_studys_server_writes_one(tmp_path: Path) -> None:
    """Every service has the option. A service without locks has no times of locks. ``test_timeline.py`` of the
    conformance tests tries each transport."""
    start = ("experiments.services", "serve", "echo", "--transport", "grpc")
    with Server(start, "--timeline", str(tmp_path / "t")) as server:
        connection = load_transport("grpc").connect(server.address, WAIT_S)
        assert [connection.call(ECHO, b"", WAIT_S) for _ in range(10)] == [b""] * 10
        connection.close()
        ended = server.stopped()
    assert (ended.code, ended.stderr) == (0, "")
    whole = summary(load(tmp_path / "t"), 0, FOREVER_NS)[ALL]
    assert (whole.count, whole.locked, whole.violations) == (10, 0, 0)


def test_a_server_that_gives_up_writes_what_it_has(tmp_path: Path) -> None:
    """A server whose grace was too short exits with 1. Its file has the requests answered until then."""
    start = (PROGRAM, "--transport", "sockets")
    options = ("--timeline", str(tmp_path / "t"), "--grace-s", "0.3")
    with Server(start, *options) as server, RawSocket(server.address) as asking, RawSocket(server.address) as hanging:
        hanging.send(frame(1, HANG))
        asking.send(frame(1, HANGING))
        assert asking.reply() is not None
        assert server.stopped().code == 1
    assert set(summary(load(tmp_path / "t"), 0, FOREVER_NS)) == {HANGING, ALL}
