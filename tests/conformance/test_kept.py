"""What ``kept`` leaves out of a check is really not kept, and a server that breaks a promise unsaid is caught."""

from collections.abc import Callable

import pytest

from stock_service.rpc.errors import DeadlineExceeded
from tests.conformance import running, transport_lifecycle, transports
from tests.conformance.running import ECHO, Kind, Maker, Probe, Running, maker, stopping
from tests.conformance.test_transports import HELD_TOGETHER

SHORT_S = 0.4
"""How long a check waits here for what never comes."""

FAILING: set[Callable[[Maker], None]] = HELD_TOGETHER - {transport_lifecycle.check_stuck_handler}
"""The checks that a loop fails. That of a stuck handler is left out: it leaves the loop's thread stuck."""


@pytest.fixture(autouse=True)
def wait_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that fails does so soon."""
    for module in (running, transport_lifecycle, transports):
        monkeypatch.setattr(module, "WAIT_S", SHORT_S)


@pytest.mark.slow
@pytest.mark.parametrize("check", sorted(FAILING, key=lambda check: getattr(check, "__name__", "")))
def test_what_is_not_kept_fails_its_check(check: Callable[[Maker], None]) -> None:
    """On a loop, which the checks leave out: it is not left out for nothing."""
    with pytest.raises((AssertionError, TimeoutError, DeadlineExceeded)):
        check(maker(Kind("grpc_aio", "static-pool", "loop")))


@pytest.mark.slow
def test_a_server_that_takes_clients_while_it_stops_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that only begins to stop when nothing is left to do."""
    with Running(Kind("sockets", "static-pool"), Probe().service, running.Limits()) as serving:
        assert serving.connect().call(ECHO, b"1", SHORT_S) == b"1"
        with monkeypatch.context() as planted:
            planted.setattr(serving, "stop", lambda _grace_s: True)
            with pytest.raises(AssertionError, match="the server stops accepting"):
                stopping(serving)
