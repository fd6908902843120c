"""The queue of a server. While the executor keeps up, the queue gives requests to the executor at once; otherwise, in
turns.

In the *turn* of a connection, the server begins some requests of this connection. Then the next connection has its
turn. Every second turn is for connections that *send little*. Such a connection has few waiting requests, and had no
recent refusal. So clients that send too much hardly delay a client that sends little, and still get turns. A client
gains nothing by a new connection after each refusal. While some clients send little and other clients send much, the
server begins few requests at a time.

The queue refuses a request that has waited too long for its turn. If too many requests wait when a connection joins the
queue, the connection keeps only an equal share of the waiting requests. The queue refuses the connection's older
requests.

``admission.py`` has the limits on a request's wait, and on the tasks of the executor. Only the reading thread uses this
module. Left out: reading the connections (``reactor.py``).
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.concurrency.executor import has_gil
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.metrics import ONE_IN, Metrics, now_ns
from stock_service.rpc.server_core.admission import MEASURED_TASKS, Ahead, DelayTarget
from stock_service.rpc.server_core.connection import ServedConnection
from stock_service.rpc.server_core.group_commit import GroupCommit
from stock_service.rpc.server_core.listening import FEW_BYTES, READ_BYTES
from stock_service.rpc.server_core.protocol import Request, WireProtocol
from stock_service.rpc.waiting import Flush

_LOOK_NS = 5_000_000
"""Nanoseconds between two searches of all waiting connections for requests that have waited too long."""

SHEDDING_NS = 1_000_000
"""Longest time, in nanoseconds, for which the server only refuses requests. After this time the server begins some
requests.
"""

REFUSED_NS = 1_000_000_000
"""Time in nanoseconds. For this time after a refusal of one of its requests, a connection counts as sending too much.
"""

_LITTLE = 4
"""Largest number of waiting requests of a connection that sends little."""

_BOTH_NS = 10_000_000
"""Time in nanoseconds. The server begins few requests at a time if a connection that sends little and a connection that
sends much have both joined the queue within this time.
"""

_PARTS = 8
"""The executor gets its tasks for ``AHEAD_MS`` milliseconds in at most this number of portions. Each portion takes some
time of the reading thread.
"""

FEW = 8
"""Number of tasks that the executor may always get at a time, even if few connections wait for a turn."""

MANY = 1 << 30
"""Value of ``Turns.share`` for no limit: larger than the number of requests of any connection."""


class Turns(Generic[Request]):
    """Queue of the connections whose requests wait while the executor is behind. Gives the connections turns, and
    refuses requests that have waited too long.
    """

    def __init__(self, protocol: WireProtocol[Request], delay: DelayTarget, ahead: Ahead) -> None:
        self._protocol = protocol
        self.delay, self.ahead = delay, ahead
        self.queue: deque[ServedConnection[Request]] = deque()
        """Connections that wait for their turn. Other code may only read this field."""
        self._sooner: set[ServedConnection[Request]] = set()  # the waiting connections that send little
        self._little_ns = self._many_ns = 0  # last times when a connection joined that sends little, or sends much
        self._served: ServedConnection[Request] | None = None  # the connection that has its turn now
        self._held = 0  # number of requests that wait, of all connections
        self._next_look_ns = 0
        self.behind = False
        """True if the executor had more tasks than ``Ahead.threads`` after the last dispatch."""
        self.read_bytes = READ_BYTES
        """Largest number of bytes of one read of a connection."""
        self.few = False
        """True while ``read_bytes`` is ``FEW_BYTES``, because the executor is or was behind."""
        self.share = MANY
        """Largest number of requests that the server begins each time it looks after a connection; 0 if connections
        wait for turns, but none has its turn now.
        """

    def join(self, connection: ServedConnection[Request], room: int, now_ns: int) -> None:
        """Adds a connection with requests that wait for a turn. ``room`` is the limit of the waiting requests of all
        connections together. If more requests wait, ``join`` refuses the connection's oldest requests, down to an equal
        share of ``room``.
        """
        stream = connection.stream
        number = stream.releasable()
        if self._held + number > room:
            surplus = number - room // (len(self.queue) + 1)
            if surplus > 0:
                self._refuse(connection, [request for request, _ in stream.release(surplus)], now_ns)
                number = stream.releasable()
        if number:
            connection.counted = number
            self._held += number
            stream.queued = True
            if number > _LITTLE:
                self._many_ns = now_ns
            if connection.refused_ns or number > _LITTLE:
                self.queue.append(connection)
            else:
                self.queue.insert(2 * len(self._sooner), connection)
                self._sooner.add(connection)
                if connection is not self._served:  # the connection with the turn has only older requests
                    self._little_ns = now_ns

    def next(self) -> ServedConnection[Request]:
        """Removes from the queue the connection that has the next turn, and returns this connection. The connection
        must ``join`` again before its next turn.
        """
        connection = self.queue.popleft()
        self._sooner.discard(connection)
        connection.stream.queued = False
        self._held -= connection.counted
        connection.counted = 0
        return connection

    def wait(self, now_ns: int) -> None:
        """Makes new requests wait for a turn, until ``hold`` finds no waiting connection. Also makes reads small, until
        ``recover``.
        """
        if not self.queue:
            self.delay.emptied(now_ns)
        self.share = 0
        self.few, self.read_bytes = True, FEW_BYTES

    def recover(self, now_ns: int) -> None:
        """Makes reads as large as usual again, if no request was refused within the last ``INTERVAL_MS``. Call this
        method only while no request waits.
        """
        if self.delay.recovered(now_ns):
            self.few, self.read_bytes = False, READ_BYTES

    def look(self, now_ns: int) -> None:
        """Searches all waiting connections, and refuses each request that has waited too long.

        Does nothing within ``_LOOK_NS`` after the last complete search. A search that takes longer than ``SHEDDING_NS``
        ends early, and the next call searches again.
        """
        if now_ns >= self._next_look_ns:
            until_ns = time.monotonic_ns() + SHEDDING_NS
            for connection in self.queue:
                if self.shed(connection, now_ns) and time.monotonic_ns() > until_ns:
                    return
            self._next_look_ns = now_ns + _LOOK_NS

    def fair_room(self, room: int, now_ns: int) -> int:
        """Returns the number of requests that the server begins at a time. Usually this number is ``room``. While some
        connections send little and other connections send much, the number may be smaller: half the number of waiting
        connections, or a larger number that keeps the executor busy.

        The reason: a client that sends little sends its next request only after a reply. Each time, this client would
        wait for many requests of other clients. While the executor is behind, the reading thread sleeps. So the
        executor must get enough tasks for this sleep.
        """
        if now_ns - min(self._little_ns, self._many_ns) > _BOTH_NS or 0 < self.ahead.lasting < FEW:
            return room  # also if requests take long, since few requests at a time would leave threads idle
        lasting = int(self.ahead.lasting) if self.behind else 0
        return min(room, max(len(self.queue) // 2, self.ahead.tasks // _PARTS, FEW, lasting))

    def shared(self, room: int) -> Iterator[ServedConnection[Request]]:
        """Yields the connections in the order of their turns, until no connection waits. ``room`` is the number of
        requests that the server may begin.

        In each turn the server may begin several requests: ``room``, divided by the number of waiting connections. The
        reason: looking after a connection takes the same time for one request as for several requests.
        """
        self.share = max(1, room // (len(self.queue) or 1))
        while self.queue:
            self._served = self.next()
            yield self._served

    def hold(self) -> None:
        """Ends a series of turns. If a connection still waits for its turn, new requests also wait for a turn."""
        self._served = None
        self.share = 0 if self.queue else MANY

    # ---- refusing

    def read_late(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Refuses a connection's requests that waited too long before the read. Acts even if no connection waits for a
        turn.
        """
        if not self.queue:
            self.delay.emptied(now_ns)
        self.shed(connection, now_ns)

    def shed(self, connection: ServedConnection[Request], now_ns: int) -> bool:
        """Refuses a connection's requests that have waited too long. Returns True if a request was refused."""
        any_late = False
        while late := self._late(connection, now_ns):
            self._refuse(connection, late, now_ns)
            any_late = True
        return any_late

    def _late(self, connection: ServedConnection[Request], now_ns: int) -> list[Request]:
        """Removes from a connection the requests that have waited too long. Returns these requests, which the caller
        must refuse.
        """
        timeout_ms, limits_ns, late = self._protocol.timeout_ms, dict[int, int](), 0
        for request, arrived_ns in connection.stream.heads():
            waits_ms = timeout_ms(request)
            limit_ns = limits_ns.get(waits_ms)
            if limit_ns is None:
                limit_ns = limits_ns[waits_ms] = self.delay.limit_ns(waits_ms, now_ns)
            if not limit_ns or now_ns - arrived_ns <= limit_ns:
                break
            late += 1
        return [request for request, _ in connection.stream.release(late)] if late else []

    def _refuse(self, connection: ServedConnection[Request], requests: list[Request], now_ns: int) -> None:
        refusal, code = self._protocol.refusal, FaultCode.RESOURCE_EXHAUSTED
        words = "too many requests are waiting"
        connection.refuse([(request, refusal(request, code, words)) for request in requests])
        connection.refused_ns = now_ns
        self.delay.refused(now_ns)


class Dispatch(Generic[Request]):
    """Dispatch of one server's requests to the executor. Times are on ``time.monotonic_ns``."""

    def __init__(
        self,
        protocol: WireProtocol[Request],
        executor: Executor,
        turns: Turns[Request],
        attend: Callable[[ServedConnection[Request], int], None],
        ask: Callable[[ServedConnection[Request]], None],
        flush: Flush | None,
        samples: "WaitSamples | None",
    ) -> None:
        """``attend`` looks after a connection, and adds to ``batch`` the requests that may begin. ``ask`` makes the
        reading thread call ``attend`` soon. ``flush`` is ``Service.flush``. ``samples`` is None for a server without
        metrics.
        """
        self.batch: list[partial[None]] = []
        """Tasks of the requests that the server begins next. The arguments of a task are a connection, a request and
        the request's arrival time. The attribute always refers to the same list.
        """
        self.executor, self.turns = executor, turns
        self._protocol = protocol
        self._attend, self._ask = attend, ask
        self.flush = flush
        """Function that starts one commit for several requests; None for a service without group commit."""
        self._samples = samples
        self._accepted = 0  # number of tasks that the executor has accepted
        self._has_gil = has_gil()

    @property
    def keeps_up(self) -> bool:
        """True if the executor has no more tasks than useful threads (``Ahead.threads``)."""
        return self.executor.under_way <= self.turns.ahead.threads

    def dispatch(self, now_ns: int) -> None:
        """Gives requests to the executor. While the executor keeps up, gives the whole batch. Otherwise gives some
        requests of each connection in the connection's turn.
        """
        executor, turns, batch = self.executor, self.turns, self.batch
        ahead = turns.ahead
        if turns.behind or turns.queue or len(batch) > ahead.burst:
            under_way = executor.under_way
            cpu_ns = time.process_time_ns() if self._has_gil else 0
            room = ahead.room(self._accepted - under_way, under_way, now_ns, cpu_ns, time.thread_time_ns())
            room = max(0, min(room, executor.limit - under_way))
            if turns.queue or len(batch) > room:
                self._deal(room, now_ns)
        elif turns.few:
            turns.recover(now_ns)
        given = len(batch)
        began_ns = time.monotonic_ns() if given >= MEASURED_TASKS else 0
        if given:
            self._execute()
        turns.behind = not self.keeps_up
        if began_ns and not turns.behind:
            ahead.ran(given, time.monotonic_ns() - began_ns)

    def _deal(self, room: int, now_ns: int) -> None:
        """Fills the batch in turns, with ``room`` requests at most. All other requests still wait."""
        turns, batch = self.turns, self.batch
        turns.wait(now_ns)
        newcomers = dict.fromkeys(task.args[0] for task in batch)
        for task in reversed(batch):
            connection, request, arrived_ns = task.args
            connection.stream.put_back(request, arrived_ns)
        batch.clear()
        for connection in newcomers:
            self._attend(connection, now_ns)
        turns.look(now_ns)
        room = turns.fair_room(room, now_ns)
        if room:
            until_ns = time.monotonic_ns() + SHEDDING_NS  # turns may bring only refusals, and no requests
            for connection in turns.shared(room):
                self._attend(connection, now_ns)
                if len(batch) >= room or time.monotonic_ns() > until_ns:
                    break
        turns.hold()

    def _execute(self) -> None:
        """Gives the batch to the executor. Refuses the requests that the executor does not accept."""
        batch = self.batch.copy()
        self.batch.clear()
        if self._samples is not None:
            self._samples.take(batch)
        group = None if self.flush is None else GroupCommit(len(batch), self.flush)
        self._accepted += len(batch)  # before ``execute_all``, during which another thread may become the reader
        try:
            accepted = self.executor.execute_all(
                batch if group is None else [partial(group.run, task) for task in batch]
            )
            code, detail = FaultCode.RESOURCE_EXHAUSTED, "too many requests are waiting"
        except Fault as fault:
            accepted, code, detail = 0, fault.code, fault.detail
        if accepted == len(batch):
            return
        self._accepted -= len(batch) - accepted
        if group is not None:
            group.leave_out(len(batch) - accepted)
        for task in batch[accepted:]:
            connection, request, _ = task.args
            if connection.answer(request, self._protocol.refusal(request, code, detail)):
                self._ask(connection)


class WaitSamples:
    """Samples of waits for the metrics. Of each ``ONE_IN`` requests, one request is measured: the time from the
    request's arrival until a thread begins the request. Not thread-safe.
    """

    def __init__(self, serve: Callable[[Any, Any, int], None], metrics: Metrics) -> None:
        """``serve`` is the function of the tasks. Its last argument is the request's arrival time."""
        self._serve, self._observe = serve, metrics.waited_s
        self._due = 0

    def take(self, batch: list["partial[None]"]) -> None:
        """Changes ``batch``: replaces one of each ``ONE_IN`` tasks by a task that also records its request's wait."""
        self._due -= len(batch)
        while self._due < 0:  # an index from the end of the batch
            batch[self._due] = partial(self._serve_noting, *batch[self._due].args)
            self._due += ONE_IN

    def _serve_noting(self, connection: Any, request: Any, arrived_ns: int) -> None:
        self._observe((now_ns() - arrived_ns) / 1e9)
        self._serve(connection, request, arrived_ns)
