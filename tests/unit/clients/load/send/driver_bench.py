"""Parts for tests of drivers: a fake clock, and connections to a service in this process."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.workload import Request, Workload
from clients.load.record.records import Deadline
from clients.load.send.driver import Driver, Surroundings
from stock_service.rpc.errors import DeadlineExceeded, Fault, Unavailable
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


@dataclass
class Bench:
    """A clock, and connections to a service. Connecting takes 1000 ns of the clock, and each call takes ``call_ns``."""

    calls: int = 10**6
    """Number of the call that sets the deadline."""
    served: Service = field(default_factory=service)
    due_ns: Sequence[int] | None = None
    """An open loop's moments after the start."""
    faults: Mapping[int, Fault] = field(default_factory=dict)
    """Faults of calls, by the call's number."""
    refused: Collection[int] = ()
    """Numbers of the attempts to connect that are refused."""
    connects: int = 0
    """Number of the attempt to connect that sets the deadline."""
    starving: bool = False
    """True if no call is ever answered."""
    clock: Clock = field(default_factory=Clock)
    deadline: Deadline = field(default_factory=lambda: Deadline(DAY_NS))
    connections: list[FakeConnection] = field(default_factory=list)
    attempts_ns: list[int] = field(default_factory=list)
    """Moments of the attempts to connect."""
    progress: list[int] = field(default_factory=lambda: [0])
    call_ns: int = 100
    slow_next_ns: int = 0
    """Additional time of the next call."""
    interrupt_in_pause_after_ns: int | None = None
    """A pause longer than this sets the deadline to 0."""

    @property
    def sent(self) -> list[tuple[str, bytes, float]]:
        """Calls of all connections: path, payload and timeout."""
        return [call for connection in self.connections for call in connection.calls]

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
            due_ns=None if self.due_ns is None else self._schedule,
            spin_ns=50,
        )
        return Driver(requests(), self._connect, around, per_request)

    def _schedule(self, start_ns: int) -> Iterator[int]:
        assert self.due_ns is not None
        yield from (start_ns + due for due in self.due_ns)
        yield from repeat(2**62)

    def _connect(self, timeout_s: float) -> Connection:
        self.clock.now_ns += 1000
        self.attempts_ns.append(self.clock.now_ns)
        if len(self.attempts_ns) == self.connects:
            self.deadline.ns = 0
        if len(self.attempts_ns) in self.refused:
            raise Unavailable("refused")
        self.connections.append(FakeConnection(self.served, self._takes_time))
        return self.connections[-1]

    def _takes_time(self, _: int) -> None:
        """Takes the time of a call, and raises the call's fault."""
        if self.starving:
            self.clock.pause(self.sent[-1][2])
            raise DeadlineExceeded("never taken up")
        self.clock.now_ns += self.call_ns + self.slow_next_ns
        self.slow_next_ns = 0
        number = len(self.sent)
        if number == self.calls:
            self.deadline.ns = 0
        if number in self.faults:
            raise self.faults[number]

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
