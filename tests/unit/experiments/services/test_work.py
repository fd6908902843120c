"""Work inside a request: each kind of work takes its time, and holds or releases the interpreter.

Processor clocks stop while other threads run, so that these tests do not depend on the machine's load. The shortest of
several tries counts, since disturbances only add time.
"""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from experiments.services.work import TOLERANCE, Work, bytes_hashed_in, hash_bytes, run_bytecode, turns_per_ms, working
from stock_service.rpc.call import Call
from stock_service.rpc.service import Method, Service
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex
from stock_service.trading.service import LOOKUP, stock_service
from stock_service.v1.stock_pb2 import LookupRequest, LookupResponse
from tests.raw_service import answered

PATH = "/a.B/C"
ASKED_MS = 5.0


@pytest.fixture
def stocks() -> Service:
    """The stock service."""
    return stock_service(Exchange(MemoryCatalog(DEFAULT_STOCKS, Mutex)))


def clocked_ms(work: Work) -> tuple[float, float]:
    """The shortest time of a request to a service with this work alone, by the wall clock and by the thread's clock."""
    service = working(Service("a.B", {PATH: Method(LookupRequest, LookupResponse, lambda _: LookupResponse())}), work)

    def once() -> tuple[float, float]:
        wall_ns, cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
        answered(service, PATH, b"")
        return (time.perf_counter_ns() - wall_ns) / 1e6, (time.thread_time_ns() - cpu_ns) / 1e6

    tries = [once() for _ in range(5)]
    return min(wall for wall, _ in tries), min(cpu for _, cpu in tries)


def test_a_service_with_work_answers_the_same(stocks: Service) -> None:
    """A service with work gives unchanged replies. Without work the service is unchanged."""
    assert working(stocks, Work()) is stocks
    payload = LookupRequest(name="FishCo").SerializeToString()
    for work in (Work(io_ms=0.1), Work(cpu_ms=0.1), Work(hash_ms=0.1)):
        assert answered(working(stocks, work), LOOKUP, payload) == answered(stocks, LOOKUP, payload)


def test_waiting_takes_the_time_and_no_processor() -> None:
    """Waiting takes at least its time, and little processor time."""
    wall_ms, cpu_ms = clocked_ms(Work(io_ms=ASKED_MS))
    assert wall_ms >= ASKED_MS
    assert cpu_ms < ASKED_MS / 5


@pytest.mark.alone
def test_bytecode_takes_the_processor_time_that_was_asked_for() -> None:
    """Bytecode takes its processor time, and at most a tenth more."""
    assert ASKED_MS <= clocked_ms(Work(cpu_ms=ASKED_MS))[1] < 1.1 * ASKED_MS


def test_bytecode_takes_as_long_however_wrong_its_speed_was_found() -> None:
    """Bytecode takes at least its processor time, even if the machine's speed was measured wrongly."""
    for quick in (turns_per_ms() / 10, turns_per_ms()):
        began_ns = time.thread_time_ns()
        run_bytecode(ASKED_MS, quick)
        assert (time.thread_time_ns() - began_ns) / 1e6 >= ASKED_MS


def test_hashing_takes_the_processor_time_that_was_asked_for() -> None:
    """Hashing takes its processor time within ``TOLERANCE``."""
    assert clocked_ms(Work(hash_ms=ASKED_MS))[1] == pytest.approx(ASKED_MS, rel=TOLERANCE)


def test_kinds_of_work_add_up() -> None:
    """Kinds of work add up: computing in processor time, and waiting in elapsed time."""
    wall_ms, cpu_ms = clocked_ms(Work(io_ms=3, cpu_ms=2, hash_ms=2))
    assert cpu_ms == pytest.approx(4, rel=TOLERANCE)
    assert wall_ms >= 3 + cpu_ms - 0.5


@pytest.fixture
def no_switches() -> Iterator[None]:
    """Turns off the forced switches of the interpreter between threads."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(3600.0)
    yield
    sys.setswitchinterval(before)


def others_run_during(work: Callable[[], None]) -> bool:
    """True if another thread, which only waits for the interpreter, runs during this work."""
    ready, go, ran = threading.Event(), threading.Lock(), threading.Event()

    def other() -> None:
        ready.set()
        with go:
            ran.set()

    with go:
        thread = threading.Thread(target=other)
        thread.start()
        ready.wait()
        os.sched_yield()  # the other thread waits for the lock, or is about to
    work()
    seen = ran.is_set()
    thread.join()
    return seen


@pytest.mark.usefixtures("no_switches")
def test_bytecode_holds_the_interpreter_and_hashing_lets_it_go() -> None:
    """Without forced switches, another thread runs during hashing, but never during bytecode."""
    count, quick = bytes_hashed_in(20), turns_per_ms()
    assert not any(others_run_during(lambda: run_bytecode(2, quick)) for _ in range(5))
    assert any(others_run_during(lambda: hash_bytes(count)) for _ in range(50))


def test_a_method_that_waits_is_awaited_on_a_loop(stocks: Service) -> None:
    """Ten concurrent waits on a loop take the time of one wait. A method without a wait is no coroutine."""
    slow = working(stocks, Work(io_ms=200)).methods[LOOKUP].answer_on_loop()
    call = Call(LookupRequest(name="FishCo").SerializeToString())

    async def ten() -> list[bytes]:
        return await asyncio.wait_for(asyncio.gather(*(slow(call) for _ in range(10))), timeout=1.9)

    assert len(set(asyncio.run(ten()))) == 1
    assert working(stocks, Work(cpu_ms=1, hash_ms=1)).methods[LOOKUP].on_loop is None
