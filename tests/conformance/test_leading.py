"""The leader runs requests, and one of them waits: a follower reads on, and the pool keeps its size."""

import pytest

from stock_service.rpc.concurrency import leader_followers
from stock_service.rpc.concurrency.leader_followers import LeaderFollowers
from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire.framing import ReplyFrame
from tests.conformance.raw_socket import RawSocket, frame
from tests.conformance.running import BLOCK, Kind, Limits, Probe, Running, until


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that runs the first request and goes on to do so, with no memory of slow ones."""
    monkeypatch.setattr(leader_followers, "REST", 0)
    monkeypatch.setattr(leader_followers, "_NEAR_NS", 1 << 62)


def pool_of(running: Running) -> LeaderFollowers:
    """The server's; nothing runs."""
    pool = running._executor
    assert isinstance(pool, LeaderFollowers)
    until(lambda: pool._running == 0, "all threads are idle")
    return pool


def test_others_are_read_and_refused_while_a_request_waits() -> None:
    """With one worker the next request waits, since the leader's request counts. Requests over the queue are
    refused."""
    with Probe() as probe, Running(Kind("sockets", "leader-followers"), probe.service, Limits(1, 1)) as running:
        pool = pool_of(running)
        with RawSocket(running.address) as slow, RawSocket(running.address) as next_one:
            for _ in range(2):  # the thread that follows is the next to be held up
                batches = pool_of(running)._batches
                slow.send(frame(1, BLOCK))
                probe.entered()
                assert pool._batches == batches + 1, "the leader has it"
                next_one.send(frame(2, BLOCK, b"next"))
                until(lambda: pool.under_way == pool.workers + 1, "it is read")
                with RawSocket(running.address) as refused:
                    refused.send(frame(3))
                    reply = refused.reply()
                    assert reply is not None
                    assert reply.code == FaultCode.RESOURCE_EXHAUSTED
                assert probe.begun[-1] == b"", "the pool has one worker"
                probe.released.set()
                assert slow.reply() == ReplyFrame(1, 0, b"")
                assert next_one.reply() == ReplyFrame(2, 0, b"next")
                probe.entered()
                probe.released.clear()
