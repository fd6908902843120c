"""The queue of a server: gives the executor all that was read, or, while the executor is behind, requests by turns.

In its turn a connection gets some of its requests begun; then the next connection does. A connection that was refused
nothing lately, and has few requests waiting, comes sooner: every other turn is for such connections. So a client that
sends little is not held up by those that send too much, and does not keep them out. A peer that comes again under a new
connection, whenever it was refused something, gains nothing by it. As long as any send little beside others that send
much, few requests are begun at a time.

The reading thread's alone. What waits too long for its turn is refused at once. So is what the executor's queue has no
room for: of a connection that joins with more than its share, the oldest.

How long a request may wait, and how many go to the executor at a time, ``admission.py`` says. Left out: reading.
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
"""All connections that wait are looked through this often, for what has waited too long."""

SHEDDING_NS = 1_000_000
"""Refusing goes on for so long at a time, then some requests are begun."""

REFUSED_NS = 1_000_000_000
"""A connection of which requests were refused is one of those that send too much for so long."""

_LITTLE = 4
"""Requests that wait at a time of one that sends little, at most."""

_BOTH_NS = 10_000_000
"""One that sends little was there within so long, and one that sends much."""

_PARTS = 8
"""What the executor is given at a time is a part of what it might have, of so many at most: handing over costs, too."""

FEW = 8
"""Tasks that are begun at a time, at least, however many connections have a turn."""

MANY = 1 << 30
"""More requests than a connection has."""


class Turns(Generic[Request]):
    """The connections that wait for their turn, and what becomes of their requests. See the module."""

    def __init__(self, protocol: WireProtocol[Request], delay: DelayTarget, ahead: Ahead) -> None:
        self._protocol = protocol
        self.delay, self.ahead = delay, ahead
        self.queue: deque[ServedConnection[Request]] = deque()
        """Those that wait for their turn; only to be looked at."""
        self._sooner: set[ServedConnection[Request]] = set()  # of these, who sends little
        self._little_ns = self._many_ns = 0  # when one of them last came, and one that has many requests waiting
        self._served: ServedConnection[Request] | None = None  # who has its turn just now
        self._held = 0  # requests that wait, of all
        self._next_look_ns = 0
        self.behind = False
        """True where the executor had more tasks than it needs when it was last given any."""
        self.read_bytes = READ_BYTES
        """How much of a connection is read at a time."""
        self.few = False
        """Whether that is less than usual."""
        self.share = MANY
        """Requests of a connection that may be released when it is looked after."""

    def join(self, connection: ServedConnection[Request], room: int, now_ns: int) -> None:
        """A connection has requests that wait for a turn; ``room``: for so many requests in all."""
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
                if connection is not self._served:  # else it is the rest of what another one sent
                    self._little_ns = now_ns

    def next(self) -> ServedConnection[Request]:
        """The connection whose turn it is; it has to join again."""
        connection = self.queue.popleft()
        self._sooner.discard(connection)
        connection.stream.queued = False
        self._held -= connection.counted
        connection.counted = 0
        return connection

    def wait(self, now_ns: int) -> None:
        """Who comes now waits for a turn."""
        if not self.queue:
            self.delay.emptied(now_ns)
        self.share = 0
        self.few, self.read_bytes = True, FEW_BYTES

    def recover(self, now_ns: int) -> None:
        """Nobody waits now: reads on as usual, some time after the last refusal."""
        if self.delay.recovered(now_ns):
            self.few, self.read_bytes = False, READ_BYTES

    def look(self, now_ns: int) -> None:
        """Refuses what has waited too long, of all, now and then; the rest of it next time, if there is much."""
        if now_ns >= self._next_look_ns:
            until_ns = time.monotonic_ns() + SHEDDING_NS
            for connection in self.queue:
                if self.shed(connection, now_ns) and time.monotonic_ns() > until_ns:
                    return
            self._next_look_ns = now_ns + _LOOK_NS

    def fair_room(self, room: int, now_ns: int) -> int:
        """Of so many requests, how many are begun at a time: all, but half a turn of each while some send little.

        Who does has its next request once it has its reply, and would miss what those get meanwhile who send much.
        Where the executor had tasks waiting, the reading thread sleeps: they must last that long.
        """
        if now_ns - min(self._little_ns, self._many_ns) > _BOTH_NS or 0 < self.ahead.lasting < FEW:
            return room  # also where requests take long: few of them at a time would leave threads without
        lasting = int(self.ahead.lasting) if self.behind else 0
        return min(room, max(len(self.queue) // 2, self.ahead.tasks // _PARTS, FEW, lasting))

    def shared(self, room: int) -> Iterator[ServedConnection[Request]]:
        """Who has a turn now that there is room for so many requests; ends when nobody waits, or when told to.

        A turn is an equal part of the room, and not one request: to look after a connection costs as much for one as
        for several.
        """
        self.share = max(1, room // (len(self.queue) or 1))
        while self.queue:
            self._served = self.next()
            yield self._served

    def hold(self) -> None:
        """After the turns: as long as anybody waits, who comes now waits too."""
        self._served = None
        self.share = 0 if self.queue else MANY

    # ---- refusing

    def read_late(self, connection: ServedConnection[Request], now_ns: int) -> None:
        """What waited in the kernel is refused if that was too long, though nobody waits here."""
        if not self.queue:
            self.delay.emptied(now_ns)
        self.shed(connection, now_ns)

    def shed(self, connection: ServedConnection[Request], now_ns: int) -> bool:
        """Refuses what has waited too long on a connection; says whether there was any."""
        any_late = False
        while late := self._late(connection, now_ns):
            self._refuse(connection, late, now_ns)
            any_late = True
        return any_late

    def _late(self, connection: ServedConnection[Request], now_ns: int) -> list[Request]:
        """Releases what has waited too long, as far as the pipeline's limit lets it."""
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
    """One server's; see the module. Times are ``time.monotonic_ns``."""

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
        """``attend`` looks after a connection, and adds what is released of it to ``batch``; ``ask`` asks for that.

        ``flush``: of a service whose requests share a commit. ``samples``: of a server with metrics.
        """
        self.batch: list[partial[None]] = []
        """Requests to be begun: each a task of a connection, a request and when it arrived. The same list for ever."""
        self.executor, self.turns = executor, turns
        self._protocol = protocol
        self._attend, self._ask = attend, ask
        self.flush = flush
        """What writes the disk for requests that share a commit; None: none does."""
        self._samples = samples
        self._accepted = 0  # tasks that the executor took
        self._has_gil = has_gil()

    @property
    def keeps_up(self) -> bool:
        """True where the executor has no more tasks than threads that it can use."""
        return self.executor.under_way <= self.turns.ahead.threads

    def dispatch(self, now_ns: int) -> None:
        """Has requests begun: all that came, as long as the executor keeps up; else each connection's in its turn."""
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
        """Leaves in the batch what the executor soon begins, ``room`` requests; the rest waits for its turn."""
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
            until_ns = time.monotonic_ns() + SHEDDING_NS  # who has its turn may have nothing but what is late
            for connection in turns.shared(room):
                self._attend(connection, now_ns)
                if len(batch) >= room or time.monotonic_ns() > until_ns:
                    break
        turns.hold()

    def _execute(self) -> None:
        """Has the executor answer what was read, and refuses what it has no room for."""
        batch = self.batch.copy()
        self.batch.clear()
        if self._samples is not None:
            self._samples.take(batch)
        group = None if self.flush is None else GroupCommit(len(batch), self.flush)
        self._accepted += len(batch)  # before: while it runs them, another thread may begin to read
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
    """How long requests waited for a thread since they arrived: of one request in ``ONE_IN``. For one thread."""

    def __init__(self, serve: Callable[[Any, Any, int], None], metrics: Metrics) -> None:
        """``serve`` is what the tasks call, with three arguments, of which the last is when the request arrived."""
        self._serve, self._observe = serve, metrics.waited_s
        self._due = 0

    def take(self, batch: list["partial[None]"]) -> None:
        """Has some of a batch's tasks note how long they waited, in the place of the bare tasks."""
        self._due -= len(batch)
        while self._due < 0:  # counted from the batch's end
            batch[self._due] = partial(self._serve_noting, *batch[self._due].args)
            self._due += ONE_IN

    def _serve_noting(self, connection: Any, request: Any, arrived_ns: int) -> None:
        self._observe((now_ns() - arrived_ns) / 1e9)
        self._serve(connection, request, arrived_ns)
