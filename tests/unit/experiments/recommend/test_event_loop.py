"""Predicted waves on an event loop, compared with asyncio's own loop on a simulated clock."""

import asyncio
import heapq
import math
import selectors
import time
from collections.abc import Callable
from random import Random

import pytest

from experiments.design.demands import Demands
from experiments.recommend.event_loop import CLOCK_S, REPLIED_AFTER, TURNS_AFTER, TURNS_BEFORE, event_loop_hz
from experiments.recommend.model import predict
from stock_service.rpc.errors import UsageError

WAITS = Demands(gil_s=0.0002, free_s=0.0, wait_s=0.010, overhead_s=0.0001)
CYCLES = 35
"""Replies of every client, a tenth of which does not count."""


class Turned(selectors.SelectSelector):
    """Moves the clock to the next event, a timer as epoll rounds it or an arrival. No time passes."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.arrivals: list[float] = []
        self.arrive: Callable[[], None]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Gives the callbacks of all arrivals, for the turn that follows."""
        if timeout != 0:
            rounded_s = math.inf if timeout is None else math.ceil(timeout / CLOCK_S - 1e-6) * CLOCK_S
            self.now_s = max(self.now_s, min(self.now_s + rounded_s, min(self.arrivals, default=math.inf)))
        while self.arrivals and self.arrivals[0] <= self.now_s:
            heapq.heappop(self.arrivals)
            self.arrive()
        return []


def asyncios_hz(demands: Demands, clients: int) -> float:
    """Replies a second of asyncio's own loop."""
    selector, random = Turned(), Random(3)
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now_s  # type: ignore[method-assign]
    selector.arrivals = [0.0] * clients
    replied_at: list[float] = []
    replies, skipped = CYCLES * clients, CYCLES * clients // 10

    def turn(turns: int, slowness: float) -> None:
        selector.now_s += slowness * demands.processor_s / (TURNS_BEFORE + TURNS_AFTER)
        turns += 1
        if turns == TURNS_BEFORE + REPLIED_AFTER:
            replied_at.append(selector.now_s)
            heapq.heappush(selector.arrivals, selector.now_s + demands.overhead_s)
            if len(replied_at) == replies:
                loop.stop()
        if turns == TURNS_BEFORE:
            loop.call_later(demands.wait_s, turn, turns, slowness)
        elif turns < TURNS_BEFORE + TURNS_AFTER:
            loop.call_soon(turn, turns, slowness)

    def arrive() -> None:
        loop.call_soon(turn, 0, random.gammavariate(4, 1 / 4))

    selector.arrive = arrive
    loop.run_forever()
    loop.close()
    return (replies - skipped) / (replied_at[-1] - replied_at[skipped - 1])


@pytest.mark.parametrize(("clients", "off"), [(1, 0.02), (4, 0.08), (16, 0.08), (64, 0.08)])
def test_waves_are_those_of_asyncios_own_loop(clients: int, off: float) -> None:
    """The waves are those of asyncio's own loop: one or few requests, a wave with gaps, and one that nearly
    fills the loop."""
    assert event_loop_hz(WAITS, clients) == pytest.approx(asyncios_hz(WAITS, clients), rel=off)


def test_a_wave_leaves_the_processor_idle() -> None:
    """Sixteen requests that wait together answer a fifth less than the model of independent waits has."""
    independent_hz = predict(WAITS, 16, 16).throughput_hz
    assert 0.70 < event_loop_hz(WAITS, 16) / independent_hz < 0.85


def test_nothing_goes_beyond_the_processor() -> None:
    """Two hundred clients fill the loop, and the rate does not exceed the processor's."""
    assert 0.9 < event_loop_hz(WAITS, 200) * WAITS.processor_s <= 1.01


def test_a_number_of_clients_is_one_or_more() -> None:
    """A number of clients under one is refused."""
    with pytest.raises(UsageError):
        event_loop_hz(WAITS, 0)


def test_epoll_counts_in_milliseconds() -> None:
    """A sleep in epoll is rounded up to a whole millisecond. This gathers waits into waves."""
    with selectors.EpollSelector() as selector:
        began_s = time.monotonic()
        selector.select(2.1 * CLOCK_S)
        assert time.monotonic() - began_s > 2.9 * CLOCK_S
