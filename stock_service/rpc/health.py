"""Health of a server, as defined by ``grpc.health.v1``: ``/grpc.health.v1.Health/Check``, on every transport.

The status is NOT_SERVING while the server drains or stops, and while the service reports that it is sick. The stock
service is sick while its store takes no change: until a restart, or until the database is reached again. A full disk
makes no server sick: the disk may have room again for the next trade. Transports that speak gRPC also answer the method
Watch, which reports each change at once.
"""

from collections.abc import Callable

from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from stock_service.rpc.errors import NotFound

HEALTH = "grpc.health.v1.Health"
CHECK, WATCH = (f"/{HEALTH}/{name}" for name in ("Check", "Watch"))


class Health:
    """Health of one server. Any thread may ask for it."""

    def __init__(self, service_name: str, sick: Callable[[], bool] = lambda: False) -> None:
        """``sick`` returns True if the service cannot do its work; any thread calls it, and it does not block."""
        self._names = ("", service_name)
        self._sick = sick
        self._stopping = False
        self._tell: Callable[[], object] = lambda: None

    def serving(self) -> bool:
        """True if the server serves now."""
        return not self._stopping and not self._sick()

    def stop(self) -> None:
        """Makes the status NOT_SERVING from now on. May be repeated."""
        self._stopping = True
        self._tell()

    def changed(self) -> None:
        """Tells the watches that ``sick`` may give another answer now. Any thread may call ``changed``, which does not
        block.
        """
        self._tell()

    def tell(self, tell: Callable[[], object]) -> None:
        """Registers ``tell``, which is called when the health may have changed. Any thread may call ``tell``, which
        must not block.
        """
        self._tell = tell

    def check(self, request: HealthCheckRequest) -> HealthCheckResponse:
        """Answers the method Check. Raises NotFound for an unknown name."""
        if request.service not in self._names:
            raise NotFound("no service of that name")
        return self.watched(request)

    def watched(self, request: HealthCheckRequest) -> HealthCheckResponse:
        """The status now, for the method Watch, which sends the first status at once, and then each different
        status.
        """
        if request.service not in self._names:
            return HealthCheckResponse(status=HealthCheckResponse.SERVICE_UNKNOWN)
        serving = HealthCheckResponse.SERVING if self.serving() else HealthCheckResponse.NOT_SERVING
        return HealthCheckResponse(status=serving)
