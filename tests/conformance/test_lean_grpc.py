"""The lean gRPC client against our grpcio server: checks of each transport's own client, and checks of gRPC alone."""

from collections.abc import Callable
from functools import partial

import pytest

from stock_service.rpc.codec_connection import CodecConnection
from stock_service.rpc.errors import InternalFault, Overloaded, Unavailable
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Connection
from stock_service.rpc.wire.grpc_codec import GrpcCodec
from tests.conformance import transport_lifecycle, transports
from tests.conformance.running import WAIT_S, Kind, Limits, Maker, Running
from tests.raw_service import raw_service

LIMITS = Limits()


class LeanRunning(Running):
    """A server whose connections are the lean client's."""

    def connect(self, timeout_s: float = WAIT_S) -> Connection:
        """A connection that ``with`` closes."""
        host, port = self.address
        connection = CodecConnection(self.address, partial(GrpcCodec, f"{host}:{port}")).open(timeout_s)
        self._connections.append(connection)
        return connection


def lean(service: Service, limits: Limits = LIMITS) -> LeanRunning:
    """A grpcio server, for the lean client."""
    return LeanRunning(Kind("grpc", "thread-pool"), service, limits)


Check = Callable[[Maker], None]

STAYS_IDLE: set[Check] = {
    transport_lifecycle.check_client_stays,
    transport_lifecycle.check_reconnect,
}
"""Checks whose client stays connected, without a call, while the server stops. The client does not read the connection
then. So the server's PING is not answered, and grpcio waits for its grace. ``codec_connection`` says so."""

SLOW: set[Check] = {transports.check_payload_too_long, transport_lifecycle.check_stuck_handler}

CASES = [
    pytest.param(check, id=check.__name__.removeprefix("check_"), marks=[pytest.mark.slow] if check in SLOW else [])
    for check in (*transports.CHECKS, *transport_lifecycle.CHECKS)
    if check not in STAYS_IDLE
]


@pytest.mark.parametrize("check", CASES)
def test_transport(check: Check) -> None:
    """The check's own words, for the lean client."""
    check(lean)


def test_a_reply_over_the_limit_of_headers() -> None:
    """A status text of 20,000 bytes is more than we take: grpcio cuts it off or says so, and the call is a fault."""

    def fail(_: bytes) -> bytes:
        raise InternalFault("é" * 10_000)

    long = raw_service("tests.v1.Long", {"/tests.v1.Long/Fail": fail, "/tests.v1.Long/Echo": bytes})
    with lean(long) as running:
        connection = running.connect()
        with pytest.raises((InternalFault, Unavailable, Overloaded)):
            connection.call("/tests.v1.Long/Fail", b"", WAIT_S)
        assert connection.call("/tests.v1.Long/Echo", b"after", WAIT_S) == b"after"
