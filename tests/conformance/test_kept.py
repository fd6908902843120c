"""Promises that ``kept`` leaves out are really not kept."""

from collections.abc import Callable

import pytest

from stock_service.rpc.errors import DeadlineExceeded
from tests.conformance import raw_http2, running, transport_lifecycle, transports
from tests.conformance.hostile_grpc import (
    HOLDS_NONE,
    SURVIVES,
    check_a_path_that_is_no_text,
    check_calls_without_a_message,
)
from tests.conformance.kept import NOT_KEPT, Promise
from tests.conformance.running import Kind, Maker, maker
from tests.conformance.test_transports import HELD_TOGETHER

SHORT_S = 0.4
"""How long a check waits here for what never comes."""

CHECKS: dict[Promise, set[Callable[[Maker], None]]] = {
    "several at a time": HELD_TOGETHER - {transport_lifecycle.check_stuck_handler},
    HOLDS_NONE: {check_calls_without_a_message},
    SURVIVES: {check_a_path_that_is_no_text},
}
"""The checks that hold a server to a promise. That of a stuck handler is left out: it leaves the loop's thread
stuck."""


@pytest.fixture(autouse=True)
def wait_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that fails does so soon."""
    for module in (raw_http2, running, transport_lifecycle, transports):
        monkeypatch.setattr(module, "WAIT_S", SHORT_S)


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
        for check in sorted(CHECKS.get(promise, ()), key=lambda check: check.__name__)
    ],
)
def test_what_is_not_kept_fails_its_check(
    name: str, promise: Promise, check: Callable[[Maker], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each entry of the table fails its check if the table does not leave it out."""
    left = {other: why for other, why in NOT_KEPT[name].items() if other != promise}
    monkeypatch.setitem(NOT_KEPT, name, left)
    with pytest.raises((AssertionError, TimeoutError, DeadlineExceeded)):
        check(maker(kind_of(name)))
