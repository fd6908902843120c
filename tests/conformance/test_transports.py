"""Every transport, with every executor and dispatch, passes every check that these can bear on."""

from collections.abc import Callable, Iterator

import pytest

from tests.conformance import transport_lifecycle, transports
from tests.conformance.kept import GRPC, keeps
from tests.conformance.running import KINDS, Kind, Maker, maker

Check = Callable[[Maker], None]

SLOW_ON_GRPC = {
    transport_lifecycle.check_client_leaves_first,
    transports.check_overload,
    transports.check_payload_too_long,
}
"""Checks that open and close several channels, which takes grpcio a fifth of a second each."""

HELD_TOGETHER: set[Check] = {
    transports.check_overload,
    transport_lifecycle.check_accepted_is_finished,
    transport_lifecycle.check_stuck_handler,
}
"""Checks of what a server does while a handler blocks: it answers several requests at a time."""

BEFORE_THE_EXECUTOR: set[Check] = {
    transports.check_payload_too_long,
    transport_lifecycle.check_nobody_listens,
    transport_lifecycle.check_port_in_use,
}
"""Checks of what no executor ever sees: each is made with one of them."""

CASES = [
    pytest.param(
        check,
        kind,
        id=f"{check.__name__.removeprefix('check_')}-{kind}",
        marks=[pytest.mark.slow] if kind.transport in GRPC and check in SLOW_ON_GRPC else [],
    )
    for check in (*transports.CHECKS, *transport_lifecycle.CHECKS)
    for kind in KINDS
    if check not in HELD_TOGETHER or keeps(kind, "several at a time")
    if check not in BEFORE_THE_EXECUTOR or kind.executor == KINDS[0].executor
]


@pytest.fixture(autouse=True)
def forget_the_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A handler's error, kept by pytest for its log, holds on to the call and so to a whole gRPC server."""
    yield
    caplog.get_records("call").clear()


@pytest.mark.parametrize(("check", "kind"), CASES)
def test_transport(check: Check, kind: Kind) -> None:
    """The check's own words, for this transport, executor and dispatch."""
    check(maker(kind))


def test_every_check_is_run() -> None:
    """No check of the two modules is left out of its table."""
    for module in (transports, transport_lifecycle):
        written = [check for name, check in vars(module).items() if name.startswith("check_")]
        assert written == list(module.CHECKS)
