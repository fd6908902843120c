"""Work that one connection may give a server: requests held back, replies not taken, requests that take long."""

import pytest

from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.wire.framing import ReplyFrame
from tests.conformance.raw_socket import DISPATCH_IDS, DISPATCHES, RawSocket, frame
from tests.conformance.running import BLOCK, ECHO, Limits, Maker, Probe
from tests.raw_service import raw_service

REQUEST_DISPATCH = DISPATCHES[0]


def test_replies_that_nobody_takes_hold_back_the_requests_behind_them() -> None:
    """For a client that takes nothing a few large replies are made, and not all that it asked for."""
    made: list[bytes] = []

    def large(payload: bytes) -> bytes:
        made.append(payload)
        return bytes(200_000)

    service = raw_service("tests.v1.Large", {"/tests.v1.Large/Get": large, ECHO: bytes})
    with REQUEST_DISPATCH(service, Limits(queue_limit=4096, options=ServeOptions(pipeline_max=4))) as running:
        with RawSocket(running.address, receive_bytes=4096) as client, RawSocket(running.address) as other:
            client.send(b"".join(frame(call, "/tests.v1.Large/Get") for call in range(1, 1001)))
            for _ in range(50):  # behind what was read of the client: it is done when these are
                assert other.echo()
            assert len(made) < 100


@pytest.mark.slow
@pytest.mark.parametrize("make", DISPATCHES, ids=DISPATCH_IDS)
def test_a_connection_is_not_idle_while_it_is_served(make: Maker) -> None:
    """A connection whose request took longer than ``idle_timeout_s`` is kept after the reply, as long as any
    connection."""
    probe = Probe()
    limits = Limits(options=ServeOptions(idle_timeout_s=0.6))
    with make(probe.service, limits) as running, RawSocket(running.address) as client, probe:
        client.send(frame(1, BLOCK))
        probe.entered()
        assert client.silent(0.8)
        probe.released.set()
        assert client.reply() == ReplyFrame(1, 0, b"")
        assert client.silent(0.2), "closed as idle"
        assert client.echo()
