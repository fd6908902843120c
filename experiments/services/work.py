"""Work inside a request: every method of a service waits and computes before the reply.

A request's work is the sum of three kinds of work. Each kind loads a server in another way:

- ``io_ms``: waiting, off the processor. A thread sleeps; an event loop serves other calls meanwhile.
- ``cpu_ms``: computing in bytecode, which holds the interpreter. Only one thread of a process computes at a time.
- ``hash_ms``: computing in C, which releases the interpreter. Each core can compute for one thread at the same time. An
  event loop cannot serve other calls meanwhile.

The thread's own processor clock measures the computing, and stops while other threads run. So two threads on one core
take twice as long. The best of several tries at start-up gives the machine's speed. Bytecode runs for
about half of the remaining time, and then reads the clock again. The computing takes the asked time, and some µs more.
The kernel's part of these µs is a dozen readings of the clock. A hash is over the number of bytes that took the asked
time at start-up, within ``TOLERANCE``. A sleep ends late, by 60 to 150 µs on Linux, and never early.
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
"""Most milliseconds of each kind in a request, since clients give up after 5 s."""

TOLERANCE = 0.25
"""Largest difference, as a share, of a hash's processor time from the wanted time."""

_BLOCK = bytes(1 << 20)
"""Bytes that are hashed repeatedly. ``hashlib`` releases the interpreter for more than 2047 bytes."""

_TURNS_MIN = 20
"""Fewest turns of a loop between two readings of the clock: about half a microsecond, which is the time of one
reading."""

_TURNS_TRIED = 20_000

_TRIES = 7


@dataclass(frozen=True, slots=True)
class Work:
    """Work that every request does before its reply, in milliseconds; 0 to ``WORK_MS_MAX`` each."""

    io_ms: float = 0.0
    cpu_ms: float = 0.0
    hash_ms: float = 0.0


def working(service: Service, work: Work) -> Service:
    """The service with this work in each of its methods, before the reply. Without work the service is unchanged.

    For computing, the machine's speed is measured first, which takes some 5 ms. Any thread may call the methods.
    """
    if work == Work():
        return service
    compute = _computing(work)
    methods = {path: _longer(method, work.io_ms / 1000, compute) for path, method in service.methods.items()}
    return Service(service.name, methods)


def run_bytecode(ms: float, turns_per_ms: float) -> None:
    """Computes for ``ms`` milliseconds of this thread's processor time.

    The thread holds the interpreter, apart from the interpreter's usual switches. ``turns_per_ms`` is the machine's
    approximate speed: the result of the function of that name.
    """
    until_ns, half = time.thread_time_ns() + round(ms * 1e6), turns_per_ms / 2e6
    while (left_ns := until_ns - time.thread_time_ns()) > 0:
        turn(max(_TURNS_MIN, int(left_ns * half)))


def turn(times: int) -> None:
    """Runs an empty loop ``times`` times."""
    for _ in repeat(None, times):
        pass


def turns_per_ms() -> float:
    """Turns of an empty loop in a millisecond of this thread's processor time. Takes some 3 ms."""
    return _TURNS_TRIED / _least_ms(lambda: turn(_TURNS_TRIED))


def hash_bytes(count: int) -> None:
    """Hashes ``count`` bytes, and releases the interpreter meanwhile."""
    digest = hashlib.sha256()
    for _ in repeat(None, count // len(_BLOCK)):
        digest.update(_BLOCK)
    digest.update(memoryview(_BLOCK)[: count % len(_BLOCK)])


def bytes_hashed_in(ms: float) -> int:
    """Bytes that this thread hashes in ``ms`` milliseconds of its processor time. Takes some 5 ms."""
    return round(len(_BLOCK) * ms / _least_ms(lambda: hash_bytes(len(_BLOCK))))


def _least_ms(piece: Callable[[], None]) -> float:
    """This thread's processor time for a piece of work: the shortest time of several tries."""

    def taken_ms() -> float:
        began_ns = time.thread_time_ns()
        piece()
        return (time.thread_time_ns() - began_ns) / 1e6

    return min(taken_ms() for _ in range(_TRIES))


def _computing(work: Work) -> Callable[[], None]:
    count = bytes_hashed_in(work.hash_ms) if work.hash_ms else 0
    quick = turns_per_ms() if work.cpu_ms else 0.0

    def compute() -> None:
        if work.cpu_ms:
            run_bytecode(work.cpu_ms, quick)
        if count:
            hash_bytes(count)

    return compute


def _longer(method: Method[Any, Any], io_s: float, compute: Callable[[], None]) -> Method[Any, Any]:
    """A method that computes and waits before it replies. On an event loop, a method with a wait is a coroutine."""
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
