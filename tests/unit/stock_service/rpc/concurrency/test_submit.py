"""``submit`` for grpcio: a Future whatever happens, on every executor; it never raises."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import get_ident

import pytest

from stock_service.rpc.concurrency import EXECUTORS, Executor, submit
from stock_service.rpc.concurrency.submit import Submitting
from stock_service.rpc.errors import Overloaded, Unavailable
from tests.conformance.gates import WAIT_S, Gate, occupy, until


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    """Each executor, of two threads and room for two tasks more."""
    made = EXECUTORS[request.param](2, 2)
    yield made
    made.stop(WAIT_S)


def test_a_future_has_what_was_returned(executor: Executor) -> None:
    """Arguments reach the function, which runs on the executor; the type is the one that grpcio wants."""
    submitting = Submitting(executor)
    assert isinstance(submitting, ThreadPoolExecutor)
    assert submitting.submit(divmod, 17, 5).result(WAIT_S) == (3, 2)
    assert submitting.submit(int, "ff", base=16).result(WAIT_S) == 255
    assert submitting.submit(get_ident).result(WAIT_S) != get_ident()


def test_a_future_has_what_was_raised(executor: Executor) -> None:
    """An error is the future's, and the executor's threads are none the worse."""
    submitting = Submitting(executor)
    for _ in range(2):
        assert isinstance(submitting.submit(divmod, 1, 0).exception(WAIT_S), ZeroDivisionError)
    assert submitting.submit(divmod, 1, 1).result(WAIT_S) == (1, 0)


def leave() -> None:
    """A handler that asks to exit."""
    raise SystemExit(3)


def test_a_future_ends_even_if_the_function_asks_to_exit(executor: Executor) -> None:
    """grpcio would wait for it for ever: SystemExit is the future's as well."""
    future = Submitting(executor).submit(leave)
    assert isinstance(future.exception(2.0), SystemExit)


def test_a_full_executor_makes_failed_futures(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no room comes within a bound, the future has failed with Overloaded, and nothing is raised."""
    monkeypatch.setattr(submit, "ROOM_S", 0.01)
    submitting, gate = Submitting(executor), Gate()
    occupy(executor, gate, 2)
    waiting = [submitting.submit(gate.stand) for _ in range(2)]
    refused: Future[None] = submitting.submit(gate.stand)
    assert refused.done()
    assert isinstance(refused.exception(), Overloaded)
    gate.open()
    assert [future.result(WAIT_S) for future in waiting] == [None, None]
    until(lambda: gate.left == 4)


def test_a_task_waits_for_room(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full executor that is about to have room takes the task: that is how grpcio finds it between two calls."""
    monkeypatch.setattr(submit, "ROOM_S", WAIT_S)
    submitting, gate = Submitting(executor), Gate()
    occupy(executor, gate, 2)
    waiting = [submitting.submit(gate.stand) for _ in range(2)]
    with ThreadPoolExecutor(1) as other:
        late = other.submit(submitting.submit, divmod, 17, 5)
        assert not late.done()
        gate.open()
        assert late.result(WAIT_S).result(WAIT_S) == (3, 2)
    assert [future.result(WAIT_S) for future in waiting] == [None, None]


def test_a_stopped_executor_makes_failed_futures(executor: Executor) -> None:
    """After ``stop`` every future has failed with Unavailable."""
    submitting = Submitting(executor)
    assert executor.stop(WAIT_S)
    refused = submitting.submit(get_ident)
    assert refused.done()
    assert isinstance(refused.exception(), Unavailable)


@pytest.mark.parametrize("name", ["static-pool", "thread-pool"])
def test_a_cancelled_future_is_not_run(name: str) -> None:
    """What was cancelled while it waited is never called."""
    executor, gate = EXECUTORS[name](1, 2), Gate()
    ran: list[int] = []
    try:
        occupy(executor, gate, 1)
        future = Submitting(executor).submit(ran.append, 1)
        assert future.cancel()
    finally:
        gate.open()
        assert executor.stop(WAIT_S)
    assert ran == []
