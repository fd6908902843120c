"""The queue of a server, which gives requests to the executor: at once, or by connections' turns while the executor is
behind.

In the turn of a connection, some of its requests are begun; then the next connection has its turn. Every second turn is
for connections with few waiting requests and without recent refusals. So clients that send too much do not delay a
client that sends little, and still get turns. A peer gains nothing by opening a new connection after each refusal.
While some clients send little and other clients send much, few requests are begun at a time.

For the reading thread alone. A request that waits too long for its turn is refused at once. If too many requests wait,
the queue refuses the oldest requests of a joining connection that has more than its share.

``admission.py`` has the limits on a request's wait, and on the tasks given to the executor. Left out: reading.
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
"""Time between two looks through all waiting connections, for requests that have waited too long."""

SHEDDING_NS = 1_000_000
"""Longest time of refusing requests without a pause; then some requests are begun."""

REFUSED_NS = 1_000_000_000
"""Time for which a connection counts as sending too much after a refusal of its requests."""

_LITTLE = 4
"""Largest number of waiting requests of a connection that sends little."""

_BOTH_NS = 10_000_000
"""Time within which connections that send little and connections that send much count as present together."""

_PARTS = 8
"""Largest number of parts in which tasks are handed to the executor: each hand-over costs time."""

FEW = 8
"""Smallest number of tasks begun at a time, for any number of connections with a turn."""

MANY = 1 << 30
"""Number larger than the number of requests of any connection."""


class Turns(Generic[Request]):
    """The connections that wait for their turn, and the refusals of their requests. See the module."""

    def __init__(self, protocol: WireProtocol[Request], delay: DelayTarget, ahead: Ahead) -> None:
        self._protocol = protocol
        self.delay, self.ahead = delay, ahead
        self.queue: deque[ServedConnection[Request]] = deque()
        """Connections that wait for their turn; only to be read by others."""
        self._sooner: set[ServedConnection[Request]] = set()  # the waiting connections that send little
        self._little_ns = self._many_ns = 0  # last times when one of them came, and one with many requests waiting
        self._served: ServedConnection[Request] | None = None  # the connection that has its turn now
        self._held = 0  # number of requests that wait, of all connections
        self._next_look_ns = 0
        self.behind = False
        """True if the executor already had enough tasks at the last hand-over."""
        self.read_bytes = READ_BYTES
        """Largest number of bytes of one read of a connection."""
        self.few = False
        """True if ``read_bytes`` is smaller than usual."""
        self.share = MANY
        """Number of requests of a connection that may be released in one look at the connection."""

    def join(self, connection: ServedConnection[Request], room: int, now_ns: int) -> None:
        """Adds a connection with requests that wait for a turn; ``room`` is the largest number of waiting requests in
        all.
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
                if connection is not self._served:  # otherwise these requests are left from its last turn
                    self._little_ns = now_ns

    def next(self) -> ServedConnection[Request]:
        """Takes the connection that has the next turn. To get another turn, the connection must join again."""
        connection = self.queue.popleft()
        self._sooner.discard(connection)
        connection.stream.queued = False
        self._held -= connection.counted
        connection.counted = 0
        return connection

    def wait(self, now_ns: int) -> None:
        """Makes new requests wait for a turn."""
        if not self.queue:
            self.delay.emptied(now_ns)
        self.share = 0
        self.few, self.read_bytes = True, FEW_BYTES

    def recover(self, now_ns: int) -> None:
        """Returns to usual reads if no requests wait, some time after the last refusal."""
        if self.delay.recovered(now_ns):
            self.few, self.read_bytes = False, READ_BYTES

    def look(self, now_ns: int) -> None:
        """Refuses requests of all connections that have waited too long, every ``_LOOK_NS``. A look that takes too long
        continues at the next call.
        """
        if now_ns >= self._next_look_ns:
            until_ns = time.monotonic_ns() + SHEDDING_NS
            for connection in self.queue:
                if self.shed(connection, now_ns) and time.monotonic_ns() > until_ns:
                    return
            self._next_look_ns = now_ns + _LOOK_NS

    def fair_room(self, room: int, now_ns: int) -> int:
        """Number of requests, at most ``room``, that are begun at a time. While some connections send little, this is
        about half the number of waiting connections.

        A client that sends little sends its next request only after a reply, and would miss the turns of other clients
        meanwhile. If the executor has waiting tasks, the reading thread sleeps: the tasks must last for this sleep.
        """
        if now_ns - min(self._little_ns, self._many_ns) > _BOTH_NS or 0 < self.ahead.lasting < FEW:
            return room  # also where requests take long: few of them at a time would leave threads idle
        lasting = int(self.ahead.lasting) if self.behind else 0
        return min(room, max(len(self.queue) // 2, self.ahead.tasks // _PARTS, FEW, lasting))

    def shared(self, room: int) -> Iterator[ServedConnection[Request]]:
        """Connections in the order of their turns, with room for ``room`` requests in all. Ends when no connection
        waits.

        A turn is an equal part of the room, and not one request: a look at a connection costs the same for one request
        and for several requests.
        """
        self.share = max(1, room // (len(self.queue) or 1))
        while self.queue:
            self._served = self.next()
            yield self._served

    def hold(self) -> None:
        """Ends this round of turns. As long as any connection waits, new requests also wait."""
        self._served = None
        self.share = 0 if self.queue else MANY

    # ---- refusing

    def read_late(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """Refuses requests that waited too long in the kernel, also if no requests wait in this queue."""
        if not self.queue:
            self.delay.emptied(now_ns)
        self.shed(connection, now_ns)

    def shed(self, connection: ServedConnection[Request], now_ns: int) -> bool:
        """Refuses requests of a connection that have waited too long; returns True if any request was refused."""
        any_late = False
        while late := self._late(connection, now_ns):
            self._refuse(connection, late, now_ns)
            any_late = True
        return any_late

    def _late(self, connection: ServedConnection[Request], now_ns: int) -> list[Request]:
        """Releases requests that have waited too long, as far as the pipeline's limit allows."""
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
    """Hand-over of one server's requests to the executor; see the module. Times are ``time.monotonic_ns``."""

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
        """``attend`` looks after a connection, and adds its released requests to ``batch``; ``ask`` asks for that.

        ``flush`` is for a service whose requests share a commit, ``samples`` for a server with metrics.
        """
        self.batch: list[partial[None]] = []
        """Requests to begin. Each entry is a task with a connection, a request and the request's arrival. Always the
        same list object.
        """
        self.executor, self.turns = executor, turns
        self._protocol = protocol
        self._attend, self._ask = attend, ask
        self.flush = flush
        """Function that writes the commit that several requests share; None if the service has no shared commits."""
        self._samples = samples
        self._accepted = 0  # tasks that the executor took
        self._has_gil = has_gil()

    @property
    def keeps_up(self) -> bool:
        """True if the executor has no more tasks than useful threads."""
        return self.executor.under_way <= self.turns.ahead.threads

    def dispatch(self, now_ns: int) -> None:
        """Begins requests. While the executor keeps up, begins all new requests; otherwise begins each connection's
        requests in its turn.
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
        """Leaves ``room`` requests in the batch for the executor. The other requests wait for their turn."""
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
            until_ns = time.monotonic_ns() + SHEDDING_NS  # a connection with a turn may have only late requests
            for connection in turns.shared(room):
                self._attend(connection, now_ns)
                if len(batch) >= room or time.monotonic_ns() > until_ns:
                    break
        turns.hold()

    def _execute(self) -> None:
        """Gives the batch to the executor, and refuses requests for which the executor has no room."""
        batch = self.batch.copy()
        self.batch.clear()
        if self._samples is not None:
            self._samples.take(batch)
        group = None if self.flush is None else GroupCommit(len(batch), self.flush)
        self._accepted += len(batch)  # before: while they run, another thread may begin to read
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
    """Times from a request's arrival to its thread, for one request in ``ONE_IN``. For one thread."""

    def __init__(self, serve: Callable[[Any, Any, int], None], metrics: Metrics) -> None:
        """``serve`` is the function of the tasks. Its third and last argument is the request's arrival."""
        self._serve, self._observe = serve, metrics.waited_s
        self._due = 0

    def take(self, batch: list["partial[None]"]) -> None:
        """Replaces some of a batch's tasks by tasks that note their wait."""
        self._due -= len(batch)
        while self._due < 0:  # counted from the batch's end
            batch[self._due] = partial(self._serve_noting, *batch[self._due].args)
            self._due += ONE_IN

    def _serve_noting(self, connection: Any, request: Any, arrived_ns: int) -> None:
        self._observe((now_ns() - arrived_ns) / 1e9)
        self._serve(connection, request, arrived_ns)
