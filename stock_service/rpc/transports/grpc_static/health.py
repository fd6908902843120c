"""The standard health service, ``grpc.health.v1``: SERVING until the server stops."""

from collections.abc import Sequence

from google.protobuf.message import DecodeError
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from stock_service.rpc.errors import InvalidRequest, NotFound

HEALTH = "grpc.health.v1.Health"
CHECK, WATCH = (f"/{HEALTH}/{name}".encode() for name in ("Check", "Watch"))


class Health:
    """Any thread may ask it."""

    def __init__(self, service_name: str) -> None:
        self._names = ("", service_name)

    def check(self, payload: bytes) -> bytes:
        """The status of a service by its name. Raises a Fault."""
        if self._name(payload) not in self._names:
            raise NotFound("no service of that name")
        return _status(HealthCheckResponse.SERVING)

    def watch(self, payload: bytes, ends: bool) -> Sequence[bytes]:
        """The status now; and, as the server stops, what it has become. Raises a Fault."""
        if self._name(payload) in self._names:
            return [_status(HealthCheckResponse.NOT_SERVING if ends else HealthCheckResponse.SERVING)]
        return [] if ends else [_status(HealthCheckResponse.SERVICE_UNKNOWN)]

    def _name(self, payload: bytes) -> str:
        try:
            name: str = HealthCheckRequest.FromString(payload).service
        except DecodeError as error:
            raise InvalidRequest(f"{len(payload)} bytes that are no HealthCheckRequest") from error
        return name


def _status(status: int) -> bytes:
    encoded: bytes = HealthCheckResponse(status=status).SerializeToString()
    return encoded
