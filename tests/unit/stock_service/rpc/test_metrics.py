"""Counts of a server."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.errors import FaultCode, InvalidRequest, Overloaded, PermissionDenied, Unauthenticated
from stock_service.rpc.health import Health
from stock_service.rpc.metrics import ONE_IN, Meter, Metrics, Tally
from stock_service.rpc.process import serving
from stock_service.rpc.process.scraping import show
from stock_service.rpc.security import Access, Right, digest
from stock_service.rpc.server_core.protocol import CountedRefusals, methods_of
from stock_service.rpc.service import Service
from stock_service.rpc.tls import read_token
from stock_service.rpc.transports.sockets.frames import Frames
from stock_service.rpc.waiting import Waiting
from stock_service.rpc.wire.framing import FramingError, RequestFrame
from stock_service.rpc.wire.http1 import HttpError
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex, Sampled, Snapshot
from stock_service.trading.model import Stock
from stock_service.trading.service import LOOKUP, TRADE, stock_service
from stock_service.v1 import stock_pb2
from tests.conformance.running import WAIT_S
from tests.tls import credentials


def stocks() -> Service:
    """The stock service on one stock."""
    return stock_service(Exchange(MemoryCatalog([Stock("FishCo", 1599, 10)], Mutex)))


def number(metrics: Metrics, name: str, **labels: str) -> float | None:
    """A number as it is shown."""
    return metrics.registry.get_sample_value(f"stock_service_{name}", labels)


def test_a_tally_loses_nothing_and_a_look_changes_nothing() -> None:
    """Four threads add 10,000 each while it is looked at."""
    tally = Tally()

    def add(_: int) -> None:
        for number in range(10_000):
            tally.add()
            if not number % 100:
                tally.value()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert tally.value() == tally.value() == 40_000


def test_an_outcome_is_counted_by_its_name() -> None:
    """An outcome is counted by its name. A status without a name is UNKNOWN. A method without statuses has none."""
    meter, without = Meter({1: "DONE", 2: "LATE"}, lambda _: None), Meter({}, lambda _: None)
    for status in (1, 1, 2, 7):
        meter.ended[status]()
    without.ended[None]()
    assert meter.outcomes() == {"DONE": 2, "LATE": 1, "UNKNOWN": 1}
    assert without.outcomes() == {"OK": 1}


def test_times_fall_into_their_buckets() -> None:
    """A time at a bound is in the bound's bucket. Times over the last bound have a bucket of their own."""
    metrics = Metrics()
    for taken_s in (0.000_001, 0.000_001_001, 6):
        metrics.waited_s(taken_s)
    buckets = [number(metrics, "queue_wait_seconds_bucket", le=bound) for bound in ("1e-06", "2e-06", "5.0", "+Inf")]
    assert buckets == [1, 2, 2, 3]
    assert number(metrics, "queue_wait_seconds_sum") == pytest.approx(6.000002001)


def test_what_is_shown_has_the_names_of_the_page() -> None:
    """The metrics have exactly the names and labels of the page's table."""
    metrics, executor = Metrics(), StaticPool(1, 1)
    try:
        stocks().counted(metrics)
        metrics.refused("request", "UNAUTHENTICATED")
        show(metrics, Health("a"), ("127.0.0.1", 1), executor, 1)
        rows = re.findall(r"^\| `(\w+)`(?:, `(\w+)`)? \|(.*?)\|", page_of("metrics"), re.MULTILINE)
        expected = {(name, *sorted(re.findall(r"\w+", labels))) for *names, labels in rows for name in names if name}
        found = {
            (name_of(sample.name), *sorted(sample.labels.keys() - {"le"}))
            for family in metrics.registry.collect()
            for sample in family.samples
        }
        assert found == expected
    finally:
        executor.stop(WAIT_S)


def test_busy_threads_and_waiting_requests_are_told_apart() -> None:
    """A leader in a batch of ten, among eight threads, is one busy thread, and nine requests wait."""
    metrics = Metrics()
    executor: Any = SimpleNamespace(busy=1, under_way=10, workers=8)
    show(metrics, Health("a"), ("127.0.0.1", 1), executor, 8)
    assert [number(metrics, name) for name in ("workers_busy", "queue_length")] == [1, 9]


def page_of(section: str) -> str:
    """A section of the page about processes."""
    page = (Path(serving.__file__).parent / "README.md").read_text()
    return next(part for part in page.split("\n## ") if part.lower().startswith(section))


def name_of(sample: str) -> str:
    """A metric's name, of its sample's."""
    return re.sub("_seconds_(bucket|count|sum)$", "_seconds", sample.removeprefix("stock_service_"))


def test_requests_are_counted_by_outcome_and_fault() -> None:
    """Requests are counted by their status; bytes that are not a request by their fault. One in a number of requests is
    timed."""
    metrics = Metrics()
    service = stocks().counted(metrics)
    lookup, trade = service.methods[LOOKUP].answer(), service.methods[TRADE].answer()
    for name in ["FishCo"] * ONE_IN + ["NoCo"]:
        lookup(stock_pb2.LookupRequest(name=name).SerializeToString())
    with pytest.raises(InvalidRequest):
        lookup(b"\xff")
    trade(stock_pb2.TradeRequest(name="FishCo", quantity=11, side=stock_pb2.SIDE_BUY).SerializeToString())
    ended = {path: {k: v for k, v in meter.outcomes().items() if v} for path, meter in metrics.meters.items()}
    assert ended[LOOKUP] == {"OK": ONE_IN, "UNKNOWN_STOCK": 1, "INVALID_ARGUMENT": 1}
    assert ended[TRADE] == {"SUSPENDED": 1}
    assert number(metrics, "handler_seconds_count", method=LOOKUP) == 2
    assert number(metrics, "requests_total", method=LOOKUP, outcome="OK") == ONE_IN


def test_a_request_that_waits_without_a_thread_is_counted_once() -> None:
    """A request that waits without a thread is counted at its end, and not when it begins to wait."""
    service, metrics, waits = stocks(), Metrics(), [True]
    method = service.methods[TRADE]

    def function(_: stock_pb2.TradeRequest) -> stock_pb2.TradeResponse:
        if waits.pop():
            raise Waiting
        return stock_pb2.TradeResponse(status=stock_pb2.STATUS_OK)

    meter: Meter = metrics.meter(TRADE, {1: "OK"})
    counted = type(method)(method.request_type, method.response_type, function, meter=meter).answer()
    waits.insert(0, False)
    with pytest.raises(Waiting):
        counted(b"")
    assert sum(meter.outcomes().values()) == 0
    counted(b"")
    assert (sum(meter.outcomes().values()), meter.outcomes()["OK"]) == (1, 1)


def test_one_lock_in_so_many_is_timed() -> None:
    """One lock in a number of acquisitions is timed, of readers and writers together. Readers without a lock have no
    time."""
    times: list[float] = []
    locking = Sampled(Mutex(["FishCo"]), times.append)
    for _ in range(ONE_IN):
        with locking.reading["FishCo"] or pytest.fail("a mutex has a lock for readers"), pytest.raises(RuntimeError):
            raise RuntimeError
        with locking.writing["FishCo"]:
            pass
    assert len(times) == 2
    free = Sampled(Snapshot(["FishCo"]), times.append)
    assert {free.reading["FishCo"] for _ in range(ONE_IN)} == {None}


def test_a_request_that_is_too_late_is_counted() -> None:
    """Under its fault."""
    metrics = Metrics()
    methods = methods_of(stocks().counted(metrics))
    assert methods.answered(LOOKUP.encode(), b"", 1, 1, ("127.0.0.1", 1))[0] is FaultCode.DEADLINE_EXCEEDED
    assert methods.answered(b"/no/Method", b"", 1, 1, ("127.0.0.1", 1))[0] is FaultCode.DEADLINE_EXCEEDED
    meter = metrics.meters[LOOKUP]
    assert {k: v for k, v in meter.outcomes().items() if v} == {"DEADLINE_EXCEEDED": 1}


def test_a_protocols_refusals_are_counted() -> None:
    """A protocol's refusals are counted once each: of a request, and of a connection by a farewell or an objection,
    under the fault's code. Their bytes stay the same."""
    metrics, protocol = Metrics(), Frames(methods_of(stocks()), 1000)
    counting, asked = CountedRefusals(protocol, metrics), RequestFrame(1, 0, b"/a/B", b"")
    full, foreign = FaultCode.RESOURCE_EXHAUSTED, HttpError(403, "foreign", FaultCode.PERMISSION_DENIED)
    assert counting.refusal(asked, full, "full") == protocol.refusal(asked, full, "full")
    assert counting.farewell(full, "full") == protocol.farewell(full, "full")
    for objected in (FramingError("no frame"), foreign):
        assert counting.objection(objected) == protocol.objection(objected)
    shown = [("request", full.name)]
    shown += [("connection", name) for name in (full.name, "INVALID_ARGUMENT", "PERMISSION_DENIED")]
    assert [number(metrics, "refusals_total", what=what, fault=fault) for what, fault in shown] == [1] * 4


def test_who_is_refused_is_counted() -> None:
    """Refused callers are counted by the fault, for any credential. Allowed callers are not counted."""
    metrics, access = Metrics(), Access(credentials() / "access.toml")
    access.refused = metrics.refused
    trader = digest(read_token(credentials() / "trader.token").encode())
    access.check(Right.ANYONE, b"wrong", "")
    access.check(Right.TRADER, trader, "")
    for shown, refused in ((None, Unauthenticated), (b"wrong", Unauthenticated), (trader, PermissionDenied)):
        with pytest.raises(refused):
            access.check(Right.ADMIN, shown, "")
    assert number(metrics, "refusals_total", what="request", fault="UNAUTHENTICATED") == 2
    assert number(metrics, "refusals_total", what="request", fault="PERMISSION_DENIED") == 1


def test_what_an_executor_refuses_is_counted() -> None:
    """Under the fault's code; and it is raised on."""
    metrics = Metrics()

    def full(_: object) -> None:
        raise Overloaded("full")

    with pytest.raises(Overloaded):
        metrics.waited(full)(lambda: None)
    assert number(metrics, "refusals_total", what="request", fault="RESOURCE_EXHAUSTED") == 1
