"""Histories: requests of many threads to an exchange, with their replies and times.

A plan has rounds. In a round every thread waits for the others and then sends its requests. They are about a stock that
all rounds share, and about a new stock of the round, which mostly reaches its limit soon. So each round gives every
race a fresh chance, and retries of a request meet at its start. Times are of ``perf_counter_ns``, one clock for all
threads.
"""

import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Barrier
from time import perf_counter_ns
from typing import Protocol, assert_never

from clients.load.history.operations import NEVER_NS, Lookup, Operation, Reply, Request, Trade, Untold, Update
from stock_service.rpc.errors import InvalidRequest, Overloaded, Unavailable
from stock_service.trading.model import LookupReply, Side, Stock, TradeReply, UpdateReply

WAIT_S = 20.0
"""A bound for what must not take long; only reached when something hangs."""

SWITCH_S = 1e-6
"""How often the interpreter changes threads while a history is recorded: as often as it can."""

ROUND_LIMIT = 10
"""The volume limit of a round's own stock: some three trades."""

RETRY_LIMIT = 1000
"""The limit of a stock whose round begins with a retry: a second effect is not hidden by a lack of room."""

SHARED_STOCK = "Shared"
"""The stock of every round; no plan reaches its limit."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The stocks, and the requests of each thread in each round: ``rounds[round][thread]``."""

    stocks: tuple[Stock, ...]
    rounds: tuple[tuple[tuple[Request, ...], ...], ...]


class Answering(Protocol):
    """An exchange, or what passes for one."""

    def lookup(self, name: str) -> LookupReply: ...

    def trade(self, name: str, quantity: int, side: int, request_id: str = "") -> TradeReply: ...

    def update(self, name: str, price_cents: int) -> UpdateReply: ...


def plan(rng: random.Random, threads: int, rounds: int, requests: int = 7, conflicts: bool = False) -> Plan:
    """Random requests: each thread has about ``requests`` in each round. With ``conflicts`` the last thread's first
    request with an id is for another trade than that of the other threads."""
    shared = Stock(SHARED_STOCK, 1000, 10**12)
    own = [Stock(f"Round{number}", 100, RETRY_LIMIT if number % 4 == 1 else ROUND_LIMIT) for number in range(rounds)]
    sent = [
        tuple(
            (
                *_first(number, thread, conflicts and thread == threads - 1),
                *(_later(rng, number, position) for position in range(1, requests)),
            )
            for thread in range(threads)
        )
        for number in range(rounds)
    ]
    return Plan((shared, *own), tuple(sent))


def _first(number: int, thread: int, conflict: bool) -> tuple[Request, ...]:
    """A thread's first request, when all threads have just met: about a stock in demand, a retry, or two trades too
    many."""
    if conflict and number % 4 == 1:
        own = f"Round{number}"
        return (Trade(own, 3, Side.SELL, f"fits-{number}"), Lookup(own), Lookup(own))
    match number % 4, thread % 4:
        case 1, _:
            return (Trade(f"Round{number}", 2, Side.SELL, f"fits-{number}"),)
        case 3, _:
            return (Trade(f"Round{number}", ROUND_LIMIT // 2),)
        case _, 0:
            return (Trade(SHARED_STOCK, 3),)
        case _, 2:
            return (Update(SHARED_STOCK, number),)
        case _:
            return (Lookup(SHARED_STOCK),) * 3


def _later(rng: random.Random, number: int, position: int) -> Request:
    """A later request of a round. Some are likely at the same position in all threads."""
    own = f"Round{number}"
    quantity, side = rng.randint(1, 100), rng.choice(list(Side))
    if position < 4 and rng.random() < 0.6:
        demanded: Request = Trade(SHARED_STOCK, quantity, side) if rng.random() < 0.5 else Lookup(SHARED_STOCK)
        return (demanded, Trade(own, 2, Side.SELL, f"fits-{number}"), Trade(own, 5, side))[position - 1]
    if rng.random() < (0.1, 0.6)[position == 6]:
        return Trade(own, ROUND_LIMIT + 1, Side.BUY, f"too-large-{number}")
    match rng.randrange(10):
        case 0 | 1 | 2:
            return Trade(own, quantity % 4 + 1, side)
        case 3 | 4:
            return Trade(SHARED_STOCK, quantity, side)
        case 5:
            return Update(own, rng.randint(0, 3))
        case 6:
            return Update(SHARED_STOCK, rng.randint(0, 10_000))
        case 7:
            return Lookup(own)
        case _:
            return Lookup(SHARED_STOCK)


def record(exchange: Answering, asked: Plan, meet: Callable[[], None] | None = None) -> list[Operation]:
    """Runs a plan on its threads, then looks every stock up. Blocks until all threads have ended. One thread calls
    ``meet`` before each round, while the others wait."""
    threads = len(asked.rounds[0])
    barrier = Barrier(threads, meet)

    def run(thread: int) -> list[Operation | None]:
        done: list[Operation | None] = []
        try:
            for number in asked.rounds:
                barrier.wait(WAIT_S)
                done.extend(_timed(exchange, request) for request in number[thread])
        except BaseException:
            barrier.abort()  # so that no other thread waits for this one
            raise
        return done

    with ThreadPoolExecutor(threads) as pool, often_switched():
        histories = [future.result() for future in [pool.submit(run, thread) for thread in range(threads)]]
    last = [_timed(exchange, Lookup(stock.name)) for stock in asked.stocks]
    return [operation for history in [*histories, last] for operation in history if operation is not None]


def _timed(exchange: Answering, request: Request) -> Operation | None:
    """Sends a request; None where it was refused with the promise that it had no effect. An outcome may be unknown."""
    called_ns = perf_counter_ns()
    try:
        reply: Reply | Untold = answer(exchange, request)
    except InvalidRequest:
        reply = Untold.REFUSED
    except Overloaded:
        return None
    except Unavailable:
        return Operation(request, Untold.UNKNOWN, called_ns, NEVER_NS)
    return Operation(request, reply, called_ns, perf_counter_ns())


def answer(exchange: Answering, request: Request) -> Reply:
    """The exchange's answer."""
    match request:
        case Lookup(name):
            return exchange.lookup(name)
        case Trade(name, quantity, side, request_id):
            return exchange.trade(name, quantity, side, request_id)
        case Update(name, price_cents):
            return exchange.update(name, price_cents)
        case _:
            assert_never(request)


@contextmanager
def often_switched() -> Iterator[None]:
    """Changes threads as often as the interpreter can."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before_s)
