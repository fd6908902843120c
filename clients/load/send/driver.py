"""Driver: sends one request at a time over a connection of any transport. Drivers send for the library client, and for
the lean client with a connection per request. ``lanes.py`` sends over the lean client's kept connections.

For each request the hot loop reads the clock twice, and makes the call. Then the loop looks the reply up among the
known valid replies, and appends three numbers. All other work is done before or after the loop. Service time begins
just before the call and ends just after the call. So service time includes the client's own work. With a connection per
request, service time includes connecting, but not closing.

In an open loop each connection has a part of the schedule, and waits for the next due moment. If a reply comes after
the next due moment, the next request is sent late. The response time of a late request begins when the request was due
(as in wrk2).

A request that ends in a fault is recorded, and is never retried. The driver then reconnects. No service time includes
the time for reconnecting. In an open loop some requests become due while the driver reconnects. The response times of
these requests include the time for reconnecting.

The first call on a kept connection is marked in the records, even if the call fails. The reason: the time of this call
includes work that happens only once. The very first call of a driver may wait for its reply until the run ends. A
client whose very first call gets no reply is *starved*. Starvation is not an error. In an open loop only the very first
call is marked. This call is not part of the schedule. After a reconnect every request is part of the schedule.

After an interrupt, the main thread folds the records (``Recorder.fold``) while a driver's thread may still be in a
call. So a driver appends a request's outcome last: a request with an outcome counts as recorded.
"""

import ssl
import time
from collections.abc import Callable, Iterator, MutableSequence
from dataclasses import dataclass
from itertools import islice

from clients.load.plan.checked_workload import Asked
from clients.load.plan.outcomes import NEVER_SENT, fault_outcome
from clients.load.plan.workload import Request
from clients.load.record.records import Deadline, Records
from stock_service.rpc.errors import DeadlineExceeded, Fault
from stock_service.rpc.transports import Connection

BLOCK = 16
"""Number of requests after which the hot loop reports progress, and checks if the records must be folded."""

PAUSE_S = 0.01
"""Pause after a fault, in seconds. If a server refuses requests or has ended, each connection tries again at most a
hundred times a second.
"""

LATE_NS = 20_000_000
"""Grace time after the deadline, in nanoseconds. Within this time, requests that were due before the deadline are still
sent."""

STARVED_NS = 100_000_000
"""Tolerance for timers that end early, in nanoseconds. A first call counts as starved if its timeout comes at most this
time before the run's end."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Clock, limits and shared state that a sender gets from its caller. A test gives a clock of its own."""

    deadline: Deadline
    timeout_s: float
    records_max: int
    """Largest number of records for each connection. With this number of records, the hot loop stops, so that the
    records can be folded (``Recorder.fold``).
    """
    progress: MutableSequence[int]
    """Number of finished requests of each sender, in memory that the parent process also reads. The number of this
    sender is at index ``place``."""
    place: int
    clock_ns: Callable[[], int] = time.perf_counter_ns
    pause: Callable[[float], None] = time.sleep
    due_ns: Callable[[int], Iterator[int]] | None = None
    """Function that takes a start moment, and yields an open loop's due moments from this moment on. None for a closed
    loop: the next request is due at once.
    """
    spin_ns: int = 0
    """Duration of busy waiting before a due moment, in nanoseconds. A sleep may end 0.1 ms late."""
    context: ssl.SSLContext | None = None
    """TLS context of the lean client's kept connections; None without TLS."""


def is_starved(fault: Fault, now_ns: int, end_ns: int) -> bool:
    """True if a first call timed out because the run ended. ``fault`` is the fault in which the call ended."""
    return isinstance(fault, DeadlineExceeded) and now_ns >= end_ns - STARVED_NS


def _not_sent(request: Request) -> bool:
    """Marks a request as never sent, so that a checked run's history does not include the request. Always returns
    False.
    """
    if isinstance(request.check, Asked):
        request.check.not_sent()
    return False


class Pace:
    """Progress of one connection through its part of an open loop's schedule. Not thread-safe."""

    def __init__(self, moments: Iterator[int], around: Surroundings) -> None:
        self._moments = moments
        self._around = around
        self._next_ns = next(moments)
        self.due_ns = 0
        """Due moment of the request for which ``wait`` was last called."""

    def wait(self) -> bool:
        """Blocks until the next request is due, and returns True. Returns False if the next request is not due before
        the deadline, or if more than ``LATE_NS`` has passed since the deadline."""
        around, due_ns = self._around, self._next_ns
        now_ns = around.clock_ns()
        if due_ns >= around.deadline.ns or now_ns >= around.deadline.ns + LATE_NS:
            return False
        while (left_ns := due_ns - now_ns) > 0:
            if left_ns > around.spin_ns:
                around.pause((left_ns - around.spin_ns) / 1e9)
                if due_ns >= around.deadline.ns:  # an interrupt has moved the deadline meanwhile
                    return False
            now_ns = around.clock_ns()
        self.due_ns, self._next_ns = due_ns, next(self._moments)
        return True

    def write_off(self, records: Records, requests: Iterator[Request]) -> None:
        """Records the requests that were due before the deadline and never sent, with the outcome NEVER_SENT. Such
        requests remain if an earlier reply came too late, or never."""
        now_ns = self._around.clock_ns()
        while self._next_ns < self._around.deadline.ns:
            records.started += 1
            records.note(now_ns, now_ns, next(requests).first + NEVER_SENT, self._next_ns)
            self._next_ns = next(self._moments)

    def unsent(self, until_ns: int) -> int:
        """In an interrupted run, counts the requests that were due before ``until_ns`` and never sent. The method uses
        up the schedule, so call the method only once."""
        count = 0
        while self._next_ns < until_ns:
            count += 1
            self._next_ns = next(self._moments, until_ns)  # an interrupt inside the schedule has ended the iterator
        return count


class Driver:
    """Sender of requests over one kept connection. With ``per_request``, the driver makes a new connection for each
    request. Not thread-safe. The caller must close the driver.
    """

    def __init__(
        self,
        requests: Iterator[Request],
        connect: Callable[[float], Connection],
        surroundings: Surroundings,
        per_request: bool = False,
    ) -> None:
        """``connect`` takes a timeout in seconds, and makes a connection within this timeout or raises a Fault."""
        self.records = Records()
        self._requests = requests
        self._new_connection = connect
        self._around = surroundings
        self._per_request = per_request
        self._connection: Connection | None = None
        self._unused = False  # True for a kept connection without a successful call
        self._pace: Pace | None = None
        self._folded = 0

    def connect(self) -> None:
        """Connects, and starts the schedule of an open loop. With ``per_request``, makes one connection as a test, and
        closes this connection at once. Blocks for the timeout at most. Raises a Fault if connecting fails.
        """
        if self._per_request:
            self._new_connection(self._around.timeout_s).close()
        else:
            self._connect(self._around.timeout_s)
        if self._around.due_ns is not None:
            self._pace = Pace(self._around.due_ns(self._around.clock_ns()), self._around)

    def first_call(self, end_ns: int) -> bool:
        """Makes the first call, and waits for the reply until ``end_ns`` at most. Returns True if a reply came.

        If a first call ends in a fault, the call is recorded, and marked as a first call. The next request is then sent
        as a first call, too.
        """
        clock_ns = self._around.clock_ns
        for request in self._requests:
            call = self._call()
            sent_ns = clock_ns()
            if call is None or sent_ns >= min(end_ns, self._around.deadline.ns):
                return _not_sent(request)
            try:
                reply = call(request.path, request.payload, (end_ns - sent_ns) / 1e9)
            except Fault as fault:
                if is_starved(fault, clock_ns(), end_ns):
                    return False
                self._give_up(sent_ns, sent_ns, request, fault, first=True)
            else:
                done_ns = clock_ns()
                self._note(sent_ns, done_ns, request.known.get(reply) or request.check(reply), sent_ns)
                self.records.note_first()
                self._unused = False
                if self._per_request:
                    self.close()
                return True
        return False

    def drive(self) -> bool:
        """Sends requests until the deadline, or until the records must be folded. Returns True if the records must be
        folded. Contains the hot loop."""
        around, records, pace, per_request = self._around, self.records, self._pace, self._per_request
        clock_ns, deadline, timeout_s = around.clock_ns, around.deadline, around.timeout_s
        append_sent, append_done, append_outcome = records.sent.append, records.done.append, records.outcomes.append
        while len(records.outcomes) < around.records_max:
            around.progress[around.place] = self._folded + len(records.outcomes)
            call = self._call()
            if call is None:
                return False
            for request in islice(self._requests, 1 if self._unused else BLOCK):
                path, payload, known, check, _ = request
                if pace is not None and not pace.wait():
                    return False
                sent_ns = clock_ns()
                if pace is None and sent_ns >= deadline.ns:
                    return _not_sent(request)
                records.started += 1
                try:
                    reply = call(path, payload, timeout_s)
                except Fault as fault:
                    records.started -= 1
                    due_ns = sent_ns if pace is None else pace.due_ns
                    self._give_up(sent_ns, due_ns, request, fault, first=self._unused and pace is None)
                    break
                done_ns = clock_ns()
                if pace is not None:
                    records.due.append(pace.due_ns)
                append_sent(sent_ns)
                append_done(done_ns)
                append_outcome(known.get(reply) or check(reply))
                if per_request:
                    self.close()
            else:
                if self._unused:
                    self._unused = False
                    if pace is None:  # in an open loop the request belongs to the schedule
                        records.note_first()
        self._folded += len(records.outcomes)
        return True

    def write_off(self) -> None:
        """Records the requests of an open loop that were due and were not sent. Called after the last ``drive``."""
        if self._pace is not None:
            self._pace.write_off(self.records, self._requests)

    def unsent(self, until_ns: int) -> int:
        """Number of requests of an open loop that were due before ``until_ns`` and were not sent. Called after the last
        ``drive``."""
        return 0 if self._pace is None else self._pace.unsent(until_ns)

    def close(self) -> None:
        """Closes the connection. A second call has no effect."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _note(self, sent_ns: int, done_ns: int, outcome: int, due_ns: int) -> None:
        """Records a request that was not sent by the hot loop, or that failed."""
        self.records.started += 1
        self.records.note(sent_ns, done_ns, outcome, None if self._pace is None else due_ns)

    def _give_up(self, sent_ns: int, due_ns: int, request: Request, fault: Fault, first: bool = False) -> None:
        """Records a request that ended in a fault, closes the connection, and pauses for ``PAUSE_S``. With ``first``,
        marks the request as a first call."""
        if isinstance(request.check, Asked):
            request.check.failed(fault)
        self._note(sent_ns, self._around.clock_ns(), request.first + fault_outcome(fault), due_ns)
        if first:
            self.records.note_first()
        self.close()
        self._around.pause(PAUSE_S)

    def _call(self) -> Callable[[str, bytes, float], bytes] | None:
        """Returns the function that makes a call. If the connection is lost, first connects again, and records each
        failed attempt. None if the deadline passes before a connection is made."""
        if self._per_request:
            return self._call_on_a_new_one
        clock_ns, deadline = self._around.clock_ns, self._around.deadline
        while self._connection is None and (began_ns := clock_ns()) < deadline.ns:
            try:
                self._connect(min(self._around.timeout_s, (deadline.ns - began_ns) / 1e9))
            except Fault as fault:
                self.records.note_unconnected(fault)
                self._around.pause(PAUSE_S)
        return None if self._connection is None else self._connection.call

    def _call_on_a_new_one(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        """Makes a new connection, then a call on this connection. The caller first records the call's end, and then
        closes the connection. So no measured time includes the closing."""
        clock_ns = self._around.clock_ns
        began_ns = clock_ns()
        self._connection = self._new_connection(timeout_s)
        connected_ns = clock_ns()
        reply = self._connection.call(path, payload, max(0.001, timeout_s - (connected_ns - began_ns) / 1e9))
        self.records.note_connect(began_ns, connected_ns)
        return reply

    def _connect(self, timeout_s: float) -> None:
        """Makes a kept connection, and records the duration of connecting. Raises a Fault."""
        began_ns = self._around.clock_ns()
        self._connection = self._new_connection(timeout_s)
        self._unused = True
        self.records.note_connect(began_ns, self._around.clock_ns())
