"""More requests than the workers answer: which requests wait, for how long, in which order, and which are refused."""

import pytest

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.server_core.options import ReadOptions
from stock_service.rpc.server_core.reactor import RequestServer
from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.transports.sockets import SocketOptions
from stock_service.rpc.wire.framing import ReplyFrame
from tests.conformance.raw_socket import DISPATCHES, RawSocket, frame
from tests.conformance.running import BLOCK, ECHO, Kind, Limits, Probe, Running, maker, until
from tests.raw_service import raw_service
from tests.reliability.fair_calls import called
from tests.reliability.open_loop import offer

REQUEST_DISPATCH = DISPATCHES[0]
ONE_WORKER = Limits(workers=1, queue_limit=1000)


def fall_behind(running: Running, client: RawSocket, probe: Probe) -> None:
    """Has the only worker stuck, and the server know it: from here on requests wait for their turn."""
    client.send(frame(1, BLOCK, b"stuck"))
    probe.entered()
    with RawSocket(running.address) as other:
        for call in range(2, 12):
            other.send(frame(call, BLOCK, b"behind"))
            assert other.silent(0.005), "a reply, though the worker is stuck"
        until(lambda: running._executor.under_way >= 3, "the executor has some waiting")


def test_what_waits_too_long_is_refused_while_it_waits() -> None:
    """A request that says its client's time is told RESOURCE_EXHAUSTED within that, though no worker is free."""
    probe = Probe()
    with REQUEST_DISPATCH(probe.service, ONE_WORKER) as running, probe:
        with RawSocket(running.address) as stuck, RawSocket(running.address) as client:
            fall_behind(running, stuck, probe)
            client.send(b"".join(frame(call, BLOCK, b"late", timeout_ms=1000) for call in range(1, 4)))
            refused = [client.reply() for _ in range(3)]
            assert {reply.code for reply in refused if reply} == {FaultCode.RESOURCE_EXHAUSTED}
            assert sorted(reply.call for reply in refused if reply) == [1, 2, 3]
            probe.released.set()
            assert client.echo()
        assert b"late" not in probe.begun


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["sockets", "grpc_static"])
def test_in_an_open_loop_every_request_is_answered_or_refused_by_name(transport: str) -> None:
    """Five times what one worker takes, for a second: some are answered, the rest refused, and none forgotten."""

    def slow(_: bytes) -> bytes:
        return b"" if sum(range(20_000)) else b"never"

    service = raw_service("tests.v1.Slow", {"/tests.v1.Slow/Get": slow})
    with maker(Kind(transport, "static-pool"))(service, Limits(workers=2, queue_limit=1000)) as running:
        path, address = "/tests.v1.Slow/Get", running.address
        offered = offer(transport, address, path, lambda _: b"", 10_000, 1.0, deadline_s=0.1)
        assert offered.unanswered == 0
        assert offered.answered_s
        assert offered.refused_s
        assert set(offered.codes) <= {FaultCode.RESOURCE_EXHAUSTED, FaultCode.DEADLINE_EXCEEDED}
        assert called(transport, address, 1, 1, 0.1, path, b"").failed == 0


def test_the_longest_request_is_within_any_budget() -> None:
    """A budget of less than one request is that of one."""
    options = ServeOptions(frame_bytes_max=300_000, own=SocketOptions(ReadOptions(buffered_bytes_max=65_536)))
    payload = bytes(300_004 - len(frame(1)))
    with REQUEST_DISPATCH(Probe().service, Limits(options=options)) as running:
        with RawSocket(running.address) as client, RawSocket(running.address) as other:
            client.send(frame(1, payload=payload)[:-1])
            assert other.echo(), "by now it is held"
            client.send(payload[-1:])
            assert client.reply() == ReplyFrame(1, 0, payload)


def test_whoever_holds_most_pays_for_what_is_too_much() -> None:
    """Half requests of all clients exceed the budget: the largest gets RESOURCE_EXHAUSTED, and the others go on."""
    options = ServeOptions(frame_bytes_max=250_000, own=SocketOptions(ReadOptions(buffered_bytes_max=300_000)))
    with REQUEST_DISPATCH(Probe().service, Limits(options=options)) as running:
        large, small = frame(1, payload=bytes(200_000)), frame(2, payload=bytes(120_000))
        clients = [RawSocket(running.address) for _ in range(4)]
        first, most, third, other = clients
        try:
            for client, half in ((first, small[:80_000]), (most, large[:150_000]), (third, small[:60_000])):
                client.send(half)
                assert other.echo(), "by now it is held"
            third.send(small[60_000:100_000])
            fault = most.reply()
            assert fault is not None
            assert (fault.call, fault.code) == (0, FaultCode.RESOURCE_EXHAUSTED)
            assert most.reply() is None
            first.send(small[80_000:])
            third.send(small[100_000:])
            for client in (first, third):
                assert client.reply() == ReplyFrame(2, 0, bytes(120_000))
                assert client.echo()
        finally:
            for client in clients:
                client.socket.close()


def test_replies_that_nobody_takes_count_too() -> None:
    """A client that asks for much and reads nothing is cut once its replies exceed the budget. Others are served."""
    service = raw_service("tests.v1.Large", {"/tests.v1.Large/Get": lambda _: bytes(4_000_000), ECHO: bytes})
    options = ServeOptions(own=SocketOptions(ReadOptions(buffered_bytes_max=5_000_000)), frame_bytes_max=4_100_000)
    with REQUEST_DISPATCH(service, Limits(options=options)) as running:
        with RawSocket(running.address, receive_bytes=4096) as deaf, RawSocket(running.address) as other:
            deaf.send(b"".join(frame(call, "/tests.v1.Large/Get") for call in range(1, 9)))
            server = running.server
            assert isinstance(server, RequestServer)
            until(lambda: len(server._connections.by_fd) == 1 and other.echo(), "the connection is cut")
