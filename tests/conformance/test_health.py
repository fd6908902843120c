"""The health call, on every transport: whether a server serves."""

from dataclasses import replace

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from stock_service.rpc.errors import NotFound
from stock_service.rpc.health import CHECK, Health
from stock_service.rpc.transports import Connection
from stock_service.trading.service import stock_service
from tests.conformance.kept import GRPC
from tests.conformance.running import KINDS, WAIT_S, Kind, Probe, maker, stopping
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


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.transport in GRPC], ids=str)
def test_a_watch_of_an_unknown_service_says_so_until_the_stop(kind: Kind) -> None:
    """SERVICE_UNKNOWN at once, and again at the end, which it then has with the status OK."""
    with maker(kind)(Probe().service) as running, grpc.insecure_channel("{}:{}".format(*running.address)) as channel:
        watched = HealthStub(channel).Watch(HealthCheckRequest(service="other"), WAIT_S)
        assert next(watched).status == HealthCheckResponse.SERVICE_UNKNOWN
        stop = stopping(running)
        assert [each.status for each in watched] == [HealthCheckResponse.SERVICE_UNKNOWN]
        assert stop.result()
