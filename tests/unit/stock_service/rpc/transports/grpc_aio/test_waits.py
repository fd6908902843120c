"""Requests that wait on an event loop are settled on a thread, once for all that begin together, if there is room."""

import asyncio
from collections.abc import Callable

import pytest

from stock_service.rpc.errors import Overloaded
from stock_service.rpc.transports.grpc_aio.waiting import Waits
from stock_service.rpc.waiting import Wait, Waiting, here


class Executor:
    """Calls a task at once, or refuses it."""

    room, waiting = 1, 0

    def __init__(self, full: bool) -> None:
        self._full = full

    def execute(self, task: Callable[[], object]) -> None:
        if self._full:
            raise Overloaded("full")
        task()

    def execute_all(self, tasks: object) -> int:
        raise NotImplementedError

    def submit(self, task: object) -> object:
        raise NotImplementedError

    def stop(self, grace_s: float) -> bool:
        return True


@pytest.mark.parametrize("full", [False, True])
def test_requests_that_begin_together_are_settled_once(full: bool) -> None:
    """And all are answered, where the executor has room and where it has none."""
    waiting: list[Wait] = []
    settled: list[int] = []

    def settle() -> None:
        settled.append(len(waiting))
        for wait in waiting:
            wait.go_on(wait)

    def answer() -> bytes:
        wait = here.wait
        assert wait is not None
        if wait.on is None:
            wait.on = wait
            waiting.append(wait)
            raise Waiting
        return b"done"

    async def ask() -> list[bytes]:
        waits = Waits(settle, Executor(full))
        return await asyncio.gather(*(waits.answered(answer) for _ in range(3)))

    assert asyncio.run(asyncio.wait_for(ask(), 10.0)) == [b"done"] * 3
    assert settled == [3]
