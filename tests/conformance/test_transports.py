"""Every transport and dispatch passes every check, with every executor that can bear on it."""

from collections.abc import Callable

import pytest

from stock_service.rpc.grpcio import draining
from tests.conformance import transport_lifecycle, transports
from tests.conformance.kept import GRPC, keeps
from tests.conformance.running import KINDS, Kind, Maker, maker, one_executor_each

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
        kind,
        id=f"{check.__name__.removeprefix('check_')}-{kind}",
        marks=[pytest.mark.slow] * (kind.transport in GRPC and check in SLOW_ON_GRPC)
        + [pytest.mark.alone] * (check in ALONE),
    )
    for check in CHECKS
    for kind in kinds_for(check)
]


@pytest.mark.parametrize(("check", "kind"), CASES)
def test_transport(check: Check, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check's own words, for this transport, executor and dispatch."""
    monkeypatch.setattr(draining, "SERVING_S", 0.2)  # clients that call without pause keep the cores so long
    check(maker(kind))


def test_every_kind_is_tried() -> None:
    """Over all checks every kind is tried, though a check has only one executor for each transport."""
    assert {kind for check in set(CHECKS) - ON_EVERY_EXECUTOR for kind in kinds_for(check)} == set(KINDS)


def test_every_check_is_run() -> None:
    """No check of the two modules is left out of its table."""
    for module in (transports, transport_lifecycle):
        written = [check for name, check in vars(module).items() if name.startswith("check_")]
        assert written == list(module.CHECKS)
