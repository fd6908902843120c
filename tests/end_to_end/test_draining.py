"""Draining servers: after the signal to stop, health is NOT_SERVING, and the server serves on for ``--drain-s``. So
balancers notice. Watches of the health call also hear of a failed store.
"""

import signal
from contextlib import closing
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

from stock_service.rpc.errors import InternalFault
from stock_service.rpc.transports import load
from tests.conformance.running import until
from tests.conformance.test_health import asked
from tests.end_to_end.process import WAIT_S, Server, serve
from tests.end_to_end.test_store import sent, stored

pytestmark = pytest.mark.slow

LONG = ("--drain-s", "600")

SERVED = serve("grpc_static")

SERVING, NOT_SERVING = 1, 2


def test_a_draining_server_serves_on() -> None:
    """A draining server serves old and new clients, with one process and with several. A second signal ends it at
    once."""
    connect = load("grpc_static").connect
    with Server(SERVED, *LONG, "--processes", "2") as server:
        with closing(connect(server.address, WAIT_S)) as connection:
            assert asked(connection) == SERVING
            server.signal(signal.SIGTERM)
            until(lambda: asked(connection) == NOT_SERVING, "health says so")
            assert sent(connection, "known").sequence == 1
        with closing(connect(server.address, WAIT_S)) as connection:
            assert sent(connection, "new").sequence == 2
        assert server.stopped().code == 1


def test_a_drained_server_stops() -> None:
    """A drained server stops like a server without a drain, with exit code 0."""
    with Server(SERVED, "--drain-s", "0.05") as server:
        ended = server.stopped()
        assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


def test_a_watch_hears_that_the_store_has_failed(tmp_path: Path) -> None:
    """A watch gets NOT_SERVING as soon as a trade finds that the store's file is gone."""
    with Server(stored(tmp_path / "store", "grpc_static")) as server, grpc.insecure_channel(server.at) as channel:
        watch = HealthStub(channel).Watch(HealthCheckRequest(), WAIT_S)
        assert next(watch).status == SERVING
        (tmp_path / "store").unlink()
        with closing(load("grpc_static").connect(server.address, WAIT_S)) as connection:
            with pytest.raises(InternalFault):
                sent(connection, "id")
        assert next(watch).status == NOT_SERVING
        assert server.stopped().code == 1


def test_a_server_that_hands_over_does_not_drain(tmp_path: Path) -> None:
    """A server that hands over does not drain. Its successor has the port at once, even if the server was draining
    already."""
    start = (*stored(tmp_path / "store"), "--hand-over", str(tmp_path / "socket"), *LONG)
    with Server(start) as first, Server(start) as second:
        assert first.ended().code == 0
        second.signal(signal.SIGTERM)
        with closing(load("sockets").connect(second.address, WAIT_S)) as connection:
            until(lambda: asked(connection) == NOT_SERVING, "the second drains")
        with Server(start) as third:
            assert second.ended().code == 0
            with closing(load("sockets").connect(third.address, WAIT_S)) as connection:
                assert sent(connection, "id").sequence == 1
