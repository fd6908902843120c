"""Driver: a connection with one request at a time, over any transport. The driver sends a request, waits for the reply,
and sends the next request. The driver is used with the transport's own client, and with both kinds of client for a
connection per request. ``lanes.py`` drives the lean client's kept connections.

For each request the hot loop reads the clock twice, makes the call, looks the reply up among the known valid replies,
and appends three numbers. All other work is done before or after the loop. Service time begins just before the call and
ends just after the call. So service time includes the client's own work. With a connection per request, service time
includes connecting, but not closing.

In an open loop each connection has a part of the schedule, and waits for the next due moment. A reply that comes after
the next due moment makes the next send late. The response time of a late request begins when the request was due (as in
wrk2).

A fault is recorded, and the request is never retried. The driver then reconnects. No service time includes the
reconnecting; in an open loop, the response times of requests that were due meanwhile include it.

The first call on a connection is marked, answered or failed, since its time includes work that happens only once. The
very first call of the run may wait until the run ends. A client that waits so long is starved, and starvation is not an
error. In an open loop only the very first call is marked, and this call comes before the schedule. After a reconnect
every request belongs to the schedule.

An interrupted run is folded while a thread may still be in a call. So the outcome is recorded last: a request with an
outcome counts as recorded.
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
"""Number of requests between two checks. A check tells if the records must be folded, and reports the progress."""

PAUSE_S = 0.01
"""Pause after a fault. A connection asks a server that refuses, or that is gone, a hundred times a second at most."""

LATE_NS = 20_000_000
"""Grace time after the deadline. In this time a request that was due before the deadline is still sent."""

STARVED_NS = 100_000_000
"""Tolerance for timers that end early, in nanoseconds. A first call that is given up this long before the run's end
still counts as starved."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Clock, limits and shared state that a sender gets from its caller. A test gives a clock of its own."""

    deadline: Deadline
    timeout_s: float
    records_max: int
    """Number of records at which the hot loop stops, so that the records are folded."""
    progress: MutableSequence[int]
    """Counts of finished requests, for the progress of the run. This sender's count is at ``place``."""
    place: int
    clock_ns: Callable[[], int] = time.perf_counter_ns
    pause: Callable[[float], None] = time.sleep
    due_ns: Callable[[int], Iterator[int]] | None = None
    """Function that gives an open loop's due moments from a start on. None for a closed loop: the next request is due
    at once."""
    spin_ns: int = 0
    """Time of busy waiting before a due moment, in nanoseconds. A sleep may end 0.1 ms late."""
    context: ssl.SSLContext | None = None
    """TLS context of lanes; None for lanes without TLS."""


def is_starved(fault: Fault, now_ns: int, end_ns: int) -> bool:
    """True if a first call failed because the run ended: the server never answered the call."""
    return isinstance(fault, DeadlineExceeded) and now_ns >= end_ns - STARVED_NS


def _not_sent(request: Request) -> bool:
    """Removes a request that was never sent from the kept history. Gives False, which the caller returns."""
    if isinstance(request.check, Asked):
        request.check.not_sent()
    return False


class Pace:
    """Due moments of one connection in an open loop. For one thread."""

    def __init__(self, moments: Iterator[int], around: Surroundings) -> None:
        self._moments = moments
        self._around = around
        self._next_ns = next(moments)
        self.due_ns = 0
        """Due moment of the request for which ``wait`` was last called."""

    def wait(self) -> bool:
        """Blocks until the next request is due. False if the request is due after the deadline, or if the time for
        sending is over."""
        around, due_ns = self._around, self._next_ns
        now_ns = around.clock_ns()
        if due_ns >= around.deadline.ns or now_ns >= around.deadline.ns + LATE_NS:
            return False
        while (left_ns := due_ns - now_ns) > 0:
            if left_ns > around.spin_ns:
                around.pause((left_ns - around.spin_ns) / 1e9)
                if due_ns >= around.deadline.ns:  # interrupted meanwhile
                    return False
            now_ns = around.clock_ns()
        self.due_ns, self._next_ns = due_ns, next(self._moments)
        return True

    def write_off(self, records: Records, requests: Iterator[Request]) -> None:
        """Records the requests that were due before the deadline and never sent: an earlier reply took too long, or
        never came."""
        now_ns = self._around.clock_ns()
        while self._next_ns < self._around.deadline.ns:
            records.started += 1
            records.note(now_ns, now_ns, next(requests).first + NEVER_SENT, self._next_ns)
            self._next_ns = next(self._moments)

    def unsent(self, until_ns: int) -> int:
        """Number of requests that were due before ``until_ns`` and never sent, in an interrupted run. Called once."""
        count = 0
        while self._next_ns < until_ns:
            count += 1
            self._next_ns = next(self._moments, until_ns)  # no moment if the interruption came inside the schedule
        return count


class Driver:
    """Sender of requests over one kept connection, or with ``per_request`` over a new connection for each request. For
    one thread. The caller that makes the driver closes it."""

    def __init__(
        self,
        requests: Iterator[Request],
        connect: Callable[[float], Connection],
        surroundings: Surroundings,
        per_request: bool = False,
    ) -> None:
        """``connect`` takes a timeout in seconds. ``connect`` makes a connection within this time, or raises a
        Fault."""
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
        """Connects. With ``per_request``, connects once as a test. Raises a Fault."""
        if self._per_request:
            self._new_connection(self._around.timeout_s).close()
        else:
            self._connect(self._around.timeout_s)
        if self._around.due_ns is not None:
            self._pace = Pace(self._around.due_ns(self._around.clock_ns()), self._around)

    def first_call(self, end_ns: int) -> bool:
        """Makes the first call, and waits for the reply until ``end_ns``. True if a reply came.

        A first call that ends in a fault is recorded and marked as a first call. The next call is then the first call.
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
        """Sends until the deadline, or until the records must be folded. True if the records must be folded. The hot
        loop."""
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
        """Records a request outside the hot loop."""
        self.records.started += 1
        self.records.note(sent_ns, done_ns, outcome, None if self._pace is None else due_ns)

    def _give_up(self, sent_ns: int, due_ns: int, request: Request, fault: Fault, first: bool = False) -> None:
        """Records a fault, closes the connection, and pauses for ``PAUSE_S``."""
        if isinstance(request.check, Asked):
            request.check.failed(fault)
        self._note(sent_ns, self._around.clock_ns(), request.first + fault_outcome(fault), due_ns)
        if first:
            self.records.note_first()
        self.close()
        self._around.pause(PAUSE_S)

    def _call(self) -> Callable[[str, bytes, float], bytes] | None:
        """Function that makes a call. If the connection was lost, the function connects again, and counts each failed
        attempt. Gives None if the deadline comes before a connection."""
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
        """Makes a new connection, then a call on it. The connection stays open, so that no time includes the
        closing."""
        clock_ns = self._around.clock_ns
        began_ns = clock_ns()
        self._connection = self._new_connection(timeout_s)
        connected_ns = clock_ns()
        reply = self._connection.call(path, payload, max(0.001, timeout_s - (connected_ns - began_ns) / 1e9))
        self.records.note_connect(began_ns, connected_ns)
        return reply

    def _connect(self, timeout_s: float) -> None:
        began_ns = self._around.clock_ns()
        self._connection = self._new_connection(timeout_s)
        self._unused = True
        self.records.note_connect(began_ns, self._around.clock_ns())
