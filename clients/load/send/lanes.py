"""Lanes: the lean client's kept connections, all in one thread, in a closed loop or an open loop.

A connection is a *lane*. In a closed loop each lane has one request under way. In an open loop the lanes are used in
rotation. A lane has *room* if a call can begin. A due request is sent on the next lane that has room, even if many
requests are unanswered. If no lane has room, due requests wait in the backlog and are sent late. The response time of a
late request begins when the request was due.

In a closed loop the time of a reply is the moment when epoll reported new bytes. The clock is read once for all lanes
that epoll reports together. So the time of a reply does not include the work of reading other lanes' replies. In three
cases the recorded time is another moment, or is not exact:

- Other bytes came on the lane before the reply. Epoll may have reported only those bytes, so the reply's time is the
  moment when the reply was read.
- A reply came in pieces that were read together. The reply's time may be the moment of the first piece.
- The reply came while other replies were being read. The reply's time is late, as in any client with one thread. For
  this reason a result shows the latency together with the share of a core that the client used.

In an open loop several replies may come on one connection, some of them after epoll's report. So the time of a reply is
the moment when the reply was read.

The thread spins for the last millisecond before a request is due, since epoll's timeout is in whole milliseconds. A
lane's first call is sent when the lane is connected, and is not part of the schedule. Lanes without calls under way are
read, too. So a lane answers a server that tests an idle connection (HTTP/2's PING).

Left out: connecting without blocking. While one lane reconnects, all other lanes wait. So do not trust the latency of a
run with errors. The summary shows the errors.

Ideas: nighthawk ``sequencer_impl.cc`` (sending and waiting in one loop), wrk2 ``wrk.c`` (response time from the due
moment, service time from the send).
"""

import select
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle

from clients.load.plan.outcomes import NEVER_SENT
from clients.load.plan.workload import Request, Workload
from clients.load.record.records import Deadline
from clients.load.send.driver import Surroundings
from clients.load.send.lane import Lane, Ready
from stock_service.rpc.errors import Fault
from stock_service.rpc.transports import Address
from stock_service.rpc.wire.codec import Codec

SWEEP_NS = 50_000_000
"""Time between two checks for timed-out requests and lost connections, in nanoseconds."""

_SPIN_NS = 1_100_000
"""Duration of busy waiting before a request is due, in nanoseconds. Epoll's timeout is in whole milliseconds, rounded
up.
"""

_EVENTS_OPEN = 8
"""Largest number of connections that an open loop reads before the open loop looks for due requests again. Reading
these connections takes some 0.1 ms."""

_BURST = 16
"""Largest number of due requests that are sent in a row before the thread reads replies again. Sending these requests
takes some 0.1 ms."""

_FOREVER_NS = 2**62


class Lanes:
    """Kept connections of the lean client in one process. Not thread-safe. The caller must close the object."""

    def __init__(
        self,
        address: Address,
        codec: Callable[[], Codec],
        workload: Workload,
        drawn: Iterable[list[int]],
        around: Surroundings,
        due_ns: Callable[[int], Iterator[int]] | None = None,
    ) -> None:
        """``drawn`` has a list for each lane: the requests that the lane repeats, as indices of the workload's
        population. ``due_ns`` takes a start moment, and yields an open loop's due moments from this moment on; None for
        a closed loop.
        """
        self._address = address
        self._codec = codec
        self._around = around
        self._timeout_ns = int(around.timeout_s * 1e9)
        self._epoll = select.epoll()
        self._watched: dict[int, Lane] = {}
        self._gate = Deadline(0)  # moment from which a closed loop sends no request
        self._schedule = due_ns
        self._due = iter((_FOREVER_NS,))
        self._due_ns = _FOREVER_NS  # when the next request of an open loop is due
        self._backlog: deque[int] = deque()
        self._next_sweep_ns = 0
        self._folded = 0
        self.lanes = [
            Lane(requests, around.clock_ns, self._epoll, self._watched, bool(due_ns))
            for requests in self.sequences(workload, drawn)
        ]
        self._turns = cycle(self.lanes)
        if due_ns is not None:
            next(due_ns(0))  # numpy's first use takes some 5 ms: not during the run

    def open(self) -> None:
        """Connects every lane, sends the first call of every lane, and starts the schedule. For each lane, blocks for
        one timeout at most. Raises a Fault if connecting fails.
        """
        self._gate.ns = self._around.deadline.ns
        for lane in self.lanes:
            lane.connect(self._address, self._codec(), self._around.timeout_s, self._around.context)
        now_ns = self._around.clock_ns()
        for lane in self.lanes:
            self._send_next(lane, now_ns)
        if self._schedule is not None:
            self._due = self._schedule(now_ns)
            self._due_ns = next(self._due)

    def drive(self, until_ns: int) -> bool:
        """Sends and receives on all lanes until ``until_ns``, or until the records must be folded (``Recorder.fold``).
        Returns True if the records must be folded.
        """
        poll, clock_ns = self._epoll.poll, self._around.clock_ns
        events_max = -1 if self._schedule is None else _EVENTS_OPEN
        now_ns = clock_ns()
        while now_ns < until_ns:
            if now_ns >= self._next_sweep_ns and self._sweep(now_ns):
                return True
            if now_ns >= self._due_ns or self._backlog:
                self._send_due(now_ns)
                now_ns = clock_ns()
            events = poll(self._patience_s(now_ns, until_ns), events_max)
            now_ns = clock_ns()
            self._take(events, now_ns)
        return False

    def settle(self) -> None:
        """Prepares the folding of records (``Recorder.fold``). A closed loop stops sending, and waits for the replies
        under way, so that the folding delays no reply's time. An open loop does not wait: requests that become due
        during the folding are sent late, and count as late.
        """
        if self._schedule is None:
            self._gate.ns = 0
            self._drain()

    def resume(self) -> None:
        """Continues sending after ``settle``, when the records are folded."""
        self._gate.ns = self._around.deadline.ns
        if self._schedule is None:
            self._wake(self._around.clock_ns())

    def finish(self) -> None:
        """Waits for the replies under way, except replies to first calls.

        An open loop first sends the requests that were due before the deadline. Requests that cannot be sent within the
        timeout are recorded as never sent. Blocks for at most two timeouts.
        """
        self._gate.ns = 0
        self._drain()
        now_ns, lane = self._around.clock_ns(), self.lanes[0]
        self._collect_due(now_ns)
        for due_ns in self._backlog:
            lane.records.started += 1
            lane.records.note(now_ns, now_ns, next(lane.requests)[3] + NEVER_SENT, due_ns)
        self._backlog.clear()
        for lane in self.lanes:
            lane.records.started -= len(lane.waiting)  # first calls that were never answered are starved, not lost

    def sequences(self, workload: Workload, drawn: Iterable[list[int]]) -> list[Iterator[Ready]]:
        """Makes endless sequences of a workload's requests, one for each list of ``drawn``. Each sequence can become
        the ``requests`` of a lane."""
        ready = list(self.ready(workload.population))
        return [cycle([ready[place] for place in places]) for places in drawn]

    def ready(self, requests: Iterable[Request]) -> Iterator[Ready]:
        """Yields each request as a ``Ready`` for a lane. A request is encoded only when the lane takes the request. So
        requests may also be drawn during the run."""
        prepare, timeout_s = self._codec().prepare, self._around.timeout_s
        for path, payload, known, check, first in requests:
            yield prepare(path, payload, timeout_s), known, check, first

    def oldest_sent_ns(self) -> int:
        """Moment at which the oldest unanswered request was sent. A moment far in the future if every request is
        answered."""
        sent = [next(iter(lane.waiting.values()))[1] for lane in self.lanes if lane.waiting]
        return min(sent, default=_FOREVER_NS)

    @property
    def unsent(self) -> int:
        """Number of requests of an open loop that are due and have not been sent."""
        return len(self._backlog)

    def close(self) -> None:
        """Closes every connection. A second call has no effect."""
        for lane in self.lanes:
            lane.disconnect()
        self._epoll.close()

    # ---- sending

    def _send_next(self, lane: Lane, now_ns: int) -> None:
        """Sends a lane's next request in a closed loop, or a lane's first call. After the moment of ``_gate``, or if
        the lane has no room, lets the lane rest. A lane that rests sends nothing. Part of the hot loop."""
        if now_ns >= self._gate.ns or not lane.room:
            lane.resting = True
        elif not lane.resting:
            lane.send()

    def _send_due(self, now_ns: int) -> bool:
        """Sends at most ``_BURST`` due requests, each on the next lane that has room. Returns True if more requests may
        be due and a lane may have room.

        Part of the hot loop.
        """
        backlog, clock_ns = self._backlog, self._around.clock_ns
        for _ in range(_BURST):
            self._collect_due(now_ns)
            if not backlog:
                return False
            lane = self._lane_with_room()
            if lane is None:
                return False
            lane.send(backlog.popleft())
            now_ns = clock_ns()
        return True

    def _collect_due(self, now_ns: int) -> None:
        """Puts the requests that became due by ``now_ns``, and before the deadline, into the backlog."""
        until_ns = min(now_ns, self._around.deadline.ns - 1)
        while self._due_ns <= until_ns:
            self._backlog.append(self._due_ns)
            self._due_ns = next(self._due)

    def _lane_with_room(self) -> Lane | None:
        """Next lane in the rotation that has room; None if no lane has room."""
        for _ in self.lanes:
            lane = next(self._turns)
            if lane.room:
                return lane
        return None

    def _patience_s(self, now_ns: int, until_ns: int) -> float:
        """Longest time for which epoll may wait, in seconds. 0 if a request is due, or will be due before epoll could
        return."""
        if self._backlog:
            return 0.0
        left_ns = min(until_ns, self._next_sweep_ns, self._due_ns - _SPIN_NS) - now_ns
        return left_ns / 1e9 if left_ns > 0 else 0.0

    # ---- receiving

    def _take(self, events: list[tuple[int, int]], now_ns: int) -> None:
        """Reads and writes on the lanes that epoll reports. ``now_ns`` is the moment of epoll's report. A closed loop
        then sends the next requests. Part of the hot loop.

        During this method no lane connects, and a lane closes only its own connection. So every reported descriptor
        still belongs to the lane in ``_watched``.
        """
        watched, closed_loop = self._watched, self._schedule is None
        for descriptor, event in events:
            lane = watched[descriptor]
            if event & select.EPOLLOUT:
                lane.flush()
            if event & ~select.EPOLLOUT and lane.receive(now_ns) and closed_loop:
                self._send_next(lane, now_ns)

    def _drain(self) -> None:
        """Waits for the end of all calls under way, but not for first calls. Meanwhile an open loop sends the due
        requests, for the timeout at most.
        """
        until_ns = self._around.clock_ns() + self._timeout_ns
        while True:
            now_ns = self._around.clock_ns()
            for lane in self.lanes:
                lane.give_up(now_ns - self._timeout_ns, now_ns)
            more = now_ns < until_ns and self._send_due(now_ns)
            waits = self._backlog and now_ns < until_ns and any(lane.connected for lane in self.lanes)
            if not waits and all(lane.settled for lane in self.lanes):
                return
            events = self._epoll.poll(0 if more else SWEEP_NS / 1e9)
            self._take(events, self._around.clock_ns())

    # ---- maintenance

    def _sweep(self, now_ns: int) -> bool:
        """Ends calls that timed out, gives lost and used-up lanes a new connection, wakes lanes that rest, and reports
        progress. Returns True if the records must be folded."""
        self._next_sweep_ns = now_ns + SWEEP_NS
        for lane in self.lanes:
            lane.give_up(now_ns - self._timeout_ns, now_ns)
            if lane.used_up:
                lane.disconnect()
            if not lane.connected and now_ns < self._gate.ns:
                self._connect_again(lane)
        if self._schedule is None:
            self._wake(now_ns)
        held = sum(len(lane.records.outcomes) for lane in self.lanes)
        full = held >= self._around.records_max * len(self.lanes)
        self._around.progress[self._around.place] = self._folded + held
        self._folded += held if full else 0
        return full

    def _connect_again(self, lane: Lane) -> None:
        """Connects a lost lane again, and sends the lane's first call. A failed attempt is recorded, and the next
        ``_sweep`` tries again.
        """
        try:
            lane.connect(self._address, self._codec(), self._around.timeout_s, self._around.context)
        except Fault as fault:
            lane.records.note_unconnected(fault)
        else:
            self._send_next(lane, self._around.clock_ns())

    def _wake(self, now_ns: int) -> None:
        """Lets every connected lane that rests send its next request, in a closed loop. After the moment of ``_gate``,
        the lanes continue to rest.
        """
        for lane in self.lanes:
            if lane.resting and lane.connected and not lane.waiting:
                lane.resting = False
                self._send_next(lane, now_ns)
