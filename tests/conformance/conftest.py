"""Fixtures of every test here, for objects and descriptors that grpcio or pytest keep."""

from collections.abc import Iterator

import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from tests.conformance.running import WAIT_S, Kind, Probe, maker
from tests.conformance.test_grpc_static import channel


@pytest.fixture(scope="session", autouse=True)
def _descriptors_that_stay() -> None:
    """Has gRPC core open, before they are counted, the pollers that a process keeps once a watch was ended."""
    with maker(Kind("grpc", "thread-pool"))(Probe().service) as running, channel(running) as to_server:
        watched = HealthStub(to_server).Watch(HealthCheckRequest(), 2 * WAIT_S)
        assert next(watched).status == HealthCheckResponse.SERVING
        assert running.stop(WAIT_S)
        watched.cancel()


@pytest.fixture(autouse=True)
def forget_the_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Clears pytest's log: a handler's error in it keeps the call, and so a whole gRPC server, in memory."""
    yield
    caplog.get_records("call").clear()
