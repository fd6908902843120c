"""The thread pool that grpcio is given: it takes every call, and never raises."""

from concurrent.futures import Future
from threading import Event

import pytest

from stock_service.rpc.concurrency import Task
from stock_service.rpc.errors import Fault, Overloaded, Unavailable
from stock_service.rpc.transports.grpc_sync.calls import CallPool

WAIT_S = 10.0


def test_a_call_waits_until_a_thread_has_it() -> None:
    """The Future is done after the call, for any end of the call: grpcio counts by it."""
    tasks: list[Task] = []
    with CallPool(tasks.append) as pool:
        seen: list[tuple[int, bool]] = []
        ended = pool.submit(lambda: seen.append((len(pool.waiting), pool.arrival.waited_ns > 0)))
        assert (len(pool.waiting), ended.done()) == (1, False)
        tasks.pop()()
        assert (seen, ended.done()) == ([(0, True)], True)
        failing = pool.submit(lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tasks.pop()()
        assert failing.done()


def test_a_call_that_finds_no_room_is_offered_again() -> None:
    """The executor has refused it twice, though by grpcio's count there was room: it is taken, and never lost."""
    refused, taken = [Overloaded("no thread"), Overloaded("no thread")], Event()

    def execute(task: Task) -> None:
        if refused:
            raise refused.pop()
        task()

    with CallPool(execute) as pool:
        pool.submit(taken.set)
        assert taken.wait(WAIT_S)


def test_an_executors_own_future_is_what_grpcio_gets() -> None:
    """grpcio gets the executor's own future, whose end makes room for another call. If the executor refuses, the call
    is offered again."""
    own: Future[None] = Future()
    taken: list[Task] = []

    def submit(task: Task) -> Future[None]:
        if taken:
            raise Overloaded("full")
        taken.append(task)
        return own

    with CallPool(taken.append, submit) as pool:
        assert pool.submit(int) is own
        assert pool.submit(int) is not own
        assert len(taken) == 2


@pytest.mark.parametrize("fault", [Overloaded, Unavailable])
def test_submit_never_raises(fault: type[Fault]) -> None:
    """Submit never raises, which would kill grpcio's serving thread. A stopped executor ends the offers, too."""
    stopped = [Unavailable("stopped"), fault("first")]

    def execute(_: Task) -> None:
        raise stopped.pop() if len(stopped) > 1 else stopped[0]

    with CallPool(execute) as pool:
        assert not pool.submit(int).done()


def test_a_call_that_comes_once_calls_are_refused_is_not_waited_for() -> None:
    """A call that comes after the refusals began is not waited for, and its thread gets the reason. Earlier calls are
    counted and begun."""
    tasks: list[Task] = []
    with CallPool(tasks.append) as pool:
        whys: list[Fault | None] = []

        def call() -> None:
            whys.append(pool.arrival.refused)

        pool.submit(call)
        pool.refuse()
        pool.submit(call)
        assert len(pool.waiting) == 1
        for task in tasks:
            task()
        assert whys[0] is None
        assert isinstance(whys[1], Unavailable)
        assert not pool.waiting
