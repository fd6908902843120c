"""The closed loop on one connection, over any transport: send, wait for the reply, send the next.

The hot loop does nothing but take two times, call, look the reply up among those known to be valid, and append three
numbers; everything else is prepared before it or folded after it. Response time is from just before the call to just
after it, the client's share included; with a connection per request, connecting too, but not closing.

A fault is recorded and never retried: the next request is a new one, on a connection made anew outside its time. A
first call waits until the run ends, since a client that the server keeps waiting is starved, and that is no error.
"""

import time
from collections.abc import Callable, Iterator, MutableSequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from clients.load.records import Deadline, Records, fault_outcome
from clients.load.workload import Request
from stock_service.errors import DeadlineExceeded, Fault
from stock_service.transports import Connection

BLOCK = 16
"""Requests between two looks at whether records must be folded, and two signs of progress."""

PAUSE_S = 0.01
"""After a fault: a server that refuses, or is gone, is asked a hundred times a second by each connection, no more."""

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

        A first call that ends in a fault is recorded, and the next call is the first.
        """

    def drive(self) -> bool:
        """Sends until the deadline, or until the records must be folded; says whether it stopped for that."""

    def close(self) -> None:
        """Closes the connection. May be repeated."""


class KeptAlive:
    """One connection for all requests. See ``Driver``."""

    def __init__(self, requests: Iterator[Request], surroundings: Surroundings) -> None:
        self.records = Records()
        self._requests = requests
        self._around = surroundings
        self._connection: Connection | None = None
        self._folded = 0

    def connect(self) -> None:
        """See ``Driver.connect``."""
        self._connect(self._around.timeout_s)

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
                self._give_up(sent_ns, request, fault)
            else:
                done_ns = clock_ns()
                self.records.note(sent_ns, done_ns, request.known.get(reply) or request.check(reply))
                return True
        return False

    def drive(self) -> bool:
        """See ``Driver.drive``. The hot loop."""
        around, records = self._around, self.records
        clock_ns, deadline, timeout_s = around.clock_ns, around.deadline, around.timeout_s
        append_sent, append_done, append_outcome = records.sent.append, records.done.append, records.outcomes.append
        while len(records.outcomes) < around.records_max:
            around.progress[around.place] = self._folded + len(records.outcomes)
            connection = self._connected()
            if connection is None:
                return False
            call = connection.call
            for request in islice(self._requests, BLOCK):
                path, payload, known, check, _ = request
                sent_ns = clock_ns()
                if sent_ns >= deadline.ns:
                    return False
                try:
                    reply = call(path, payload, timeout_s)
                except Fault as fault:
                    self._give_up(sent_ns, request, fault)
                    break
                done_ns = clock_ns()
                append_sent(sent_ns)
                append_done(done_ns)
                append_outcome(known.get(reply) or check(reply))
        self._folded += len(records.outcomes)
        return True

    def close(self) -> None:
        """See ``Driver.close``."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _give_up(self, sent_ns: int, request: Request, fault: Fault) -> None:
        """Records a fault, leaves its connection, and the server alone for a moment."""
        self.records.note(sent_ns, self._around.clock_ns(), request.first + fault_outcome(fault))
        self.close()
        self._around.pause(PAUSE_S)

    def _connected(self) -> Connection | None:
        """The connection, made anew after a fault; None if the deadline came first. Failed attempts are recorded."""
        clock_ns, deadline = self._around.clock_ns, self._around.deadline
        while self._connection is None and (began_ns := clock_ns()) < deadline.ns:
            try:
                self._connect(min(self._around.timeout_s, (deadline.ns - began_ns) / 1e9))
            except Fault as fault:
                self.records.note(began_ns, clock_ns(), fault_outcome(fault))
                self._around.pause(PAUSE_S)
        return self._connection

    def _connect(self, timeout_s: float) -> None:
        began_ns = self._around.clock_ns()
        self._connection = self._around.connect(timeout_s)
        self.records.note_connect(began_ns, self._around.clock_ns())


class PerRequest:
    """A new connection for every request. See ``Driver``."""

    def __init__(self, requests: Iterator[Request], surroundings: Surroundings) -> None:
        self.records = Records()
        self._requests = requests
        self._around = surroundings
        self._connection: Connection | None = None
        self._folded = 0

    def connect(self) -> None:
        """See ``Driver.connect``: a connection that no request uses."""
        self._around.connect(self._around.timeout_s).close()

    def first_call(self, end_ns: int) -> bool:
        """See ``Driver.first_call``: the first connection, and its request."""
        for request in self._requests:
            sent_ns = self._around.clock_ns()
            if sent_ns >= min(end_ns, self._around.deadline.ns):
                return False
            fault = self._send(request, sent_ns, (end_ns - sent_ns) / 1e9)
            if fault is None:
                return True
            if not is_starved(fault, self._around.clock_ns(), end_ns):
                self._give_up(sent_ns, request, fault)
        return False

    def drive(self) -> bool:
        """See ``Driver.drive``. The hot loop."""
        around, records = self._around, self.records
        clock_ns, deadline, timeout_s = around.clock_ns, around.deadline, around.timeout_s
        while len(records.outcomes) < around.records_max:
            around.progress[around.place] = self._folded + len(records.outcomes)
            for request in islice(self._requests, BLOCK):
                sent_ns = clock_ns()
                if sent_ns >= deadline.ns:
                    return False
                fault = self._send(request, sent_ns, timeout_s)
                if fault is not None:
                    self._give_up(sent_ns, request, fault)
        self._folded += len(records.outcomes)
        return True

    def close(self) -> None:
        """See ``Driver.close``."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, request: Request, sent_ns: int, timeout_s: float) -> Fault | None:
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
        records.note(sent_ns, done_ns, request.known.get(reply) or request.check(reply))
        return None

    def _give_up(self, sent_ns: int, request: Request, fault: Fault) -> None:
        """Records a fault, and leaves the server alone for a moment."""
        self.records.note(sent_ns, self._around.clock_ns(), request.first + fault_outcome(fault))
        self._around.pause(PAUSE_S)
