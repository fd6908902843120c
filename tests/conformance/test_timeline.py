"""The timeline of every server: each request has its own stamps in their order, on every transport and executor."""

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from experiments.results.stages import ALL, Stages, load, summary
from stock_service.rpc.concurrency import EXECUTORS
from stock_service.rpc.errors import FaultCode
from stock_service.rpc.health import CHECK
from stock_service.rpc.server_core.reactor import RequestServer
from stock_service.rpc.service import Service
from stock_service.rpc.timeline import NO_METHOD, Timeline
from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.wire.framing import ReplyFrame
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import LOCKINGS, Locking, stamped
from stock_service.trading.service import LOOKUP, TRADE, stock_service
from stock_service.v1 import stock_pb2
from tests.conformance.kept import GRPC, keeps
from tests.conformance.raw_socket import DISPATCHES, RawSocket, frame
from tests.conformance.running import (
    BLOCK,
    ECHO,
    FAIL,
    WAIT_S,
    Kind,
    Limits,
    Maker,
    Probe,
    maker,
    one_executor_each,
    outcome,
    until,
)
from tests.conformance.running import Running as RunningServer
from tests.covering import each_once
from tests.raw_service import raw_service

FOREVER_NS = 1 << 62

LOOKUP_ONE = stock_pb2.LookupRequest(name="FishCo").SerializeToString()
TRADE_ONE = stock_pb2.TradeRequest(name="FishCo", quantity=1, side=stock_pb2.SIDE_BUY).SerializeToString()

POOLS = [name for name in EXECUTORS if name != "thread-per-task"]
"""The executors where a request may wait for a thread."""


def timed(make: Maker, service: Service, timeline: Timeline, workers: int = 4, pipeline_max: int = 64) -> RunningServer:
    """A server that keeps a timeline."""
    return make(service, Limits(workers=workers, options=ServeOptions(timeline=timeline, pipeline_max=pipeline_max)))


def stages_of(timeline: Timeline, folder: Path) -> Stages:
    """Stages of a timeline, read from the file that it writes. Its server has stopped: a reply comes before its row."""
    timeline.write(folder / "timeline")
    return load(folder / "timeline")


def stamped_stocks(timeline: Timeline, name: str = "mutex") -> Service:
    """The stock service, its locks noted in the timeline."""

    def locking(names: Iterable[str]) -> Locking:
        return stamped(LOCKINGS[name](names), timeline)

    return stock_service(Exchange(MemoryCatalog(DEFAULT_STOCKS, locking)))


def paths(stages: Stages) -> list[str]:
    """The method of each request, in the order in which they ended."""
    return [stages.methods[number] if number != NO_METHOD else "" for number in stages.method]


def violations(stages: Stages) -> int:
    """The number of requests that lack a stamp, have two in the wrong order, or stages that are not the total."""
    return summary(stages, 0, FOREVER_NS)[ALL].violations


@pytest.mark.parametrize("kind", one_executor_each(0), ids=str)
def test_the_clients_times_enclose_the_servers(kind: Kind, tmp_path: Path) -> None:
    """In a closed loop the moments of each request are in order: sent, accepted, dequeued, lock asked for and acquired,
    handled, done. ``replied`` is not among them: a client may have the reply before the server's thread returns from
    sending it."""
    timeline = Timeline(1000)
    sent_ns, done_ns = [], []
    with timed(maker(kind), stamped_stocks(timeline), timeline) as running:
        connection = running.connect()
        for _ in range(50):
            for path, payload in ((LOOKUP, LOOKUP_ONE), (TRADE, TRADE_ONE)):
                sent_ns.append(time.perf_counter_ns())
                connection.call(path, payload, WAIT_S)
                done_ns.append(time.perf_counter_ns())
    stages = stages_of(timeline, tmp_path)
    order = np.argsort(stages.accepted_ns)
    stamps = (stages.accepted_ns, stages.dequeued_ns, stages.asked_ns, stages.acquired_ns, stages.handled_ns)
    columns = [np.array(sent_ns), *(column[order] for column in stamps), np.array(done_ns)]
    assert len(order) == 100
    assert (np.diff(columns, axis=0) >= 0).all()
    assert np.array(paths(stages))[order].tolist() == [LOOKUP, TRADE] * 50
    assert (stages.waited_ns == stages.acquired_ns - stages.asked_ns).all()
    assert violations(stages) == 0


@pytest.mark.parametrize("kind", one_executor_each(0), ids=str)
def test_a_fault_has_its_stamps(kind: Kind, tmp_path: Path) -> None:
    """A handler's fault and its bug have all stamps, and on sockets a request for an unknown method. gRPC's
    own health is left out."""
    probe, timeline = Probe(), Timeline(100)
    with timed(maker(kind), probe.service, timeline) as running, probe:
        connection = running.connect()
        assert outcome(connection, FAIL, b"8") is FaultCode.RESOURCE_EXHAUSTED
        assert outcome(connection, FAIL, b"exit") is FaultCode.INTERNAL
        assert outcome(connection, ECHO) is None
        assert kind.transport not in GRPC or outcome(connection, CHECK) is None
        if kind.transport == "sockets":  # elsewhere no thread answers a request for an unknown method
            assert outcome(connection, "/tests.v1.Probe/None") is FaultCode.UNIMPLEMENTED
    stages = stages_of(timeline, tmp_path)
    assert sorted(filter(None, paths(stages))) == [ECHO, FAIL, FAIL]
    assert paths(stages).count("") == (kind.transport == "sockets")
    assert violations(stages) == 0


@pytest.mark.parametrize(
    ("transport", "executor"), [*(("sockets", executor) for executor in POOLS), *each_once(GRPC, POOLS)]
)
def test_a_wait_for_a_thread_is_seen(transport: str, executor: str, tmp_path: Path) -> None:
    """With one busy thread, a request is accepted before the thread is free, and dequeued after."""
    probe, timeline = Probe(), Timeline(100)
    with (
        timed(maker(Kind(transport, executor)), probe.service, timeline, workers=1) as running,
        ThreadPoolExecutor(2) as threads,
        probe,
    ):
        first = threads.submit(outcome, running.connect(), BLOCK)
        probe.entered()
        second = threads.submit(outcome, running.connect(), ECHO)
        until(lambda: running._executor.under_way == 2, "the second request waits for the thread")
        released_ns = release(probe)
        assert first.result(WAIT_S) is second.result(WAIT_S) is None
    check_wait_for_a_thread(stages_of(timeline, tmp_path), released_ns)


def release(probe: Probe) -> int:
    """Lets the handlers that block go on; gives when."""
    released_ns = time.perf_counter_ns()
    probe.released.set()
    return released_ns


def check_wait_for_a_thread(stages: Stages, released_ns: int) -> None:
    """The second of two requests waited until the first was let go."""
    assert paths(stages) == [BLOCK, ECHO]
    assert stages.accepted_ns[1] < released_ns < stages.dequeued_ns[1]
    assert stages.dequeued_ns[0] < released_ns < stages.handled_ns[0]
    assert violations(stages) == 0


def test_a_request_that_is_held_back_was_accepted_when_it_was_read(tmp_path: Path) -> None:
    """A request that the pipeline's limit holds back waits for a thread as one in the executor's queue does."""
    probe, timeline = Probe(), Timeline(100)
    with timed(DISPATCHES[0], probe.service, timeline, pipeline_max=1) as running, probe:
        with RawSocket(running.address) as client:
            client.send(frame(1, BLOCK) + frame(2, ECHO))
            probe.entered()
            released_ns = release(probe)
            assert [client.reply(), client.reply()] == [ReplyFrame(1, 0, b""), ReplyFrame(2, 0, b"")]
    check_wait_for_a_thread(stages_of(timeline, tmp_path), released_ns)


def test_pipelined_requests_have_their_own_stamps(tmp_path: Path) -> None:
    """Of two pipelined requests the one that ends first is noted first, each by its own thread."""
    probe, timeline = Probe(), Timeline(100)
    with timed(DISPATCHES[0], probe.service, timeline) as running, probe, RawSocket(running.address) as client:
        client.send(frame(1, BLOCK) + frame(2, ECHO))
        probe.entered()
        assert client.reply() == ReplyFrame(2, 0, b"")
        released_ns = release(probe)
        assert client.reply() == ReplyFrame(1, 0, b"")
    stages = stages_of(timeline, tmp_path)
    assert paths(stages) == [ECHO, BLOCK]
    assert stages.accepted_ns[0] == stages.accepted_ns[1]
    assert stages.handled_ns[0] < released_ns < stages.handled_ns[1]
    assert stages.thread[0] != stages.thread[1]
    assert violations(stages) == 0


def test_pipelined_requests_wait_for_their_connections_thread(tmp_path: Path) -> None:
    """Of three pipelined requests, each is dequeued when the one before is done."""
    timeline = Timeline(100)
    with timed(DISPATCHES[1], Probe().service, timeline) as running, RawSocket(running.address) as client:
        client.send(b"".join(frame(call) for call in (1, 2, 3)))
        assert [client.reply() for _ in range(3)] == [ReplyFrame(call, 0, b"") for call in (1, 2, 3)]
    stages = stages_of(timeline, tmp_path)
    assert len(stages.thread) == 3
    assert (stages.dequeued_ns[1:] >= stages.replied_ns[:-1]).all()
    assert len(set(stages.thread)) == 1
    assert violations(stages) == 0


def test_a_reply_that_waits_for_its_connection_is_not_replied(tmp_path: Path) -> None:
    """Under request dispatch, a reply for which its thread must wait to send it is handled, and replied when sent."""
    timeline = Timeline(100)
    with timed(DISPATCHES[0], Probe().service, timeline) as running:
        with RawSocket(running.address) as client, RawSocket(running.address) as idle:
            assert client.echo()
            assert idle.echo()
            assert isinstance(running.server, RequestServer)
            first, second = running.server._connections.by_fd.values()
            with first._lock, second._lock:
                client.send(frame(1))
                assert idle.silent(0.05)
                held_ns = time.perf_counter_ns()
            assert client.reply() == ReplyFrame(1, 0, b"")
    stages = stages_of(timeline, tmp_path)
    assert stages.handled_ns[2] < held_ns < stages.replied_ns[2]


def test_a_reply_that_nobody_takes_is_not_replied(tmp_path: Path) -> None:
    """A connection's thread has replied when all of the reply is with the kernel."""
    timeline = Timeline(100)
    service = raw_service("tests.v1.Large", {"/tests.v1.Large/Get": lambda _: bytes(8_000_000), ECHO: bytes})
    with timed(DISPATCHES[1], service, timeline) as running:
        with RawSocket(running.address, receive_bytes=4096) as client, RawSocket(running.address) as idle:
            client.take_up_to(10_000_000)
            client.send(frame(1, "/tests.v1.Large/Get"))
            assert not client.silent(WAIT_S)
            assert idle.silent(0.05)
            held_ns = time.perf_counter_ns()
            assert client.reply() is not None
    stages = stages_of(timeline, tmp_path)
    assert stages.handled_ns[0] < held_ns < stages.replied_ns[0]


@pytest.mark.parametrize("kind", [kind for kind in one_executor_each(1) if keeps(kind, "several at a time")], ids=str)
def test_what_did_not_end_is_not_in_it(kind: Kind, tmp_path: Path) -> None:
    """A server that gives up a request writes the answered requests, and not the one that hangs."""
    probe, timeline = Probe(), Timeline(100)
    with timed(maker(kind), probe.service, timeline) as running, ThreadPoolExecutor(1) as threads, probe:
        asking, hanging = running.connect(), running.connect()
        assert outcome(asking, ECHO) is None
        until(lambda: paths(stages_of(timeline, tmp_path)) == [ECHO], "the reply's row")
        call = threads.submit(outcome, hanging, BLOCK)
        probe.entered()
        asking.close()
        assert not running.stop(0.0)
        stages = stages_of(timeline, tmp_path)
        probe.released.set()
        assert call.result(WAIT_S) is FaultCode.UNAVAILABLE
    assert paths(stages) == [ECHO]
    assert violations(stages) == 0
