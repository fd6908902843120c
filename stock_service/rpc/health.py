"""Health service of a server (``grpc.health.v1``). Every transport answers the method Check.

The status is NOT_SERVING while the server drains or stops, and while the service reports itself as sick. The stock
service is sick while its store accepts no changes: until the server is started again or, with a database, until the
database can be reached again. A full disk does not make the service sick, since the disk may have room again for the
next trade. The gRPC transports also answer the method Watch, which reports each change of the status to the client at
once.
"""

from collections.abc import Callable

from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from stock_service.rpc.errors import NotFound

HEALTH = "grpc.health.v1.Health"
CHECK, WATCH = (f"/{HEALTH}/{name}" for name in ("Check", "Watch"))


class Health:
    """Health of one server. Thread-safe."""

    def __init__(self, service_name: str, sick: Callable[[], bool] = lambda: False) -> None:
        """``sick`` returns True if the service cannot do its work. ``sick`` must be thread-safe, and must not block."""
        self._names = ("", service_name)
        self._sick = sick
        self._stopping = False
        self._tell: Callable[[], object] = lambda: None

    def serving(self) -> bool:
        """Returns True if the status is SERVING now."""
        return not self._stopping and not self._sick()

    def stop(self) -> None:
        """Changes the status to NOT_SERVING for good, and notifies all Watch calls. May be called again."""
        self._stopping = True
        self._tell()

    def changed(self) -> None:
        """Reports to all Watch calls that ``sick`` may return another value now. Does not block."""
        self._tell()

    def tell(self, tell: Callable[[], object]) -> None:
        """Registers the function to call when the status may have changed. The function must be thread-safe, and must
        not block.
        """
        self._tell = tell

    def check(self, request: HealthCheckRequest) -> HealthCheckResponse:
        """Answers the method Check. Raises NotFound for an unknown service name."""
        if request.service not in self._names:
            raise NotFound("no service of that name")
        return self.watched(request)

    def watched(self, request: HealthCheckRequest) -> HealthCheckResponse:
        """Returns the present status, for the method Watch. An unknown service name has the status SERVICE_UNKNOWN."""
        if request.service not in self._names:
            return HealthCheckResponse(status=HealthCheckResponse.SERVICE_UNKNOWN)
        serving = HealthCheckResponse.SERVING if self.serving() else HealthCheckResponse.NOT_SERVING
        return HealthCheckResponse(status=serving)
