"""Records of the hot loops: for every request the moments when it was due, sent and done, and its outcome.

Raw and append-only, 17 to 25 bytes a request, in arrays that hold no objects; folded into histograms after the run
(``recorder.py``). How a request ended is one byte (``plan/outcomes.py``).

Clock: ``time.perf_counter_ns``, which on Linux is CLOCK_MONOTONIC and so the same in all processes.
"""

from array import array
from collections import Counter
from dataclasses import dataclass

from clients.load.plan.outcomes import fault_outcome
from stock_service.rpc.errors import Fault


class Records:
    """The requests of one connection, in the order in which they were done. One thread's.

    ``due`` has a value for each request of an open loop. In a closed loop it is empty: a request is due when it is
    sent. ``firsts`` has the places of the requests that were a connection's first. Connects are noted beside them: a
    failed attempt is an error of the run, not a request.
    """

    __slots__ = ("connect_ns", "connected_at", "done", "due", "firsts", "outcomes", "sent", "started", "unconnected")

    def __init__(self) -> None:
        self.due = array("q")  # ns
        self.sent = array("q")  # ns
        self.done = array("q")  # ns
        self.outcomes = array("B")
        self.firsts = array("q")
        self.connected_at = array("q")  # ns; when each connection was made
        self.connect_ns = array("q")  # how long that took
        self.unconnected: Counter[int] = Counter()  # failed attempts to connect, by outcome
        self.started = 0
        """Requests begun, counted where they are sent and not where they are written down."""

    def note_connect(self, began_ns: int, connected_ns: int) -> None:
        """Keeps the time that a connection took."""
        self.connected_at.append(connected_ns)
        self.connect_ns.append(connected_ns - began_ns)

    def note_unconnected(self, fault: Fault) -> None:
        """Counts a failed attempt to connect."""
        self.unconnected[fault_outcome(fault)] += 1

    def note(self, sent_ns: int, done_ns: int, outcome: int, due_ns: int | None = None) -> None:
        """Keeps one request; the hot loops do the same in place. The outcome is written last: with it the request is
        recorded."""
        if due_ns is not None:
            self.due.append(due_ns)
        self.sent.append(sent_ns)
        self.done.append(done_ns)
        self.outcomes.append(outcome)

    def note_first(self) -> None:
        """Marks the last kept request as its connection's first."""
        self.firsts.append(len(self.outcomes) - 1)

    def clear(self) -> None:
        """Forgets all records, but keeps the arrays that the hot loops append to, and the count of begun requests."""
        for column in (self.due, self.sent, self.done, self.outcomes, self.firsts, self.connected_at, self.connect_ns):
            del column[:]
        self.unconnected.clear()


@dataclass(slots=True)
class Deadline:
    """Moment after which nothing is sent, on the clock; 0: at once. A signal handler sets it, the hot loops read it."""

    ns: int


@dataclass(frozen=True, slots=True)
class Window:
    """Moment at which all clients connect, and the measured part, which ends before ``end_ns``; on the clock."""

    connect_ns: int
    start_ns: int
    end_ns: int
