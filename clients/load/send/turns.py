"""Senders, which send requests in turns. A turn is a slice of time in which one load sends; a block is a sequence of
turns of several loads. A sender keeps its connections during all turns of a block. This module has the hot loop of
every comparison.

During a turn, a connection sends a request, waits for the reply, and sends the next request. The first requests are not
counted. Then come the counted requests. After the counted requests, uncounted requests follow, until every connection
of the load has its last counted reply. So the load is constant from the first counted request to the last counted
reply. The counted requests are found afterwards, from the recorded moments.

``Blocking`` makes blocking calls over one connection, with either kind of client. ``Multiplexed`` sends over many lean
connections in one thread, with ``lanes.py``. A lean client with a single connection uses ``Blocking``, too. With the
epoll of ``Multiplexed``, each request would cost the client 1 to 2 µs (4 to 10 %) more processor time. Left out: open
loops. An open loop needs more time than a turn to become steady.
"""

import time
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from typing import Protocol

from clients.load.plan.outcomes import fault_outcome
from clients.load.plan.turns import Turn
from clients.load.plan.workload import Request
from clients.load.record.records import Records
from clients.load.send.lane import Ready
from clients.load.send.lanes import Lanes
from stock_service.rpc.errors import Fault
from stock_service.rpc.transports import Connection

SPIN_NS = 200_000
"""Duration of busy waiting before a turn, in nanoseconds. A sleep until the turn may end 0.1 ms late."""

_LOOK_NS = 500_000
"""Time in nanoseconds between two checks of the replies and of the board. ``Multiplexed`` makes these checks after the
counted part of a turn.
"""


class Board:
    """Board on which senders mark turns. A sender marks a turn when all counted requests that it sent in the turn are
    answered.

    The board is in memory that all processes share. The board has a value for each sender: ``begin_ns`` of the last
    turn that the sender has marked. Each sender writes only its own value. The processor reads or writes a value in one
    step, so the board needs no lock.
    """

    def __init__(self, places: MutableSequence[int]) -> None:
        self._places = places

    def tell(self, place: int, turn: Turn) -> None:
        """Marks the turn for the sender with the index ``place``: all counted requests of this sender are answered."""
        self._places[place] = turn.begin_ns

    def all_answered(self, places: range, turn: Turn) -> bool:
        """True if the senders with all these indices have marked the turn."""
        return min(self._places[places.start : places.stop]) >= turn.begin_ns


class Sender(Protocol):
    """One or more connections of a process to one server, with one kind of client. Not thread-safe. The caller must
    close the sender.
    """

    def open(self) -> None:
        """Connects. Raises a Fault if connecting fails."""

    def send(self, turn: Turn, place: int, places: range) -> None:
        """Sends requests during the turn, and blocks until all senders of the turn have received their last counted
        reply. The turn may have begun before the call. ``place`` is the index of this sender's value on the board.
        ``places`` has the indices for all senders that send in the turn.
        """

    def recorded(self) -> Sequence[Records]:
        """Records so far, one ``Records`` object for each connection. The caller clears the records."""

    def close(self) -> None:
        """Closes the connections. May be called repeatedly."""


class Blocking:
    """Sender with one connection and blocking calls, for either kind of client."""

    def __init__(
        self,
        connect: Callable[[float], Connection],
        requests: Mapping[int, Iterator[Request]],
        timeout_s: float,
        board: Board,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """``requests`` maps each load's index to an endless sequence of requests. ``connect`` takes a timeout in
        seconds."""
        self._connect = connect
        self._requests = requests
        self._timeout_s = timeout_s
        self._board = board
        self._clock_ns = clock_ns
        self._pause = pause
        self._connection: Connection | None = None
        self._records = Records()

    def open(self) -> None:
        """Connects, and records the duration. Raises a Fault if connecting fails."""
        began_ns = self._clock_ns()
        self._connection = self._connect(self._timeout_s)
        self._records.note_connect(began_ns, self._clock_ns())

    def send(self, turn: Turn, place: int, places: range) -> None:
        """Sends one request after another during the turn, as ``Sender.send`` describes. Contains the hot loop."""
        wait_until(turn.begin_ns, self._clock_ns, self._pause)
        clock_ns, timeout_s, last_ns, records = self._clock_ns, self._timeout_s, turn.last_ns, self._records
        append_sent, append_done, append_outcome = records.sent.append, records.done.append, records.outcomes.append
        assert self._connection is not None
        call, told, begun = self._connection.call, False, 0
        for path, payload, known, check, first in self._requests[turn.load]:
            sent_ns = clock_ns()
            if sent_ns >= last_ns:
                if not told:
                    self._board.tell(place, turn)
                    told = True
                if sent_ns >= turn.stop_ns or self._board.all_answered(places, turn):
                    break
            begun += 1
            try:
                reply = call(path, payload, timeout_s)
            except Fault as fault:
                records.note(sent_ns, clock_ns(), first + fault_outcome(fault))
                continue
            append_done(clock_ns())
            append_sent(sent_ns)
            append_outcome(known.get(reply) or check(reply))
        records.started += begun

    def recorded(self) -> Sequence[Records]:
        """Records of the connection: a sequence with one ``Records`` object."""
        return (self._records,)

    def close(self) -> None:
        """Closes the connection. May be called repeatedly."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Multiplexed:
    """Sender with many lean connections in one thread (``Lanes``)."""

    def __init__(
        self,
        lanes: Lanes,
        requests: Mapping[int, Sequence[Iterator[Ready]]],
        board: Board,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """``requests`` maps each load's index to endless sequences of requests, one for each lane."""
        self._lanes = lanes
        self._requests = requests
        self._board = board
        self._clock_ns = clock_ns
        self._pause = pause

    def open(self) -> None:
        """Connects every lane, and sends every lane's first call. Raises a Fault if connecting fails."""
        self._lanes.open()
        self._lanes.settle()

    def send(self, turn: Turn, place: int, places: range) -> None:
        """Sends on all lanes during the turn, as ``Sender.send`` describes."""
        for lane, requests in zip(self._lanes.lanes, self._requests[turn.load], strict=True):
            lane.requests = requests
        wait_until(turn.begin_ns, self._clock_ns, self._pause)
        if self._clock_ns() >= turn.last_ns:  # too late: the turn of another server may have begun
            self._board.tell(place, turn)
            return
        self._lanes.resume()
        self._lanes.drive(turn.last_ns)
        while self._clock_ns() < turn.stop_ns and self._lanes.oldest_sent_ns() < turn.last_ns:
            self._lanes.drive(self._clock_ns() + _LOOK_NS)
        self._board.tell(place, turn)
        while self._clock_ns() < turn.stop_ns and not self._board.all_answered(places, turn):
            self._lanes.drive(self._clock_ns() + _LOOK_NS)
        self._lanes.settle()

    def recorded(self) -> Sequence[Records]:
        """Records so far, one ``Records`` object for each lane."""
        return [lane.records for lane in self._lanes.lanes]

    def close(self) -> None:
        """Closes all connections. May be called repeatedly."""
        self._lanes.close()


def wait_until(at_ns: int, clock_ns: Callable[[], int], pause: Callable[[float], None]) -> None:
    """Blocks until the moment ``at_ns``: sleeps until shortly before this moment, and then reads the clock until this
    moment. Returns at once if the moment is past."""
    left_ns = at_ns - clock_ns()
    if left_ns > SPIN_NS:
        pause((left_ns - SPIN_NS) / 1e9)
    while clock_ns() < at_ns:
        pass
