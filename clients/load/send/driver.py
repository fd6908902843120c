"""One connection and one request at a time, over any transport: send, wait for the reply, send the next.

The hot loop does nothing but take two times, call, look the reply up among those known to be valid, and append three
numbers; everything else is prepared before it or folded after it. Service time is from just before the call to just
after it, the client's share included; with a connection per request, connecting too, but not closing.

In an open loop each connection has a part of the schedule and waits for the next moment on it; a reply that comes later
than that makes the next send late, and its response time counts from when it was due (as in wrk2).

A fault is recorded and never retried: the next request is a new one, on a connection made anew outside its time. The
first call on each kept connection is marked, answered or failed; the very first waits until the run ends, since a
client that the server keeps waiting is starved, and that is no error. In an open loop the very first, and those in its
place where it fails, are none of the schedule's, and all that is marked: what is due after a fault is the schedule's,
on a connection made anew too.

A signal may cut a loop through between any two lines: a request counts as recorded once its outcome is there, which
is written down last.
"""

import time
from collections.abc import Callable, Iterator, MutableSequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from clients.load.plan.outcomes import NEVER_SENT, fault_outcome
from clients.load.plan.workload import Request
from clients.load.record.records import Deadline, Records
from stock_service.rpc.errors import DeadlineExceeded, Fault
from stock_service.rpc.transports import Connection

BLOCK = 16
"""Requests between two looks at whether records must be folded, and two signs of progress."""

PAUSE_S = 0.01
"""After a fault: a server that refuses, or is gone, is asked a hundred times a second by each connection, no more."""

LATE_NS = 20_000_000
"""How long after the deadline a request that was due before it is still sent."""

STARVED_NS = 100_000_000
"""How long before the run's end a first call may be given up and still count as starved: timers are not that exact."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a driver is given from outside, so that tests need neither a server nor a clock."""

    connect: Callable[[float], Connection]
    """Makes a connection within so many seconds, or raises a Fault."""
    deadline: Deadline
    timeout_s: float
    records_max: int
    """Records held before the hot loop stops to have them folded."""
    progress: MutableSequence[int]
    """Where to say how many requests are done, for whoever watches: at ``place``."""
    place: int
    clock_ns: Callable[[], int] = time.perf_counter_ns
    pause: Callable[[float], None] = time.sleep
    due_ns: Callable[[int], Iterator[int]] | None = None
    """An open loop's moments from a start on; None: a closed loop, where the next request is due at once."""
    spin_ns: int = 0
    """How long before a moment to look at the clock without pause: a pause may end 0.1 ms late."""


def is_starved(fault: Fault, now_ns: int, end_ns: int) -> bool:
    """Whether a first call ended because the run did: the server never took it up."""
    return isinstance(fault, DeadlineExceeded) and now_ns >= end_ns - STARVED_NS


class Driver(Protocol):
    """One connection, or one after the other. One thread's; whoever made it closes it."""

    records: Records

    def connect(self) -> None:
        """Makes the connection, or sees that one can be made. Raises a Fault."""

    def first_call(self, end_ns: int) -> bool:
        """Makes the first call, waiting for the reply until ``end_ns``; whether there was one.

        A first call that ends in a fault is recorded, marked as such, and the next call is the first.
        """

    def drive(self) -> bool:
        """Sends until the deadline, or until the records must be folded; says whether it stopped for that."""

    def write_off(self) -> None:
        """Records what an open loop's schedule had due and was not sent. After the last ``drive``."""

    def unsent(self, until_ns: int) -> int:
        """How many requests an open loop's schedule had due until then that were not sent. After the last ``drive``."""

    def close(self) -> None:
        """Closes the connection. May be repeated."""


class Pace:
    """The schedule of one connection in an open loop. One thread's."""

    def __init__(self, moments: Iterator[int], around: Surroundings) -> None:
        self._moments = moments
        self._around = around
        self._next_ns = next(moments)
        self.due_ns = 0
        """When the request is due that ``wait`` waited for."""

    def wait(self) -> bool:
        """Blocks until the next request is due; False where that is past the deadline, or it is too late to send."""
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
        """Records what was due before the deadline and never sent, since an earlier reply took too long, or the first
        never came."""
        now_ns = self._around.clock_ns()
        while self._next_ns < self._around.deadline.ns:
            records.started += 1
            records.note(now_ns, now_ns, next(requests).first + NEVER_SENT, self._next_ns)
            self._next_ns = next(self._moments)

    def unsent(self, until_ns: int) -> int:
        """How many requests were due before then and never sent, of a run that was interrupted. To be asked once."""
        count = 0
        while self._next_ns < until_ns:
            count += 1
            self._next_ns = next(self._moments, until_ns)  # none where the schedule itself was cut through
        return count


class KeptAlive:
    """One connection for all requests. See ``Driver``."""

    def __init__(self, requests: Iterator[Request], surroundings: Surroundings) -> None:
        self.records = Records()
        self._requests = requests
        self._around = surroundings
        self._connection: Connection | None = None
        self._unused = True  # no call has succeeded on this connection
        self._pace: Pace | None = None
        self._folded = 0

    def connect(self) -> None:
        """See ``Driver.connect``."""
        self._connect(self._around.timeout_s)
        self._pace = pace(self._around)

    def first_call(self, end_ns: int) -> bool:
        """See ``Driver.first_call``."""
        clock_ns = self._around.clock_ns
        for request in self._requests:
            connection = self._connected()
            sent_ns = clock_ns()
            if connection is None or sent_ns >= min(end_ns, self._around.deadline.ns):
                return False
            try:
                reply = connection.call(request.path, request.payload, (end_ns - sent_ns) / 1e9)
            except Fault as fault:
                if is_starved(fault, clock_ns(), end_ns):
                    return False
                self._give_up(sent_ns, sent_ns, request, fault, first=True)
            else:
                self._note(sent_ns, clock_ns(), request.known.get(reply) or request.check(reply), sent_ns)
                self.records.note_first()
                self._unused = False
                return True
        return False

    def drive(self) -> bool:
        """See ``Driver.drive``. The hot loop."""
        around, records, pace = self._around, self.records, self._pace
        clock_ns, deadline, timeout_s = around.clock_ns, around.deadline, around.timeout_s
        append_sent, append_done, append_outcome = records.sent.append, records.done.append, records.outcomes.append
        while len(records.outcomes) < around.records_max:
            around.progress[around.place] = self._folded + len(records.outcomes)
            connection = self._connected()
            if connection is None:
                return False
            call = connection.call
            for request in islice(self._requests, 1 if self._unused else BLOCK):
                path, payload, known, check, _ = request
                if pace is not None and not pace.wait():
                    return False
                sent_ns = clock_ns()
                if pace is None and sent_ns >= deadline.ns:
                    return False
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
            else:
                if self._unused:
                    self._unused = False
                    if pace is None:  # what was due belongs to the schedule, whatever connection it is on
                        records.note_first()
        self._folded += len(records.outcomes)
        return True

    def write_off(self) -> None:
        """See ``Driver.write_off``."""
        if self._pace is not None:
            self._pace.write_off(self.records, self._requests)

    def unsent(self, until_ns: int) -> int:
        """See ``Driver.unsent``."""
        return 0 if self._pace is None else self._pace.unsent(until_ns)

    def close(self) -> None:
        """See ``Driver.close``."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _note(self, sent_ns: int, done_ns: int, outcome: int, due_ns: int) -> None:
        """Keeps a request outside the hot loop."""
        self.records.started += 1
        self.records.note(sent_ns, done_ns, outcome, None if self._pace is None else due_ns)

    def _give_up(self, sent_ns: int, due_ns: int, request: Request, fault: Fault, first: bool = False) -> None:
        """Records a fault, leaves its connection, and the server alone for a moment."""
        self._note(sent_ns, self._around.clock_ns(), request.first + fault_outcome(fault), due_ns)
        if first:
            self.records.note_first()
        self.close()
        self._around.pause(PAUSE_S)

    def _connected(self) -> Connection | None:
        """The connection, made anew after a fault; None if the deadline came first. Failed attempts are counted."""
        clock_ns, deadline = self._around.clock_ns, self._around.deadline
        while self._connection is None and (began_ns := clock_ns()) < deadline.ns:
            try:
                self._connect(min(self._around.timeout_s, (deadline.ns - began_ns) / 1e9))
            except Fault as fault:
                self.records.note_unconnected(fault)
                self._around.pause(PAUSE_S)
        return self._connection

    def _connect(self, timeout_s: float) -> None:
        began_ns = self._around.clock_ns()
        self._connection = self._around.connect(timeout_s)
        self._unused = True
        self.records.note_connect(began_ns, self._around.clock_ns())


class PerRequest:
    """A new connection for every request. See ``Driver``."""

    def __init__(self, requests: Iterator[Request], surroundings: Surroundings) -> None:
        self.records = Records()
        self._requests = requests
        self._around = surroundings
        self._connection: Connection | None = None
        self._pace: Pace | None = None
        self._folded = 0

    def connect(self) -> None:
        """See ``Driver.connect``: a connection that no request uses."""
        self._around.connect(self._around.timeout_s).close()
        self._pace = pace(self._around)

    def first_call(self, end_ns: int) -> bool:
        """See ``Driver.first_call``: the first connection, and its request."""
        for request in self._requests:
            sent_ns = self._around.clock_ns()
            if sent_ns >= min(end_ns, self._around.deadline.ns):
                return False
            fault = self._send(request, sent_ns, sent_ns, (end_ns - sent_ns) / 1e9)
            if fault is None:
                self.records.note_first()
                return True
            if not is_starved(fault, self._around.clock_ns(), end_ns):
                self._give_up(sent_ns, sent_ns, request, fault, first=True)
        return False

    def drive(self) -> bool:
        """See ``Driver.drive``. The hot loop."""
        around, records, pace = self._around, self.records, self._pace
        clock_ns, deadline, timeout_s = around.clock_ns, around.deadline, around.timeout_s
        while len(records.outcomes) < around.records_max:
            around.progress[around.place] = self._folded + len(records.outcomes)
            for request in islice(self._requests, BLOCK):
                if pace is not None and not pace.wait():
                    return False
                sent_ns = clock_ns()
                if pace is None and sent_ns >= deadline.ns:
                    return False
                due_ns = sent_ns if pace is None else pace.due_ns
                fault = self._send(request, sent_ns, due_ns, timeout_s)
                if fault is not None:
                    self._give_up(sent_ns, due_ns, request, fault)
        self._folded += len(records.outcomes)
        return True

    def write_off(self) -> None:
        """See ``Driver.write_off``."""
        if self._pace is not None:
            self._pace.write_off(self.records, self._requests)

    def unsent(self, until_ns: int) -> int:
        """See ``Driver.unsent``."""
        return 0 if self._pace is None else self._pace.unsent(until_ns)

    def close(self) -> None:
        """See ``Driver.close``."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, request: Request, sent_ns: int, due_ns: int, timeout_s: float) -> Fault | None:
        """One request on a connection of its own: recorded, or the fault that it ended in."""
        clock_ns, records = self._around.clock_ns, self.records
        try:
            self._connection = self._around.connect(timeout_s)
            connected_ns = clock_ns()
            left_s = max(0.001, timeout_s - (connected_ns - sent_ns) / 1e9)
            reply = self._connection.call(request.path, request.payload, left_s)
            done_ns = clock_ns()
        except Fault as fault:
            return fault
        finally:
            self.close()
        records.note_connect(sent_ns, connected_ns)
        records.started += 1
        outcome = request.known.get(reply) or request.check(reply)
        records.note(sent_ns, done_ns, outcome, None if self._pace is None else due_ns)
        return None

    def _give_up(self, sent_ns: int, due_ns: int, request: Request, fault: Fault, first: bool = False) -> None:
        """Records a fault, and leaves the server alone for a moment."""
        records, now_ns = self.records, self._around.clock_ns()
        records.started += 1
        outcome = request.first + fault_outcome(fault)
        records.note(sent_ns, now_ns, outcome, None if self._pace is None else due_ns)
        if first:
            records.note_first()
        self._around.pause(PAUSE_S)


def pace(around: Surroundings) -> Pace | None:
    """A connection's schedule, from now on; None in a closed loop."""
    return None if around.due_ns is None else Pace(around.due_ns(around.clock_ns()), around)
