"""Sending by turns: a connection of a load is kept through all turns of a block. A turn is a slice of time in which one
load sends. This module has the hot loop of every comparison.

During a turn, a connection sends a request, waits for the reply, and sends the next request. The first requests are not
counted. Then come the counted requests. Last, uncounted requests follow, until every connection of the load has
received the last counted reply. So the load is constant from the first counted request to the last counted reply. The
counted requests are found afterwards, from the recorded moments.

``Blocking`` drives one connection with blocking calls, of either kind of client. ``Multiplexed`` drives many lean
connections in one thread, by ``lanes``. ``Multiplexed`` could also drive a single connection. But epoll would cost 1 to
2 µs more of the client's processor time for each request: 4 to 10 %. Left out: open loops. An open loop needs more time
than a turn to become steady.
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
"""Time of busy waiting before a turn. A sleep may end 0.1 ms late."""

_LOOK_NS = 500_000
"""Time between two checks of the board in ``Multiplexed``, while connections still wait for counted replies."""


class Board:
    """Board on which every connection marks that all its counted requests of a turn are answered.

    The board is in memory that all processes share. It has one value for each connection: the begin of the last turn
    that the connection has finished. Each connection writes only its own value. The machine reads and writes a value in
    one step.
    """

    def __init__(self, places: MutableSequence[int]) -> None:
        self._places = places

    def tell(self, place: int, turn: Turn) -> None:
        """Marks that the counted requests of the connection ``place`` are answered."""
        self._places[place] = turn.begin_ns

    def all_answered(self, places: range, turn: Turn) -> bool:
        """True if the counted requests of the connections ``places`` are all answered."""
        return min(self._places[places.start : places.stop]) >= turn.begin_ns


class Sender(Protocol):
    """Connections of one process to one server. For one thread. The caller that makes a sender closes the sender."""

    def open(self) -> None:
        """Connects. Raises a Fault."""

    def send(self, turn: Turn, place: int, places: range) -> None:
        """Sends requests through one turn. The turn may have begun already. ``place``: this sender's place on the
        board. ``places``: places of all connections that send in the turn."""

    def recorded(self) -> Sequence[Records]:
        """Records of each connection so far. The caller clears the records."""

    def close(self) -> None:
        """Closes the connections. May be repeated."""


class Blocking:
    """Sender of one connection, with blocking calls."""

    def __init__(
        self,
        connect: Callable[[float], Connection],
        requests: Mapping[int, Iterator[Request]],
        timeout_s: float,
        board: Board,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """``requests`` has an endless sequence of requests for each load, by the load's number. ``connect`` takes a
        timeout in seconds."""
        self._connect = connect
        self._requests = requests
        self._timeout_s = timeout_s
        self._board = board
        self._clock_ns = clock_ns
        self._pause = pause
        self._connection: Connection | None = None
        self._records = Records()

    def open(self) -> None:
        """See ``Sender.open``."""
        began_ns = self._clock_ns()
        self._connection = self._connect(self._timeout_s)
        self._records.note_connect(began_ns, self._clock_ns())

    def send(self, turn: Turn, place: int, places: range) -> None:
        """See ``Sender.send``. The hot loop."""
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
        """See ``Sender.recorded``."""
        return (self._records,)

    def close(self) -> None:
        """See ``Sender.close``."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Multiplexed:
    """Sender of many lean connections in one thread."""

    def __init__(
        self,
        lanes: Lanes,
        requests: Mapping[int, Sequence[Iterator[Ready]]],
        board: Board,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """``requests`` has an endless sequence of requests for each load (by the load's number) and each lane."""
        self._lanes = lanes
        self._requests = requests
        self._board = board
        self._clock_ns = clock_ns
        self._pause = pause

    def open(self) -> None:
        """See ``Sender.open``; each connection makes its first call."""
        self._lanes.open()
        self._lanes.settle()

    def send(self, turn: Turn, place: int, places: range) -> None:
        """See ``Sender.send``."""
        for lane, requests in zip(self._lanes.lanes, self._requests[turn.load], strict=True):
            lane.requests = requests
        wait_until(turn.begin_ns, self._clock_ns, self._pause)
        if self._clock_ns() >= turn.last_ns:  # too late: another server's turn may have begun
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
        """See ``Sender.recorded``."""
        return [lane.records for lane in self._lanes.lanes]

    def close(self) -> None:
        """See ``Sender.close``."""
        self._lanes.close()


def wait_until(at_ns: int, clock_ns: Callable[[], int], pause: Callable[[float], None]) -> None:
    """Sleeps until shortly before a moment, then reads the clock in a loop until the moment. Returns at once if the
    moment is past."""
    left_ns = at_ns - clock_ns()
    if left_ns > SPIN_NS:
        pause((left_ns - SPIN_NS) / 1e9)
    while clock_ns() < at_ns:
        pass
