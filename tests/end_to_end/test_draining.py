"""A health watch of a server process hears of a store that has failed."""

from contextlib import closing
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

from stock_service.rpc.errors import InternalFault
from stock_service.rpc.transports import load
from tests.end_to_end.process import WAIT_S, Server
from tests.end_to_end.test_store import sent, stored

pytestmark = pytest.mark.slow

SERVING, NOT_SERVING = 1, 2


def test_a_watch_hears_that_the_store_has_failed(tmp_path: Path) -> None:
    """As soon as a trade finds that its file is gone."""
    with Server(stored(tmp_path / "store", "grpc_static")) as server, grpc.insecure_channel(server.at) as channel:
        watch = HealthStub(channel).Watch(HealthCheckRequest(), WAIT_S)
        assert next(watch).status == SERVING
        (tmp_path / "store").unlink()
        with closing(load("grpc_static").connect(server.address, WAIT_S)) as connection:
            with pytest.raises(InternalFault):
                sent(connection, "id")
        assert next(watch).status == NOT_SERVING
        assert server.stopped().code == 1
