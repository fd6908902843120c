"""The health call, on every transport: whether a server serves."""

from dataclasses import replace

import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from stock_service.rpc.errors import NotFound
from stock_service.rpc.health import CHECK, Health
from stock_service.rpc.transports import Connection
from stock_service.trading.service import stock_service
from tests.conformance.running import KINDS, WAIT_S, Kind, maker
from tests.conformance.transports import fresh_exchange


def asked(connection: Connection, name: str = "") -> int:
    """What the server says of itself."""
    reply = connection.call(CHECK, HealthCheckRequest(service=name).SerializeToString(), WAIT_S)
    return int(HealthCheckResponse.FromString(reply).status)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_server_says_whether_it_serves(kind: Kind) -> None:
    """SERVING; NOT_SERVING as long as its service is sick, and once it stops; NOT_FOUND for another service."""
    service, sick = stock_service(fresh_exchange()), [False]
    health = Health(service.name, lambda: sick[0])
    with maker(kind)(replace(service, health=health)) as running:
        connection = running.connect()
        assert asked(connection) == asked(connection, service.name) == HealthCheckResponse.SERVING
        sick[0] = True
        assert asked(connection) == asked(connection, service.name) == HealthCheckResponse.NOT_SERVING
        sick[0] = False
        assert asked(connection) == HealthCheckResponse.SERVING
        health.stopping = True
        assert asked(connection) == HealthCheckResponse.NOT_SERVING
        with pytest.raises(NotFound):
            asked(connection, "another.Service")
