"""Bytes on a socket: frames with every cut and in every group, and bytes that are not frames."""

import struct

import pytest

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire.framing import ReplyFrame
from tests.conformance.raw_socket import DISPATCH_IDS, DISPATCHES, RawSocket, frame
from tests.conformance.running import BLOCK, Limits, Maker, Probe

both = pytest.mark.parametrize("make", DISPATCHES, ids=DISPATCH_IDS)


def test_connection_dispatch_keeps_the_order() -> None:
    """A connection that has its thread gets its replies in the order of its requests."""
    make = DISPATCHES[1]
    calls = [5, 3, 2**32 - 1, 1, 3]
    with make(Probe().service) as running, RawSocket(running.address) as client:
        client.send(b"".join(frame(call) for call in calls))
        client.half_close()
        assert [reply.call for reply in client.rest()] == calls


@both
def test_a_client_may_leave_in_the_middle_of_a_request(make: Maker) -> None:
    """Gone after any byte, politely or by reset: told nothing, and the next client is served, by the only worker."""
    whole = frame(1, payload=b"ab")
    with make(Probe().service, Limits(workers=1)) as running:
        for cut in range(1, len(whole)):
            for leave in (RawSocket.half_close, RawSocket.reset):
                with RawSocket(running.address) as client:
                    client.send(whole[:cut])
                    leave(client)
                    assert client.socket.fileno() < 0 or client.rest() == []
        with RawSocket(running.address) as after:
            assert after.echo()


@both
def test_a_client_may_be_gone_before_its_reply(make: Maker) -> None:
    """A connection reset while its handlers run costs nothing but the replies; the server still stops in time."""
    probe = Probe()
    with make(probe.service, Limits(workers=2)) as running, probe:
        with RawSocket(running.address) as client:
            client.send(frame(1, BLOCK) + frame(2, BLOCK))
            probe.entered()
            client.reset()
        probe.released.set()
        with RawSocket(running.address) as after:
            assert after.echo()
        assert running.stop()


@both
def test_call_number_0_is_refused_and_ends_the_connection(make: Maker) -> None:
    """A request with call number 0 ends its connection, with the reason. The request before it and other clients are
    answered."""
    with make(Probe().service) as running, RawSocket(running.address) as client, RawSocket(running.address) as other:
        client.send(frame(1) + frame(0) + frame(2))
        replies = client.rest()
        assert other.echo()
        assert sorted(reply.call for reply in replies) == [0, 1]
        (fault,) = (reply for reply in replies if reply.call == 0)
        assert fault.code == FaultCode.INVALID_ARGUMENT
        assert b"call number 0, allowed: 1 to 4294967295" in fault.payload


@both
def test_a_name_of_no_method_may_be_any_bytes(make: Maker) -> None:
    """Bytes that are not UTF-8, or no bytes, name no method: the answer is UNIMPLEMENTED, and the connection goes
    on."""
    with make(Probe().service) as running, RawSocket(running.address) as client:
        for name in (b"\xff\xfe", b"", b"\x00" * 255):
            client.send(struct.pack("!IIIB", 9 + len(name), 5, 0, len(name)) + name)
            reply = client.reply()
            assert reply is not None
            assert (reply.call, reply.code) == (5, FaultCode.UNIMPLEMENTED)
        assert client.echo()


@both
def test_a_request_whose_time_is_up_is_not_begun(make: Maker) -> None:
    """No handler starts once the client has given up; it is told DEADLINE_EXCEEDED."""
    probe = Probe()
    with make(probe.service, Limits(workers=1)) as running, RawSocket(running.address) as client, probe:
        client.send(frame(1, BLOCK, b"first") + frame(2, BLOCK, b"second", timeout_ms=20))
        probe.entered()
        assert client.silent(0.1)
        probe.released.set()
        first, second = client.reply(), client.reply()
        assert first == ReplyFrame(1, 0, b"first")
        assert second is not None
        assert (second.call, second.code) == (2, FaultCode.DEADLINE_EXCEEDED)
        assert probe.begun == [b"first"]
