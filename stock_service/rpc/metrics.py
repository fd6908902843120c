"""What a server counts while it serves, for whoever looks at it from outside: requests, waits, refusals.

A server that is not asked for it is built from other functions, so that without it a request costs nothing. With it,
counting is one call of C for each number. What needs a clock is done for one request in ``ONE_IN`` alone: how long it
waited for a thread, how long for the catalog's lock, and how long its handler took. Those are the requests whose number
is a multiple of it, so a steady load is sampled evenly.

Left out: how the numbers are shown (``process/scraping.py``).
"""

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from threading import Lock

from stock_service.rpc.errors import Fault, FaultCode

ONE_IN = 64
"""Of so many requests one is looked at with a clock. A power of 2."""

SKIPPED = ONE_IN - 1
"""The bits of a number that are 0 where it is looked at."""

BOUNDS_S = tuple(digit * 10**power for power in range(-6, 1) for digit in (1, 2, 5))
"""Bounds of a histogram's buckets, in seconds: 1 µs to 5 s."""

OK = "OK"
"""The outcome of a method whose replies have no status."""

UNKNOWN = "UNKNOWN"
"""The outcome of a reply whose status has no name."""

CANCELLED = "CANCELLED"
"""The outcome of a request of several replies whose client did not take the last."""

now_ns = time.monotonic_ns


class Tally:
    """A number that grows. Any thread may call ``add`` and ``value``."""

    def __init__(self) -> None:
        self.add: Callable[[], int] = count().__next__  # atomic in CPython
        self._lock = Lock()  # guards what follows
        self._looks = 0  # how often ``value`` has taken a number itself

    def value(self) -> int:
        """How often ``add`` was called by others."""
        with self._lock:
            number = self.add() - self._looks
            self._looks += 1
            return number


class Times:
    """A histogram of times. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = Lock()  # guards what follows
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum_ns = 0

    def observe(self, taken_ns: int) -> None:
        """Counts one, in nanoseconds."""
        bucket = bisect_left(BOUNDS_S, taken_ns / 1e9)
        with self._lock:
            self._counts[bucket] += 1
            self._sum_ns += taken_ns

    def seen(self) -> tuple[Sequence[int], float]:
        """How many there were in each bucket, the last without a bound; and the sum of all, in seconds."""
        with self._lock:
            return tuple(self._counts), self._sum_ns / 1e9


class Meter:
    """What is counted of one method. Any thread may use it."""

    def __init__(self, outcomes: Mapping[int, str]) -> None:
        """``outcomes``: the names of its replies' statuses; empty where they have none."""
        self.times = Times()
        self.by_status = bool(outcomes)
        self._begun, self._set_aside = Tally(), Tally()
        self._outcomes = {name: Tally() for name in (*outcomes.values(), UNKNOWN)} if outcomes else {OK: Tally()}
        self._faults: defaultdict[str, Tally] = defaultdict(Tally)  # by the code's name
        self._lock = Lock()  # guards the faults
        self.begin = self._begun.add
        """To be called once a request is begun; the number that it gives is its own."""
        self.set_aside = self._set_aside.add
        """Of a request that waits without a thread, and is begun again."""
        self.ended: Mapping[object, Callable[[], int]]
        """What is to be called for a reply of some status; of a method without statuses for None."""
        if outcomes:
            other = self._outcomes[UNKNOWN].add
            known: dict[object, Callable[[], int]] = {
                number: self._outcomes[name].add for number, name in outcomes.items()
            }
            self.ended = defaultdict(lambda: other, known)
        else:
            self.ended = {None: self._outcomes[OK].add}

    def failed(self, code: str) -> None:
        """A request ended with a fault."""
        with self._lock:
            self._faults[code].add()

    def missed(self) -> None:
        """A request was not begun before its client gave up."""
        self.begin()
        self.failed(FaultCode.DEADLINE_EXCEEDED.name)

    def outcomes(self) -> dict[str, int]:
        """How many requests ended how: by the name of the status, or of the fault's code."""
        with self._lock:
            tallies = {**self._outcomes, **self._faults}
        return {name: tally.value() for name, tally in tallies.items()}

    def under_way(self) -> int:
        """Requests in a handler, nearly: those that end meanwhile may be counted."""
        ended = sum(self.outcomes().values()) + self._set_aside.value()
        return max(0, self._begun.value() - ended)


class Metrics:
    """What is counted of one server. Any thread may use it."""

    def __init__(self) -> None:
        self.meters: dict[str, Meter] = {}
        """By the method's path."""
        self.queue_wait, self.lock_wait = Times(), Times()
        self._refusals: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
        self._lock = Lock()  # guards the refusals

    def meter(self, path: str, outcomes: Mapping[int, str]) -> Meter:
        """What counts a method from now on. Before the server serves."""
        return self.meters.setdefault(path, Meter(outcomes))

    def refused(self, what: str, code: str) -> None:
        """A ``request`` or a ``connection`` was refused, with a fault's code, before a thread had it."""
        with self._lock:
            self._refusals[what, code].add()

    def refusals(self) -> dict[tuple[str, str], int]:
        """How many were refused, by what and with which code."""
        with self._lock:
            tallies = dict(self._refusals)
        return {key: tally.value() for key, tally in tallies.items()}

    def waited(self, execute: Callable[[Callable[[], object]], None]) -> Callable[[Callable[[], object]], None]:
        """An executor's ``execute``, counted: what it refuses, and of some tasks how long they wait for a thread."""
        number, observe = count().__next__, self.queue_wait.observe

        def execute_noting(task: Callable[[], object]) -> None:
            try:
                execute(task if number() & SKIPPED else partial(_noting, observe, now_ns(), task))
            except Fault as fault:
                self.refused("request", fault.code.name)
                raise

        return execute_noting


def _noting(observe: Callable[[int], None], since_ns: int, task: Callable[[], object]) -> None:
    observe(now_ns() - since_ns)
    task()
