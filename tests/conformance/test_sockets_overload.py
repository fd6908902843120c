"""More requests than the workers answer: who waits, for how long, whose turn it is, and who yields at the limit."""

import pytest

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.server_core.options import ReadOptions
from stock_service.rpc.server_core.reactor import RequestServer
from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.transports.sockets import SocketOptions
from stock_service.rpc.wire.framing import ReplyFrame
from tests.conformance.raw_socket import DISPATCHES, RawSocket, frame
from tests.conformance.running import BLOCK, ECHO, Limits, Probe, Running, until
from tests.raw_service import raw_service

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
    """Whoever pipelines many requests does not hold up the one of another, which came after them."""
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


def test_a_deadline_counts_what_a_request_waits_unread() -> None:
    """One that came while its connection was not read, or that the pipeline's limit held back, is late by the time
    since then: no handler begins with it."""
    probe = Probe()
    limits = Limits(options=ServeOptions(pipeline_max=1))
    with REQUEST_DISPATCH(probe.service, limits) as running, RawSocket(running.address) as client, probe:
        client.send(frame(1, BLOCK) + frame(2, BLOCK, b"late", timeout_ms=50))
        probe.entered()
        client.send(frame(3, BLOCK, b"late", timeout_ms=50))
        assert client.silent(0.1)
        probe.released.set()
        replies = {reply.call: reply.code for reply in (client.reply() for _ in range(3)) if reply}
        assert replies == {1: 0, 2: FaultCode.DEADLINE_EXCEEDED, 3: FaultCode.DEADLINE_EXCEEDED}
        assert b"late" not in probe.begun


def test_so_it_does_with_connection_dispatch() -> None:
    """A request that comes while another is answered is late by the time since then, and nothing else is refused."""
    probe = Probe()
    with DISPATCHES[1](probe.service, Limits()) as running, RawSocket(running.address) as client, probe:
        client.send(frame(1, BLOCK))
        probe.entered()
        client.send(frame(2, BLOCK, b"late", timeout_ms=50) + frame(3, ECHO, b"in time", timeout_ms=60_000))
        assert client.silent(0.1)
        probe.released.set()
        replies = [client.reply() for _ in range(3)]
        assert [(reply.call, reply.code) for reply in replies if reply] == [
            (1, 0),
            (2, FaultCode.DEADLINE_EXCEEDED),
            (3, 0),
        ]
        assert b"late" not in probe.begun
        client.send(frame(4, ECHO, timeout_ms=1000))
        assert client.reply() == ReplyFrame(4, 0, b""), "what comes after a reply has waited for nothing"


def test_a_deadline_counts_the_wait_of_a_connection_for_a_thread() -> None:
    """With connection dispatch, where all threads have one."""
    probe = Probe()
    with DISPATCHES[1](probe.service, ONE_WORKER) as running, probe:
        with RawSocket(running.address) as served, RawSocket(running.address) as surplus:
            served.send(frame(1, BLOCK))
            probe.entered()
            surplus.send(frame(2, BLOCK, b"late", timeout_ms=50))
            assert surplus.silent(0.1)
            probe.released.set()
            assert served.reply() == ReplyFrame(1, 0, b"")
            served.socket.close()
            reply = surplus.reply()
            assert reply is not None
            assert reply.code == FaultCode.DEADLINE_EXCEEDED
        assert b"late" not in probe.begun


def test_a_connection_that_said_nothing_while_it_waited_is_not_late() -> None:
    """Its request counts from when it came, not from when the connection was accepted."""
    probe = Probe()
    with DISPATCHES[1](probe.service, ONE_WORKER) as running, probe:
        with RawSocket(running.address) as served, RawSocket(running.address) as surplus:
            served.send(frame(1, BLOCK))
            probe.entered()
            assert surplus.silent(1.2)
            surplus.send(frame(2, ECHO, b"just now", timeout_ms=1000))
            probe.released.set()
            assert served.reply() == ReplyFrame(1, 0, b"")
            served.socket.close()
            assert surplus.reply() == ReplyFrame(2, 0, b"just now")


@pytest.mark.slow
def test_the_longest_idle_connection_yields_to_a_new_one() -> None:
    """At the limit, once it has been idle for a second; the one that was active since stays."""
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
    """Half requests over the budget, of all together: the largest is told RESOURCE_EXHAUSTED, the others go on."""
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
    """A client that asks for much and reads nothing is cut once that is too much; others are served."""
    service = raw_service("tests.v1.Large", {"/tests.v1.Large/Get": lambda _: bytes(4_000_000), ECHO: bytes})
    options = ServeOptions(own=SocketOptions(ReadOptions(buffered_bytes_max=5_000_000)), frame_bytes_max=4_100_000)
    with REQUEST_DISPATCH(service, Limits(options=options)) as running:
        with RawSocket(running.address, receive_bytes=4096) as deaf, RawSocket(running.address) as other:
            deaf.send(b"".join(frame(call, "/tests.v1.Large/Get") for call in range(1, 9)))
            server = running.server
            assert isinstance(server, RequestServer)
            until(lambda: len(server._connections.by_fd) == 1 and other.echo(), "the connection is cut")
