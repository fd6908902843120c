"""Work inside a request: so much waiting and computing that every method of a service does besides.

Three kinds, which add up, and which a server meets in other ways:

- ``io_ms``: waiting for somebody else, off the processor. A thread sleeps; an event loop serves other calls meanwhile.
- ``cpu_ms``: computing in bytecode, which holds the interpreter: one thread of a process at a time.
- ``hash_ms``: computing in C, which lets the interpreter go: as many threads at once as there are cores. On an event
  loop it holds the loop all the same.

Computing is measured by the thread's own processor clock, which stands while others run: two threads that share a core
take twice as long. How quick this machine computes is found at start-up, in the best of several tries. Bytecode runs
for about half of what is left, and looks at the clock again. It takes what was asked for, and some µs. The kernel's
part of these is a dozen looks. A hash is of so many bytes as took that time at start-up, within ``TOLERANCE``. A sleep
ends late, by 60 to 150 µs on Linux, and never early.
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
"""Of each kind, in a request: clients give up after 5 s."""

TOLERANCE = 0.25
"""By this share the processor time of a hash may differ from what was asked for."""

_BLOCK = bytes(1 << 20)
"""Bytes to be hashed, again and again. ``hashlib`` lets the interpreter go for anything over 2047 bytes."""

_TURNS_MIN = 20
"""Of a loop, between two looks at the clock: about half a microsecond, as long as a look takes."""

_TURNS_TRIED = 20_000

_TRIES = 7


@dataclass(frozen=True, slots=True)
class Work:
    """Work that every request does besides, in milliseconds; 0 to ``WORK_MS_MAX`` each."""

    io_ms: float = 0.0
    cpu_ms: float = 0.0
    hash_ms: float = 0.0


def working(service: Service, work: Work) -> Service:
    """The service, each of its methods doing this work before it replies; the very same for none.

    Where computing is asked for, it first finds out how quick that is: some 5 ms. Any thread may call the methods.
    """
    if work == Work():
        return service
    compute = _computing(work)
    methods = {path: _longer(method, work.io_ms / 1000, compute) for path, method in service.methods.items()}
    return Service(service.name, methods)


def run_bytecode(ms: float, turns_per_ms: float) -> None:
    """Computes for so many ms of this thread's processor time, holding the interpreter but for its usual switches.

    ``turns_per_ms`` is how quick that goes, about; see ``turns_per_ms``.
    """
    until_ns, half = time.thread_time_ns() + round(ms * 1e6), turns_per_ms / 2e6
    while (left_ns := until_ns - time.thread_time_ns()) > 0:
        turn(max(_TURNS_MIN, int(left_ns * half)))


def turn(times: int) -> None:
    """Goes round an empty loop so many times."""
    for _ in repeat(None, times):
        pass


def turns_per_ms() -> float:
    """Turns of an empty loop in a millisecond of this thread's processor time. Takes some 3 ms."""
    return _TURNS_TRIED / _least_ms(lambda: turn(_TURNS_TRIED))


def hash_bytes(count: int) -> None:
    """Hashes so many bytes, letting the interpreter go."""
    digest = hashlib.sha256()
    for _ in repeat(None, count // len(_BLOCK)):
        digest.update(_BLOCK)
    digest.update(memoryview(_BLOCK)[: count % len(_BLOCK)])


def bytes_hashed_in(ms: float) -> int:
    """Bytes that this thread hashes in ``ms`` milliseconds of its processor time. Takes some 5 ms."""
    return round(len(_BLOCK) * ms / _least_ms(lambda: hash_bytes(len(_BLOCK))))


def _least_ms(piece: Callable[[], None]) -> float:
    """This thread's processor time for a piece of work, in the quickest of several tries."""

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
    """A method that computes and waits before it replies. Where it waits, an event loop awaits it."""
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
