"""The standard health service, ``grpc.health.v1``, in bytes."""

from collections.abc import Sequence

from google.protobuf.message import DecodeError
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from stock_service.rpc import health
from stock_service.rpc.errors import InvalidRequest

HEALTH = health.HEALTH
CHECK, WATCH = health.CHECK.encode(), health.WATCH.encode()


class HealthCalls:
    """Any thread may ask it."""

    def __init__(self, asked: health.Health) -> None:
        self._health = asked

    def check(self, payload: bytes) -> bytes:
        """The status of a service by its name. Raises a Fault."""
        encoded: bytes = self._health.check(_decoded(payload)).SerializeToString()
        return encoded

    def watch(self, payload: bytes, ends: bool) -> Sequence[bytes]:
        """The status now; and, as the server stops, what it has become. Raises a Fault."""
        if self._health.knows(_decoded(payload).service):
            return [health.response(not ends and self._health.serving()).SerializeToString()]
        return [] if ends else [HealthCheckResponse(status=HealthCheckResponse.SERVICE_UNKNOWN).SerializeToString()]


def _decoded(payload: bytes) -> HealthCheckRequest:
    try:
        return HealthCheckRequest.FromString(payload)
    except DecodeError as error:
        raise InvalidRequest(f"{len(payload)} bytes that are no HealthCheckRequest") from error
