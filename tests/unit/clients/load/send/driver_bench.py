"""Parts for tests of drivers: a fake clock, and connections to a service in this process."""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.workload import Request, Workload
from clients.load.record.records import Deadline
from clients.load.send.driver import Driver, Surroundings
from stock_service.rpc.errors import Fault
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Connection
from tests.unit.clients.fakes import Clock, FakeConnection, service

PLAN = LoadPlan("sockets", ("127.0.0.1", 1), 1, {"lookup": 1.0}, ("GameStart", "FishCo"), 0.0, 1.0)

DAY_NS = 10**14
EACH = (False, True)
"""A kept connection, and one for each request."""


def requests() -> Iterator[Request]:
    """Requests of Lookups."""
    return Workload(PLAN).requests(0, 0)


class Bench:
    """A clock, and connections to a service. Each call takes 100 ns of the clock."""

    def __init__(
        self,
        calls: int,
        served: Service | None = None,
        connect: Callable[[], Connection] | None = None,
        due_ns: Sequence[int] | None = None,
    ) -> None:
        """``calls``: the number of calls; the last call sets the deadline. ``due_ns``: an open loop's moments after the
        start."""
        self.clock = Clock()
        self.deadline = Deadline(DAY_NS)
        self.connections: list[FakeConnection] = []
        self.connect_timeouts_s: list[float] = []
        self._left = calls
        self._service = served or service()
        self._connect = connect
        self._due_ns = due_ns
        self.progress = [0]
        self.call_ns = 100
        self.slow_next_ns = 0
        """Additional time of the next call."""
        self.fault_next: Fault | None = None
        """Fault that the next call raises."""
        self.interrupt_in_pause_after_ns: int | None = None
        """A pause longer than this sets the deadline to 0."""

    def driver(self, per_request: bool = False, records_max: int = 10_000) -> Driver:
        """A driver of Lookups in these surroundings."""
        around = Surroundings(
            self.deadline,
            0.5,
            records_max,
            self.progress,
            0,
            clock_ns=self.clock,
            pause=self._pause,
            due_ns=None if self._due_ns is None else self._schedule,
            spin_ns=50,
        )
        return Driver(requests(), self.connect, around, per_request)

    def _schedule(self, start_ns: int) -> Iterator[int]:
        assert self._due_ns is not None
        yield from (start_ns + due for due in self._due_ns)
        yield from repeat(2**62)

    def connect(self, timeout_s: float) -> Connection:
        """Makes a connection; takes 1000 ns."""
        self.clock.now_ns += 1000
        self.connect_timeouts_s.append(timeout_s)
        if self._connect is not None:
            return self._connect()
        self.connections.append(FakeConnection(self._service, self.takes_time))
        return self.connections[-1]

    def takes_time(self, _: int) -> None:
        """Take the time of a call."""
        self.clock.now_ns += self.call_ns + self.slow_next_ns
        self.slow_next_ns = 0
        self._left -= 1
        if self._left == 0:
            self.deadline.ns = 0
        fault, self.fault_next = self.fault_next, None
        if fault is not None:
            raise fault

    def _pause(self, seconds: float) -> None:
        self.clock.pause(seconds)
        if self.interrupt_in_pause_after_ns is not None and seconds * 1e9 > self.interrupt_in_pause_after_ns:
            self.deadline.ns = 0


def driven(per_request: bool, bench: Bench) -> Driver:
    """A driver that has run until the bench's deadline."""
    driver = bench.driver(per_request)
    driver.connect()
    assert driver.first_call(DAY_NS)
    assert not driver.drive()
    return driver
