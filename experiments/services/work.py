"""Work inside a request: every method of a service computes and waits before the reply.

A request's work is the sum of three kinds of work. Each kind loads a server in another way:

- ``io_ms``: waiting without the processor. A thread sleeps. An event loop serves other calls meanwhile.
- ``cpu_ms``: computing in bytecode with the GIL held. Only one thread of a process computes at a time.
- ``hash_ms``: computing in C with the GIL released. Threads of one process compute at the same time, one on each core.
  An event loop cannot serve other calls meanwhile.

The processor clock of the thread measures the time of computing. The clock stops while other threads run. So two
threads that compute on one core take twice as long. At start-up the same work is timed several times, and the shortest
time gives the machine's speed. ``run_bytecode`` computes for about half of the remaining time, reads the clock, and
repeats both steps until no time remains. So computing in bytecode takes the asked time and some µs more. A reading of
the clock is a system call, so the clock is read only about a dozen times. Computing in C hashes the number of bytes
that took the asked time at start-up. The hashing takes the asked time within ``TOLERANCE``. A sleep ends late, by 60 to
150 µs on Linux, and never early.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

from stock_service.rpc.service import Method, Service

WORK_MS_MAX = 1000.0
"""Largest number of milliseconds of each kind of work in a request. The work must be shorter than the timeout of
clients, 5 s.
"""

TOLERANCE = 0.25
"""Largest difference between the processor time of a request's hashing and ``Work.hash_ms``, as a share of ``hash_ms``.
"""

_BLOCK = bytes(1 << 20)
"""Bytes that ``hash_bytes`` hashes again and again. ``hashlib`` releases the GIL while it hashes over 2047 bytes."""

_TURNS_MIN = 20
"""Smallest number of iterations of the loop between two readings of the clock. These iterations take about half a
microsecond, as long as one reading."""

_TURNS_TRIED = 20_000

_TRIES = 7


@dataclass(frozen=True, slots=True)
class Work:
    """Work that every request does before its reply. Each kind of work takes 0 to ``WORK_MS_MAX`` milliseconds."""

    io_ms: float = 0.0
    cpu_ms: float = 0.0
    hash_ms: float = 0.0


def working(service: Service, work: Work) -> Service:
    """Returns a copy of the service in which every method does this work before its reply. If ``work`` is empty,
    returns the service itself.

    If the work has computing, blocks for some 5 ms to measure the machine's speed. The methods are thread-safe.
    """
    if work == Work():
        return service
    compute = _computing(work)
    methods = {path: _longer(method, work.io_ms / 1000, compute) for path, method in service.methods.items()}
    return Service(service.name, methods)


def run_bytecode(ms: float, turns_per_ms: float) -> None:
    """Computes for ``ms`` milliseconds of this thread's processor time.

    The thread holds the GIL, except during the interpreter's usual switches between threads. ``turns_per_ms`` is the
    machine's approximate speed: the result of the function ``turns_per_ms``.
    """
    until_ns, half = time.thread_time_ns() + round(ms * 1e6), turns_per_ms / 2e6
    while (left_ns := until_ns - time.thread_time_ns()) > 0:
        turn(max(_TURNS_MIN, int(left_ns * half)))


def turn(times: int) -> None:
    """Runs ``times`` iterations of an empty loop."""
    for _ in repeat(None, times):
        pass


def turns_per_ms() -> float:
    """Number of iterations of an empty loop in a millisecond of this thread's processor time. Blocks for some 3 ms."""
    return _TURNS_TRIED / _least_ms(lambda: turn(_TURNS_TRIED))


def hash_bytes(count: int) -> None:
    """Hashes ``count`` bytes, with the GIL released."""
    digest = hashlib.sha256()
    for _ in repeat(None, count // len(_BLOCK)):
        digest.update(_BLOCK)
    digest.update(memoryview(_BLOCK)[: count % len(_BLOCK)])


def bytes_hashed_in(ms: float) -> int:
    """Number of bytes that this thread hashes in ``ms`` milliseconds of its processor time. Blocks for some 5 ms."""
    return round(len(_BLOCK) * ms / _least_ms(lambda: hash_bytes(len(_BLOCK))))


def _least_ms(piece: Callable[[], None]) -> float:
    """Calls ``piece`` ``_TRIES`` times. Returns the shortest processor time of a call, in milliseconds."""

    def taken_ms() -> float:
        began_ns = time.thread_time_ns()
        piece()
        return (time.thread_time_ns() - began_ns) / 1e6

    return min(taken_ms() for _ in range(_TRIES))


def _computing(work: Work) -> Callable[[], None]:
    """Makes a function that computes as long as ``work`` states for one request (``cpu_ms`` and ``hash_ms``). First
    measures the machine's speed.
    """
    count = bytes_hashed_in(work.hash_ms) if work.hash_ms else 0
    quick = turns_per_ms() if work.cpu_ms else 0.0

    def compute() -> None:
        if work.cpu_ms:
            run_bytecode(work.cpu_ms, quick)
        if count:
            hash_bytes(count)

    return compute


def _longer(method: Method[Any, Any], io_s: float, compute: Callable[[], None]) -> Method[Any, Any]:
    """Copy of a method. Before the reply, the copy computes, and then waits for ``io_s`` seconds. If there is a wait,
    the copy also has a coroutine for event loops.
    """
    function = method.function

    def on_thread(*arguments: Any) -> Any:
        reply = function(*arguments)
        compute()
        if io_s:
            time.sleep(io_s)
        return reply

    async def on_loop(*arguments: Any) -> Any:
        reply = function(*arguments)
        compute()
        await asyncio.sleep(io_s)
        return reply

    return replace(method, function=on_thread, on_loop=on_loop if io_s else None)
