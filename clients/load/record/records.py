"""Records of the hot loops. A record has three moments of a request (due, sent and done), and the outcome.

Records are raw and append-only. A record takes 17 to 25 bytes, in arrays that hold no objects. ``recorder.py`` adds the
records to histograms. A request's outcome is one byte (``plan/outcomes.py``).

The clock is ``time.perf_counter_ns``. On Linux this is CLOCK_MONOTONIC, which all processes share.
"""

from array import array
from collections import Counter
from dataclasses import dataclass

from clients.load.plan.outcomes import fault_outcome
from stock_service.rpc.errors import Fault


class Records:
    """The requests of one connection, in the order in which they ended. Not thread-safe.

    ``due`` has a value for each request of an open loop. In a closed loop ``due`` is empty: a request is due when it is
    sent. ``firsts`` has the index of each request that is marked as a first request. Connects are recorded separately:
    a failed attempt to connect is an error of the run, not a request.
    """

    __slots__ = ("connect_ns", "connected_at", "done", "due", "firsts", "outcomes", "sent", "started", "unconnected")

    def __init__(self) -> None:
        self.due = array("q")  # ns
        self.sent = array("q")  # ns
        self.done = array("q")  # ns
        self.outcomes = array("B")
        self.firsts = array("q")
        self.connected_at = array("q")  # ns; when each connection was made
        self.connect_ns = array("q")  # ns; duration of making each connection
        self.unconnected: Counter[int] = Counter()  # failed attempts to connect, by outcome
        self.started = 0
        """Number of requests begun, counted at the send and not at the end of a request."""

    def note_connect(self, began_ns: int, connected_ns: int) -> None:
        """Records the time that making a connection took."""
        self.connected_at.append(connected_ns)
        self.connect_ns.append(connected_ns - began_ns)

    def note_unconnected(self, fault: Fault) -> None:
        """Counts a failed attempt to connect."""
        self.unconnected[fault_outcome(fault)] += 1

    def note(self, sent_ns: int, done_ns: int, outcome: int, due_ns: int | None = None) -> None:
        """Records one request. The hot loops append the values themselves, without this method. The outcome is written
        last: a request with an outcome counts as recorded."""
        if due_ns is not None:
            self.due.append(due_ns)
        self.sent.append(sent_ns)
        self.done.append(done_ns)
        self.outcomes.append(outcome)

    def note_first(self) -> None:
        """Marks the request that was recorded last as the connection's first request."""
        self.firsts.append(len(self.outcomes) - 1)

    def clear(self) -> None:
        """Empties all records. The arrays remain the same objects, since the hot loops hold references to the arrays.
        The count of begun requests stays."""
        for column in (self.due, self.sent, self.done, self.outcomes, self.firsts, self.connected_at, self.connect_ns):
            del column[:]
        self.unconnected.clear()


@dataclass(slots=True)
class Deadline:
    """Moment on the clock after which no request is sent; 0 ends the sending at once. A signal handler sets the moment,
    and the hot loops read the moment."""

    ns: int


@dataclass(frozen=True, slots=True)
class Window:
    """Three moments on the clock: when all clients connect, when the measured window begins, and when the window ends.
    ``end_ns`` is the first moment after the window."""

    connect_ns: int
    start_ns: int
    end_ns: int
