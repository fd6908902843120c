"""Every transport, with every executor and dispatch, passes every check."""

from collections.abc import Callable, Iterator

import pytest

from tests.conformance import transport_lifecycle, transports
from tests.conformance.running import KINDS, Kind, Maker, maker

Check = Callable[[Maker], None]


def named(check: Check) -> str:
    """A check's name, to name a test by."""
    return check.__name__.removeprefix("check_")


@pytest.fixture(autouse=True)
def forget_the_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A handler's error, kept by pytest for its log, holds on to the call and so to a whole gRPC server."""
    yield
    caplog.get_records("call").clear()


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("check", transports.CHECKS, ids=named)
def test_answers(check: Check, kind: Kind) -> None:
    """The check's own words, for this transport, executor and dispatch."""
    check(maker(kind))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("check", transport_lifecycle.CHECKS, ids=named)
def test_lifecycle(check: Check, kind: Kind) -> None:
    """The check's own words, for this transport, executor and dispatch."""
    check(maker(kind))


def test_every_check_is_run() -> None:
    """No check of the two modules is left out of its table."""
    for module in (transports, transport_lifecycle):
        written = [check for name, check in vars(module).items() if name.startswith("check_")]
        assert written == list(module.CHECKS)
