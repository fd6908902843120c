"""A socket server in this process, for what needs a real one."""

from collections.abc import Iterator

import pytest

from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.transports import ServeOptions, sockets
from tests.unit.clients.fakes import service


@pytest.fixture
def server() -> Iterator[str]:
    """The default stocks on sockets: its ``HOST:PORT``."""
    pool = StaticPool(4, 64)
    serving = sockets.serve(service(), pool, ServeOptions())
    host, port = serving.address
    try:
        yield f"{host}:{port}"
    finally:
        serving.stop(1.0)
        pool.stop(1.0)
