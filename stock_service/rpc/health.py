"""Health of a server, as defined by ``grpc.health.v1``: ``/grpc.health.v1.Health/Check``, on every transport.

NOT_SERVING while the server drains or stops, and where its service says that it is sick: of the stock service, while
its store takes no change: until a restart, or until its database is reached again. A disk that is full makes no server
sick: it may have room again for the next trade.
Transports that speak gRPC answer Watch too, which says each change at once.
"""

from collections.abc import Callable

from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from stock_service.rpc.errors import NotFound

HEALTH = "grpc.health.v1.Health"
CHECK, WATCH = (f"/{HEALTH}/{name}" for name in ("Check", "Watch"))


class Health:
    """Health of one server. Any thread may ask for it."""

    def __init__(self, service_name: str, sick: Callable[[], bool] = lambda: False) -> None:
        """``sick`` returns True where the service cannot do its work; any thread calls it, and it does not block."""
        self._names = ("", service_name)
        self._sick = sick
        self._stopping = False
        self._tell: Callable[[], object] = lambda: None

    def serving(self) -> bool:
        """True where the server serves now."""
        return not self._stopping and not self._sick()

    def stop(self) -> None:
        """Says NOT_SERVING from now on. May be repeated."""
        self._stopping = True
        self._tell()

    def changed(self) -> None:
        """Has watches told, since ``sick`` may give another answer now. Any thread; does not block."""
        self._tell()

    def tell(self, tell: Callable[[], object]) -> None:
        """Has ``tell`` called when a watch may have another answer: by any thread, which it must not block."""
        self._tell = tell

    def check(self, request: HealthCheckRequest) -> HealthCheckResponse:
        """Answers the method Check. Raises NotFound for an unknown name."""
        if request.service not in self._names:
            raise NotFound("no service of that name")
        return self.watched(request)

    def watched(self, request: HealthCheckRequest) -> HealthCheckResponse:
        """Each word of the method Watch, which says the first one at once, and then each that differs."""
        if request.service not in self._names:
            return HealthCheckResponse(status=HealthCheckResponse.SERVICE_UNKNOWN)
        serving = HealthCheckResponse.SERVING if self.serving() else HealthCheckResponse.NOT_SERVING
        return HealthCheckResponse(status=serving)
