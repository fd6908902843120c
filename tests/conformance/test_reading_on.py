"""The thread that reads runs requests, and one of them waits: another thread reads on, and the pool keeps its size."""

import pytest

from stock_service.rpc.concurrency import static_pool
from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.errors import FaultCode
from stock_service.rpc.server_core import reading
from stock_service.rpc.wire.framing import ReplyFrame
from tests.conformance.raw_http2 import RawHttp2, headers, message
from tests.conformance.raw_socket import RawSocket, frame
from tests.conformance.running import BLOCK, ECHO, WAIT_S, Kind, Limits, Probe, Running, until


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool lends a place from the first request on, and whatever took long before."""
    monkeypatch.setattr(static_pool, "LEARNT", 0)
    monkeypatch.setattr(static_pool, "REST", 0)
    monkeypatch.setattr(reading, "NEAR_NS", 10**15)


def pool_of(running: Running) -> StaticPool:
    """The server's; all of its threads sleep."""
    pool = running._executor
    assert isinstance(pool, StaticPool)
    until(lambda: len(pool._sleeping) == pool.workers, "all threads sleep")
    return pool


def test_others_are_read_and_refused_while_a_request_waits() -> None:
    """With a pool of one: the next waits, since the reading thread's counts; what is over the queue is refused."""
    with Probe() as probe, Running(Kind("sockets", "static-pool"), probe.service, Limits(1, 1)) as running:
        pool = pool_of(running)
        with RawSocket(running.address) as slow, RawSocket(running.address) as next_one:
            for _ in range(2):  # the thread that looked on is the next to be held up
                worked_on = pool_of(running).worked_on
                slow.send(frame(1, BLOCK))
                probe.entered()
                assert pool.worked_on == worked_on + 1, "the reading thread has it"
                next_one.send(frame(2, BLOCK, b"next"))
                until(lambda: pool.waiting == 1, "it is read")
                with RawSocket(running.address) as refused:
                    refused.send(frame(3))
                    reply = refused.reply()
                    assert reply is not None
                    assert reply.code == FaultCode.RESOURCE_EXHAUSTED
                assert probe.begun[-1] == b"", "the pool has one thread"
                probe.released.set()
                assert slow.reply() == ReplyFrame(1, 0, b"")
                assert next_one.reply() == ReplyFrame(2, 0, b"next")
                probe.entered()
                probe.released.clear()


def test_others_are_answered_while_a_call_waits() -> None:
    """Over HTTP/2, on the same connection and on another, by a pool of two."""
    with Probe() as probe, Running(Kind("grpc_static", "static-pool"), probe.service, Limits(2)) as running:
        pool = pool_of(running)
        with RawHttp2(running.address) as client, RawHttp2(running.address) as other:
            client.send(headers(1, BLOCK), message(1, b""))
            probe.entered()
            assert pool.worked_on == 1
            for each, stream in ((client, 3), (other, 1)):
                each.send(headers(stream, ECHO), message(stream, b""))
                assert each.status(stream) == 0
            probe.released.set()
            assert client.status(1) == 0


def test_a_stop_is_begun_while_a_request_waits() -> None:
    """The request that the reading thread runs is finished; with too little grace the server says that it was not."""
    with Probe() as probe:
        for grace_s, in_time in ((0.02, False), (WAIT_S, True)):
            running = Running(Kind("sockets", "static-pool"), probe.service, Limits(1, 1))
            pool = pool_of(running)
            with RawSocket(running.address) as client:
                client.send(frame(1, BLOCK))
                probe.entered()
                assert pool.worked_on == 1
                if in_time:
                    probe.released.set()
                assert running.stop(grace_s) is in_time
                probe.released.set()
                assert client.rest() == ([ReplyFrame(1, 0, b"")] if in_time else [])
            assert running.stop() or not in_time
            probe.released.clear()
