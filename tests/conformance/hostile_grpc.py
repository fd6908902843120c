"""A check of what headers without a message do to others: of gRPC servers, on any transport."""

from tests.conformance.kept import Promise
from tests.conformance.raw_http2 import RawHttp2, headers, message
from tests.conformance.running import ECHO, WAIT_S, Limits, Maker, Probe

REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
WATCH = "/grpc.health.v1.Health/Watch"

HOLDS_NONE: Promise = "headers without a message hold no thread"


def check_calls_without_a_message(make: Maker, path: str = ECHO) -> None:
    """Headers alone, on more streams than there are workers: its other calls are answered, and other clients."""
    with make(Probe().service, Limits(workers=2)) as running, RawHttp2(running.address) as hostile:
        hostile.send(*(headers(stream, path) for stream in range(1, 41, 2)))
        hostile.send(headers(41, ECHO), message(41, b""))
        assert hostile.status(41) == 0, "its own other calls are answered too, behind all of these"
        assert running.connect().call(ECHO, b"honest", WAIT_S) == b"honest"
