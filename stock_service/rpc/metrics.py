"""Metrics of a running server: requests, waits, refusals.

A server without metrics uses other functions, so its requests spend no time on metrics. With metrics, counting a reply
takes one call of a C function. A clock measures only one request in ``ONE_IN``: its wait for a thread, its wait for the
catalog's lock, and the time in its handler. Requests are numbered, and the measured requests have the multiples of
``ONE_IN``: so a steady load is sampled evenly.

Left out: metrics that do not concern requests, and the HTTP endpoint of the metrics (``process/scraping.py``).
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

from stock_service.rpc.errors import Fault, FaultCode

if TYPE_CHECKING:
    from prometheus_client import Histogram, Metric

NAME = "stock_service"
"""Beginning of every metric's name."""

Observe = Callable[[float], None]
"""Function that adds a time in seconds to a histogram. Thread-safe."""

ONE_IN = 64
"""Sampling ratio: a clock measures one request in 64. A power of 2."""

SKIPPED = ONE_IN - 1
"""Bit mask: a clock measures a request whose number has none of these bits."""

BOUNDS_S = tuple(float(f"{digit}e{power}") for power in range(-6, 1) for digit in (1, 2, 5))
"""Upper bounds of a histogram's buckets, in seconds: 1 µs to 5 s."""

OK = "OK"
"""Outcome of every answered request of a method whose replies have no status."""

UNKNOWN = "UNKNOWN"
"""Outcome of a request whose reply has a status without a name."""

CANCELLED = "CANCELLED"
"""Outcome of a request whose client ended the call before the last of several replies."""

now_ns = time.monotonic_ns


class Tally:
    """Counter whose method ``add`` takes no lock. Thread-safe."""

    def __init__(self) -> None:
        self.add: Callable[[], int] = count().__next__  # atomic in CPython
        self._lock = Lock()  # guards _looks
        self._looks = 0  # number of calls of ``add`` by ``value``

    def value(self) -> int:
        """Returns the number of calls of ``add``. The calls by ``value`` itself do not count."""
        with self._lock:
            number = self.add() - self._looks
            self._looks += 1
            return number


class Meter:
    """Counters of one method's requests, by outcome. Thread-safe."""

    def __init__(self, outcomes: Mapping[int, str], observe: Observe) -> None:
        """``outcomes`` has the name of each status of the method's replies, by the status's number. Empty for replies
        without a status. ``observe`` takes the time, in seconds, that a request spends in the method's handler.
        """
        self.observe = observe
        self.by_status = bool(outcomes)
        self._outcomes = {name: Tally() for name in (*outcomes.values(), UNKNOWN)} if outcomes else {OK: Tally()}
        self._faults: defaultdict[str, Tally] = defaultdict(Tally)  # by the name of the fault's code
        self._lock = Lock()  # guards _faults
        self.begin: Callable[[], int] = count().__next__
        """Function that returns the next number for a request. Call this function when a request begins, or resumes
        after a wait without a thread.
        """
        self.ended: Mapping[object, Callable[[], int]]
        """Functions that count a reply, by the reply's status. A method without statuses has one function, with the key
        None.
        """
        if outcomes:
            other = self._outcomes[UNKNOWN].add
            known: dict[object, Callable[[], int]] = {
                number: self._outcomes[name].add for number, name in outcomes.items()
            }
            self.ended = defaultdict(lambda: other, known)
        else:
            self.ended = {None: self._outcomes[OK].add}

    def failed(self, code: str) -> None:
        """Counts a request that ended with a fault or ``CANCELLED``. ``code`` is the name of the fault's code, or
        ``CANCELLED``.
        """
        with self._lock:
            self._faults[code].add()

    def missed(self) -> None:
        """Counts a request whose time limit was over before the request began."""
        self.failed(FaultCode.DEADLINE_EXCEEDED.name)

    def outcomes(self) -> dict[str, int]:
        """Returns the number of requests with each outcome, by the name of the status or of the fault's code."""
        with self._lock:
            tallies = {**self._outcomes, **self._faults}
        return {name: tally.value() for name, tally in tallies.items()}


class Metrics:
    """The metrics of one server, in a ``registry`` of prometheus-client. Thread-safe.

    ``Meter`` counts requests with ``Tally.add``, which takes 0.04 µs. prometheus-client's ``Counter.inc`` takes 0.32
    µs, which is longer than all other counting of a request. All other metrics use prometheus-client's classes.
    """

    def __init__(self) -> None:
        """Imports prometheus-client, which a server without metrics does not need. Raises ModuleNotFoundError."""
        from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

        disable_created_metrics()  # type: ignore[no-untyped-call]  # else each metric has one more series: its start
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.meters: dict[str, Meter] = {}
        """Meter of each method, by the method's path."""

        def times(name: str, meaning: str, labels: tuple[str, ...] = ()) -> "Histogram":
            meaning = f"{meaning}, of one request in {ONE_IN}."
            return Histogram(f"{NAME}_{name}_seconds", meaning, labels, buckets=BOUNDS_S, registry=self.registry)

        self.waited_s: Observe = times("queue_wait", "From a request's arrival to a thread").observe
        self.waited_for_lock_s: Observe = times("lock_wait", "For the catalog's lock; none with a file").observe
        self._handler = times("handler", "In the handler", ("method",))
        meaning = "Refused: for want of room, or of a right."
        refusals = Counter(f"{NAME}_refusals", meaning, ("what", "fault"), registry=self.registry)
        self._refused = cache(lambda what, code: refusals.labels(what, code).inc)

    def collect(self) -> "Iterator[Metric]":
        """Yields the counts of the ended requests. prometheus-client calls ``collect`` for each scrape."""
        from prometheus_client.core import CounterMetricFamily

        requests = CounterMetricFamily(f"{NAME}_requests", "Requests that ended.", labels=("method", "outcome"))
        for path, meter in self.meters.items():
            for outcome, number in meter.outcomes().items():
                requests.add_metric((path, outcome), number)
        yield requests

    def meter(self, path: str, outcomes: Mapping[int, str]) -> Meter:
        """Returns the meter of a method, which counts the method's requests. Call ``meter`` before serving."""
        return self.meters.setdefault(path, Meter(outcomes, self._handler.labels(path).observe))

    def refused(self, what: str, code: str) -> None:
        """Counts a request or a connection that the server refuses. ``what`` is ``request`` or ``connection``, and
        ``code`` is the name of the fault's code.
        """
        self._refused(what, code)()

    def waited(self, execute: Callable[[Callable[[], object]], None]) -> Callable[[Callable[[], object]], None]:
        """Wraps an executor's ``execute``. The returned function also counts refused tasks. For one task in ``ONE_IN``,
        the function measures the wait for a thread.
        """
        number, observe = count().__next__, self.waited_s

        def execute_noting(task: Callable[[], object]) -> None:
            try:
                execute(task if number() & SKIPPED else partial(_noting, observe, now_ns(), task))
            except Fault as fault:
                self.refused("request", fault.code.name)
                raise

        return execute_noting


def _noting(observe: Observe, since_ns: int, task: Callable[[], object]) -> None:
    observe((now_ns() - since_ns) / 1e9)
    task()
