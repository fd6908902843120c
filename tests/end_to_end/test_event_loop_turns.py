"""Iterations of the event loop for one request in grpcio's asyncio server. ``recommend/event_loop.py`` is computed from
this number."""

import asyncio
from itertools import pairwise
from statistics import median

import pytest

from experiments.recommend.event_loop import TURNS_AFTER, TURNS_BEFORE
from experiments.services.work import Work, working
from stock_service.rpc.service import Service
from tests.conformance.running import ECHO, PROBE, Kind, maker
from tests.raw_service import raw

CALLS = 31


@pytest.mark.alone
def test_a_request_takes_so_many_turns_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request of a single client takes this number of iterations of the loop. Other wake-ups add an iteration now and
    then. Without a free core, several wake-ups share an iteration."""
    turns, begun = [0], []
    run_once = asyncio.BaseEventLoop._run_once  # type: ignore[attr-defined]

    def counted(loop: asyncio.AbstractEventLoop) -> None:
        turns[0] += 1
        run_once(loop)

    def echo(payload: bytes) -> bytes:
        begun.append(turns[0])
        return payload

    monkeypatch.setattr(asyncio.BaseEventLoop, "_run_once", counted)
    service = working(Service(PROBE, {ECHO: raw(echo)}), Work(io_ms=2))
    with maker(Kind("grpc_aio", "static-pool", "loop"))(service) as running:
        connection = running.connect()
        for _ in range(CALLS):
            connection.call(ECHO, b"x", timeout_s=10)
    each = [later - earlier for earlier, later in pairwise(begun)]
    assert median(each) == pytest.approx(TURNS_BEFORE + TURNS_AFTER, abs=2)
