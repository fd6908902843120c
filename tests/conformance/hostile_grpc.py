"""Checks of the harm that one hostile gRPC client does to other clients, on any transport."""

from stock_service.rpc.errors import FaultCode
from tests.conformance.kept import Promise
from tests.conformance.raw_http2 import RawHttp2, headers, message
from tests.conformance.running import ECHO, WAIT_S, Limits, Maker, Probe

REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
WATCH = "/grpc.health.v1.Health/Watch"

HOLDS_NONE: Promise = "headers without a message hold no thread"
SURVIVES: Promise = "survives a path that is not UTF-8"


def check_calls_without_a_message(make: Maker, path: str = ECHO) -> None:
    """Headers alone, on more streams than there are workers: its other calls are answered, and other clients."""
    with make(Probe().service, Limits(workers=2)) as running, RawHttp2(running.address) as hostile:
        hostile.send(*(headers(stream, path) for stream in range(1, 41, 2)))
        hostile.send(headers(41, ECHO), message(41, b""))
        assert hostile.status(41) == 0, "its own other calls are answered too, behind all of these"
        assert running.connect().call(ECHO, b"honest", WAIT_S) == b"honest"


def check_a_path_that_is_no_text(make: Maker) -> None:
    """A path that is not text is refused like an unknown path, and the next call is answered."""
    with make(Probe().service) as running, RawHttp2(running.address) as hostile:
        hostile.send(headers(1, "/x").replace(b"/x", b"/\xff"), message(1, b""))
        assert hostile.status(1) == FaultCode.UNIMPLEMENTED
        hostile.send(headers(3, ECHO), message(3, b""))
        assert hostile.status(3) == 0
        assert running.connect().call(ECHO, b"honest", WAIT_S) == b"honest"
