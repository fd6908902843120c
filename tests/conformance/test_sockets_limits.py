"""The socket server's limits in time and number. Only the client that exceeds a limit notices it."""

import select
import socket
import struct
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.server_core import closing
from stock_service.rpc.server_core.options import ReadOptions
from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.transports.sockets import SocketOptions
from stock_service.rpc.wire.framing import ReplyFrame
from tests.conformance.raw_socket import DISPATCH_IDS, DISPATCHES, Flood, RawSocket, frame
from tests.conformance.running import BLOCK, ECHO, WAIT_S, Limits, Maker, Probe, until
from tests.raw_service import raw_service

both = pytest.mark.parametrize("make", DISPATCHES, ids=DISPATCH_IDS)


def gone(client: RawSocket) -> bool:
    """Tell whether the server has cut the connection, which shows without reading."""
    poll = select.poll()
    poll.register(client.socket, 0)
    return bool(poll.poll(0))


@pytest.mark.parametrize("cut", [1, 4, 8, 20])
@both
def test_a_request_that_is_never_whole_ends_its_connection(make: Maker, cut: int) -> None:
    """Half a request, of header or body, gets DEADLINE_EXCEEDED after ``read_timeout_s``, and its connection closes."""
    options = ServeOptions(own=SocketOptions(ReadOptions(read_timeout_s=0.05)))
    with make(Probe().service, Limits(options=options)) as running:
        with RawSocket(running.address) as other, RawSocket(running.address) as client:
            client.send(frame(1)[:cut])
            (fault,) = client.rest()
            assert (fault.call, fault.code) == (0, FaultCode.DEADLINE_EXCEEDED)
            assert b"0.05 s" in fault.payload
            assert other.echo()


def test_replies_that_nobody_takes_hold_back_the_requests_behind_them() -> None:
    """For a client that takes no reply the server makes a few large replies, and not all thousand."""
    made: list[bytes] = []

    def large(payload: bytes) -> bytes:
        made.append(payload)
        return bytes(200_000)

    service = raw_service("tests.v1.Large", {"/tests.v1.Large/Get": large, ECHO: bytes})
    with DISPATCHES[0](service, Limits(queue_limit=4096, options=ServeOptions(pipeline_max=4))) as running:
        with RawSocket(running.address, receive_bytes=4096) as client, RawSocket(running.address) as other:
            client.send(b"".join(frame(call, "/tests.v1.Large/Get") for call in range(1, 1001)))
            for _ in range(50):  # once these are answered, the server has read the client's requests
                assert other.echo()
            assert len(made) < 100


TRICKLE = "import socket, sys\nclient = socket.socket(fileno=int(sys.argv[1]))\nwhile True: client.send(b'x')"


@pytest.mark.slow
@both
def test_a_request_that_trickles_in_ends_its_connection(make: Maker) -> None:
    """Bytes that never stop coming, sent by another process, do not prolong ``read_timeout_s``."""
    options = ServeOptions(own=SocketOptions(ReadOptions(read_timeout_s=0.3)), frame_bytes_max=1 << 30)
    with make(Probe().service, Limits(options=options)) as running, RawSocket(running.address) as client:
        client.send(struct.pack("!I", 1 << 30))
        descriptor = client.socket.fileno()
        command = [sys.executable, "-S", "-E", "-c", TRICKLE, str(descriptor)]
        began_s = time.monotonic()
        with subprocess.Popen(command, pass_fds=[descriptor], stderr=subprocess.DEVNULL) as trickling:
            try:
                trickling.wait(WAIT_S / 2)
            finally:
                trickling.kill()
        assert time.monotonic() - began_s < 2.0, "read_timeout_s is 0.3"


@both
def test_a_client_that_never_reads_is_cut_off(make: Maker) -> None:
    """A client that takes no replies is closed after ``read_timeout_s``. Others are served meanwhile."""
    options = ServeOptions(own=SocketOptions(ReadOptions(read_timeout_s=0.1)), pipeline_max=4)
    with make(Probe().service, Limits(options=options)) as running:
        with RawSocket(running.address, receive_bytes=4096) as deaf, RawSocket(running.address) as other:
            deaf.socket.setblocking(False)
            requests = frame(1, payload=bytes(100_000)) * 10
            until(lambda: full(deaf.socket, requests) and other.echo(), "the server reads no more")
            until(lambda: gone(deaf) and other.echo(), "the connection is cut")


def full(client: socket.socket, data: bytes) -> bool:
    """Sends what the socket takes; whether it takes no more at all."""
    try:
        return client.send(data) == 0
    except BlockingIOError:
        return True


@both
def test_a_slow_reader_gets_the_whole_reply(make: Maker) -> None:
    """A reply beyond what the kernel holds waits for a client that reads late, and arrives whole after a half-close."""
    payload, probe = bytes(range(256)) * 4096 * 16, Probe()
    options = ServeOptions(frame_bytes_max=len(payload) + 100)
    with make(probe.service, Limits(options=options)) as running, probe:
        with RawSocket(running.address, receive_bytes=4096) as client:
            client.send(frame(1, BLOCK, payload))
            client.half_close()
            probe.entered()
            probe.released.set()
            with RawSocket(running.address) as other:
                assert other.echo()
            client.take_up_to(options.frame_bytes_max)
            assert client.rest() == [ReplyFrame(1, 0, payload)]


def test_a_reset_with_a_reply_unsent_harms_nobody() -> None:
    """A client that has half-closed, and resets while its reply waits for it to read: the server goes on."""
    probe, size = Probe(), 16 << 20
    limits = Limits(workers=1, options=ServeOptions(frame_bytes_max=size + 100))
    with DISPATCHES[0](probe.service, limits) as running, probe:
        with RawSocket(running.address, receive_bytes=4096) as client, RawSocket(running.address) as other:
            client.send(frame(1, BLOCK, bytes(size)))
            client.half_close()
            probe.entered()
            probe.released.set()
            assert other.echo(), "the only worker has sent what the client took of its reply"
            assert other.echo(), "the reading thread has seen that the rest waits"
            client.reset()
            assert other.echo()
            assert other.echo()


@both
def test_connections_over_the_limit_are_told_so(make: Maker) -> None:
    """A connection over the limit gets RESOURCE_EXHAUSTED and is closed. The others go on, and a client that leaves
    makes room."""
    with make(Probe().service, Limits(options=ServeOptions(connections_max=2))) as running:
        with RawSocket(running.address) as second:
            with RawSocket(running.address) as first:
                assert first.echo()
                assert second.echo()
                with RawSocket(running.address) as surplus:
                    (fault,) = surplus.rest()
                assert (fault.call, fault.code) == (0, FaultCode.RESOURCE_EXHAUSTED)
                assert fault.payload == b"2 connections are open, the limit"
                assert first.echo()
            until(lambda: served(running.address), "there is room again")
            assert second.echo()


def served(address: tuple[str, int]) -> bool:
    """Tell whether a new connection is served."""
    with RawSocket(address) as client:
        return client.echo()


def test_requests_over_the_queue_are_refused_one_by_one() -> None:
    """Pipelined requests that workers and queue hold are answered. Each further one is refused at once."""
    probe = Probe()
    with DISPATCHES[0](probe.service, Limits(workers=1, queue_limit=2)) as running, probe:
        with RawSocket(running.address) as client:
            client.send(frame(1, BLOCK))
            probe.entered()
            client.send(b"".join(frame(call, BLOCK) for call in range(2, 11)))
            refused = [client.reply() for _ in range(7)]
            assert {reply.code for reply in refused if reply} == {FaultCode.RESOURCE_EXHAUSTED}
            probe.released.set()
            answered = [client.reply() for _ in range(3)]
            assert sorted(reply.call for reply in refused + answered if reply) == list(range(1, 11))
            assert client.echo()


def test_with_connection_dispatch_the_surplus_starves_until_someone_leaves() -> None:
    """With more clients than workers, the surplus is connected and not answered. It is served once a worker is free."""
    with DISPATCHES[1](Probe().service, Limits(workers=2)) as running:
        with RawSocket(running.address) as first, RawSocket(running.address) as second:
            assert first.echo()
            assert second.echo()
            with RawSocket(running.address) as third, RawSocket(running.address) as fourth:
                third.send(frame(3))
                fourth.send(frame(4))
                assert third.silent(0.1)
                first.half_close()
                assert third.reply() == ReplyFrame(3, 0, b"")
                assert second.echo()
                assert fourth.silent(0.1)
                third.half_close()
                assert fourth.reply() == ReplyFrame(4, 0, b"")


@pytest.mark.slow
@both
def test_a_connection_is_not_idle_while_it_is_served(make: Maker) -> None:
    """A connection whose request took longer than ``idle_timeout_s`` is kept after the reply, as long as any
    connection."""
    probe = Probe()
    limits = Limits(options=ServeOptions(idle_timeout_s=0.3))
    with make(probe.service, limits) as running, RawSocket(running.address) as client, probe:
        client.send(frame(1, BLOCK))
        probe.entered()
        assert client.silent(0.4)
        probe.released.set()
        assert client.reply() == ReplyFrame(1, 0, b"")
        assert client.silent(0.1), "closed as idle"
        assert client.echo()


@pytest.mark.slow
@both
def test_a_client_that_sends_without_pause_does_not_hold_up_the_stop(make: Maker) -> None:
    """Requests from before the stop are answered, and no more is read: the stop ends within its grace."""
    with make(Probe().service, Limits(options=ServeOptions(pipeline_max=4))) as running:
        with Flood(running.address) as flood:
            until(lambda: flood.replies > 1000, "the flood is answered")
            assert running.server.stop(2.0), "the server read on for all of its grace"


def test_many_that_leave_at_once_do_not_hold_up_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reading thread closes few of them at a time, and does not sleep while some are left."""
    monkeypatch.setattr(closing, "CLOSING_NS", -1)  # one at a time
    with DISPATCHES[0](Probe().service) as running, ExitStack() as stack:
        clients = [stack.enter_context(RawSocket(running.address)) for _ in range(100)]
        for client in clients:
            client.send(bytes(4))
            fault = client.reply()
            assert fault is not None
            assert fault.code == FaultCode.INVALID_ARGUMENT
        assert running.server.stop(0.5), "clients that stay held it up"
