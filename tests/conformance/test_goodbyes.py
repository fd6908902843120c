"""The frame with which the sockets server ends a connection: once, as the last frame, and never too soon."""

import pytest

from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.wire.framing import ReplyFrame
from tests.conformance.raw_socket import DISPATCH_IDS, DISPATCHES, RawSocket, frame
from tests.conformance.running import BLOCK, Limits, Maker, Probe, stopping

both = pytest.mark.parametrize("make", DISPATCHES, ids=DISPATCH_IDS)


@both
def test_an_idle_connection_is_told_before_it_is_closed(make: Maker) -> None:
    """An idle connection gets a goodbye before its first request, and after one."""
    with make(Probe().service, Limits(options=ServeOptions(idle_timeout_s=0.05))) as running:
        with RawSocket(running.address) as never, RawSocket(running.address) as once:
            assert once.echo()
            for client in (never, once):
                assert client.rest() == []
                assert client.goodbyes == 1


@both
def test_a_stop_tells_who_is_idle_and_who_has_the_last_reply(make: Maker) -> None:
    """At a stop idle clients get a goodbye at once. Others get it after the replies to begun requests."""
    probe = Probe()
    with make(probe.service) as running, probe:
        with RawSocket(running.address) as idle, RawSocket(running.address) as asking:
            assert idle.echo()
            asking.send(frame(1, BLOCK))
            probe.entered()
            stop = stopping(running)
            assert idle.rest() == []
            assert asking.silent(0.05), "a goodbye before the reply"
            probe.released.set()
            assert asking.rest() == [ReplyFrame(1, 0, b"")]
            assert (idle.goodbyes, asking.goodbyes) == (1, 1)
            assert stop.result()


@both
def test_a_request_that_outlasts_the_grace_gets_no_goodbye(make: Maker) -> None:
    """The request was begun, and a goodbye would say that it was not."""
    probe = Probe()
    with make(probe.service) as running, probe:
        with RawSocket(running.address) as client:
            client.send(frame(1, BLOCK))
            probe.entered()
            assert not running.server.stop(0.1)
            probe.released.set()
            assert client.rest() == []
            assert client.goodbyes == 0
