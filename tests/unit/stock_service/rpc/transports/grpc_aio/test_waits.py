"""Requests that wait on an event loop are settled on another thread, once for all that begin together."""

import asyncio

from stock_service.rpc.transports.grpc_aio.waiting import Waits
from stock_service.rpc.waiting import Wait, Waiting, here


def test_requests_that_begin_together_are_settled_once() -> None:
    """Requests that begin together are settled once and answered. The loop does not settle them itself."""
    waiting: list[Wait] = []
    settled: list[tuple[int, bool]] = []

    def flush(here: bool) -> None:
        settled.append((len(waiting), here))
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
        waits = Waits(flush)
        return await asyncio.gather(*(waits.answered(answer) for _ in range(3)))

    assert asyncio.run(asyncio.wait_for(ask(), 10.0)) == [b"done"] * 3
    assert settled == [(3, False)]
