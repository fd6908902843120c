"""Facts of a call besides its request, as a service sees them on every transport: sender, deadline, metadata."""

import time

import grpc
import pytest

from stock_service.rpc.call import Call
from stock_service.rpc.service import Service
from tests.conformance.kept import GRPC
from tests.conformance.running import Kind, Maker, Running, maker, one_executor_each
from tests.raw_service import raw_call

SEEN = "/tests.v1.Seen/See"


def seeing(make: Maker) -> tuple[Running, list[Call]]:
    """A server whose one method keeps its call."""
    calls: list[Call] = []

    def see(call: Call) -> bytes:
        calls.append(call)
        return call.payload

    return make(Service("tests.v1.Seen", {SEEN: raw_call(see)})), calls


@pytest.mark.parametrize("kind", one_executor_each(2), ids=str)
def test_a_service_sees_payload_peer_and_deadline(kind: Kind) -> None:
    """The deadline is the client's, to within what the way takes; a peer is a connection, by host and port."""
    running, calls = seeing(maker(kind))
    with running:
        one, other = running.connect(), running.connect()
        began_ns = time.monotonic_ns()
        assert one.call(SEEN, b"first", 7.0) == b"first"
        ended_ns = time.monotonic_ns()
        one.call(SEEN, b"second", 7.0)
        other.call(SEEN, b"third", 7.0)
    first = calls[0]
    assert [call.payload for call in calls] == [b"first", b"second", b"third"]
    assert first.deadline_ns is not None
    grain_ns = 10_000_000  # of a timeout on the wire, and between the clock of gRPC's deadlines and ours
    assert began_ns + 7_000_000_000 - grain_ns <= first.deadline_ns <= ended_ns + 7_000_000_000 + grain_ns
    host, _, port = first.peer.partition(":")
    assert host == "127.0.0.1"
    assert 0 < int(port) < 65536
    assert first.peer == calls[1].peer != calls[2].peer
    assert kind.transport != "sockets" or first.metadata == ()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in one_executor_each(3) if kind.transport in GRPC], ids=str)
def test_grpc_carries_metadata_and_no_deadline_where_none_is_set(kind: Kind) -> None:
    """Metadata arrives in the order of the sends, text and bytes. Without a time limit the deadline is None."""
    running, calls = seeing(maker(kind))
    with running, grpc.insecure_channel(f"{running.address[0]}:{running.address[1]}") as channel:
        sent = (("tenant", "a"), ("key-bin", b"\xff\x00"), ("tenant", "b"))
        see: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(SEEN)
        see(b"", metadata=sent)
    assert [(key, value) for key, value in calls[0].metadata if key in ("tenant", "key-bin")] == list(sent)
    assert calls[0].deadline_ns is None
