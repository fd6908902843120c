"""Every transport and dispatch passes every check, with every executor that can bear on it. So does grpcio's server
with the lean client. Promises that ``kept`` leaves out are really not kept."""

from collections.abc import Callable
from functools import partial

import pytest

from stock_service.rpc.codec_connection import CodecConnection
from stock_service.rpc.errors import DeadlineExceeded, InternalFault, Overloaded, Unavailable
from stock_service.rpc.grpcio import draining
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Connection
from stock_service.rpc.wire.grpc_codec import GrpcCodec
from tests.conformance import raw_http2, running, transport_lifecycle, transports
from tests.conformance.hostile_grpc import (
    HOLDS_NONE,
    SURVIVES,
    check_a_path_that_is_no_text,
    check_calls_without_a_message,
)
from tests.conformance.kept import GRPC, NOT_KEPT, Promise, keeps
from tests.conformance.running import KINDS, WAIT_S, Kind, Limits, Maker, Running, maker, one_executor_each
from tests.raw_service import raw_service

Check = Callable[[Maker], None]

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


SLOW_ON_GRPC = {
    transport_lifecycle.check_client_leaves_first,
    transports.check_overload,
    transports.check_payload_too_long,
}
"""Checks that open and close several channels, which takes grpcio a fifth of a second each."""

STAYS_IDLE: set[Check] = {
    transport_lifecycle.check_client_stays,
    transport_lifecycle.check_reconnect,
}
"""Checks whose client stays connected, without a call, while the server stops. The client does not read the connection
then. So the server's PING is not answered, and grpcio waits for its grace. ``codec_connection`` says so."""

SLOW_ON_LEAN: set[Check] = {transports.check_payload_too_long, transport_lifecycle.check_stuck_handler}

HELD_TOGETHER: set[Check] = {
    transports.check_overload,
    transport_lifecycle.check_accepted_is_finished,
    transport_lifecycle.check_stuck_handler,
}
"""Checks of a server whose handler blocks: it answers several requests at a time."""

ON_EVERY_EXECUTOR: set[Check] = {*HELD_TOGETHER, transport_lifecycle.check_stop_under_load}
"""Checks in which executors differ: a task waits, or is refused at a stop. ``executors.py`` has the others."""

ALONE = {transport_lifecycle.check_stop_under_load}
"""Checks with as much load as a server takes: where no core is free, the server refuses a part as Overloaded."""

CHECKS = (*transports.CHECKS, *transport_lifecycle.CHECKS)


def kinds_for(check: Check) -> list[Kind]:
    """One kind for each transport, by turns, unless executors differ: over all checks each executor is tried on each
    transport."""
    kinds = KINDS if check in ON_EVERY_EXECUTOR else one_executor_each(CHECKS.index(check))
    return [kind for kind in kinds if check not in HELD_TOGETHER or keeps(kind, "several at a time")]


CASES = [
    pytest.param(
        check,
        maker(kind),
        id=f"{check.__name__.removeprefix('check_')}-{kind}",
        marks=[pytest.mark.slow] * (kind.transport in GRPC and check in SLOW_ON_GRPC)
        + [pytest.mark.alone] * (check in ALONE),
    )
    for check in CHECKS
    for kind in kinds_for(check)
]
CASES += [
    pytest.param(
        check,
        lean,
        id=f"{check.__name__.removeprefix('check_')}-lean",
        marks=[pytest.mark.slow] * (check in SLOW_ON_LEAN),
    )
    for check in CHECKS
    if check not in STAYS_IDLE
]


@pytest.mark.parametrize(("check", "make"), CASES)
def test_transport(check: Check, make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check's own words, for this transport, executor and dispatch, or for the lean client."""
    monkeypatch.setattr(draining, "SERVING_S", 0.2)  # clients that call without pause keep the cores so long
    check(make)


def test_every_kind_is_tried() -> None:
    """Over all checks every kind is tried, though a check has only one executor for each transport."""
    assert {kind for check in set(CHECKS) - ON_EVERY_EXECUTOR for kind in kinds_for(check)} == set(KINDS)


def test_every_check_is_run() -> None:
    """No check of the two modules is left out of its table."""
    for module in (transports, transport_lifecycle):
        written = [check for name, check in vars(module).items() if name.startswith("check_")]
        assert written == list(module.CHECKS)


def test_a_reply_over_the_limit_of_headers() -> None:
    """A status text of 20,000 bytes is more than we take: grpcio cuts it off or says so, and the call is a fault."""

    def fail(_: bytes) -> bytes:
        raise InternalFault("é" * 10_000)

    long = raw_service("tests.v1.Long", {"/tests.v1.Long/Fail": fail, "/tests.v1.Long/Echo": bytes})
    with lean(long) as serving:
        connection = serving.connect()
        with pytest.raises((InternalFault, Unavailable, Overloaded)):
            connection.call("/tests.v1.Long/Fail", b"", WAIT_S)
        assert connection.call("/tests.v1.Long/Echo", b"after", WAIT_S) == b"after"


SHORT_S = 0.4
"""Time that a check waits here for an event that never comes."""

OF_PROMISES: dict[Promise, set[Check]] = {
    "several at a time": HELD_TOGETHER - {transport_lifecycle.check_stuck_handler},
    HOLDS_NONE: {check_calls_without_a_message},
    SURVIVES: {check_a_path_that_is_no_text},
}
"""The checks that hold a server to a promise. That of a stuck handler is left out: it leaves the loop's thread
stuck."""


def kind_of(name: str) -> Kind:
    """A kind by a key of the table."""
    transport, _, dispatch = name.partition("-")
    return Kind(transport, "static-pool", dispatch or "request")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "promise", "check"),
    [
        pytest.param(name, promise, check, id=f"{name}-{check.__name__.removeprefix('check_')}")
        for name, promises in NOT_KEPT.items()
        for promise in promises
        for check in sorted(OF_PROMISES.get(promise, ()), key=lambda check: check.__name__)
    ],
)
def test_what_is_not_kept_fails_its_check(
    name: str, promise: Promise, check: Callable[[Maker], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each entry of the table fails its check if the table does not leave it out."""
    for module in (raw_http2, running, transport_lifecycle, transports):
        monkeypatch.setattr(module, "WAIT_S", SHORT_S)
    left = {other: why for other, why in NOT_KEPT[name].items() if other != promise}
    monkeypatch.setitem(NOT_KEPT, name, left)
    with pytest.raises((AssertionError, TimeoutError, DeadlineExceeded)):
        check(maker(kind_of(name)))
