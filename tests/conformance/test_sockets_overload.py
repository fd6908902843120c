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


def test_each_connection_has_its_turn() -> None:
    """A client that pipelines many requests does not hold up a later request of another client."""
    probe = Probe()
    own = SocketOptions(ReadOptions(delay_target_ms=0))  # however slow the machine is, nothing is refused
    limits = Limits(workers=1, queue_limit=1000, options=ServeOptions(own=own))
    with REQUEST_DISPATCH(probe.service, limits) as running, probe:
        with RawSocket(running.address) as greedy, RawSocket(running.address) as polite:
            fall_behind(running, greedy, probe)
            greedy.send(b"".join(frame(call, BLOCK, b"greedy") for call in range(100, 150)))
            assert greedy.silent(0.05)
            polite.send(frame(1, BLOCK, b"polite"))
            assert polite.silent(0.05)
            probe.released.set()
            assert polite.reply() == ReplyFrame(1, 0, b"polite")
            assert {reply.code for reply in (greedy.reply() for _ in range(51)) if reply} == {0}
        begun = [each for each in probe.begun if each != b"behind"]
        assert begun.index(b"polite") < 30, "it waited behind them"


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


@pytest.mark.slow
def test_the_longest_idle_connection_yields_to_a_new_one() -> None:
    """At the limit the connection that was idle longest, for over a second, is closed. One that was active since
    stays."""
    with REQUEST_DISPATCH(Probe().service, Limits(options=ServeOptions(connections_max=2))) as running:
        with RawSocket(running.address) as idle, RawSocket(running.address) as active:
            assert idle.echo()
            assert active.echo()
            assert idle.silent(1.1)
            assert active.echo()
            with RawSocket(running.address) as newcomer:
                assert newcomer.echo()
                assert idle.reply() is None
                assert (idle.goodbyes, active.goodbyes) == (1, 0)
                assert active.echo()


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


def test_who_pays_is_not_told_that_what_was_begun_had_no_effect() -> None:
    """RESOURCE_EXHAUSTED would say so of all its requests: where one may be begun, it is told INTERNAL."""
    options = ServeOptions(frame_bytes_max=250_000, own=SocketOptions(ReadOptions(buffered_bytes_max=300_000)))
    probe = Probe()
    with REQUEST_DISPATCH(probe.service, Limits(options=options)) as running, probe:
        with RawSocket(running.address) as payer, RawSocket(running.address) as other:
            payer.send(frame(1, BLOCK, b"begun"))
            probe.entered()
            payer.send(frame(2, payload=bytes(200_000))[:190_000])
            assert other.echo(), "by now it is held"
            other.send(frame(3, payload=bytes(180_000))[:150_000])
            fault = payer.reply()
            assert fault is not None
            assert (fault.call, fault.code) == (0, FaultCode.INTERNAL)
            probe.released.set()
            assert [payer.reply(), payer.reply()] == [ReplyFrame(1, 0, b"begun"), None], "it had its effect"


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
