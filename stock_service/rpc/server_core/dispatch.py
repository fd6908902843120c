"""Dispatch: gives the executor what was read, all of it at once, or, while the executor is behind, by turns.

The reading thread's alone. Who waits, and for how long, ``turns.py`` and ``admission.py`` say. Left out: reading.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Generic

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.server_core.admission import MEASURED_TASKS
from stock_service.rpc.server_core.counting import WaitSamples
from stock_service.rpc.server_core.group_commit import GroupCommit
from stock_service.rpc.server_core.protocol import Request, WireProtocol
from stock_service.rpc.server_core.served_connection import ServedConnection
from stock_service.rpc.server_core.turns import SHEDDING_NS, Turns
from stock_service.rpc.waiting import Settle


class Dispatch(Generic[Request]):
    """One server's; see the module. Times are ``time.monotonic_ns``."""

    def __init__(
        self,
        protocol: WireProtocol[Request],
        executor: Executor,
        turns: Turns[Request],
        attend: Callable[[ServedConnection[Request], int], None],
        ask: Callable[[ServedConnection[Request]], None],
        settle: Settle | None,
        samples: WaitSamples | None,
    ) -> None:
        """``attend`` looks after a connection, and adds what is released of it to ``batch``; ``ask`` asks for that.

        ``settle``: of a service whose requests share a commit. ``samples``: of a server with metrics.
        """
        self.batch: list[partial[None]] = []
        """Requests to be begun: each a task of a connection, a request and when it arrived. The same list for ever."""
        self._protocol, self._executor, self._turns = protocol, executor, turns
        self._attend, self._ask = attend, ask
        self._settle, self._samples = settle, samples
        self._accepted = 0  # tasks that the executor took

    def dispatch(self, now_ns: int) -> None:
        """Has requests begun: all that came, as long as the executor keeps up; else each connection's in its turn."""
        executor, turns, batch = self._executor, self._turns, self.batch
        admission = turns.admission
        if turns.behind or turns.queue or len(batch) > admission.burst:
            waiting = executor.waiting
            room = min(admission.room(self._accepted - waiting, waiting, now_ns), executor.room)
            if turns.queue or len(batch) > room:
                self._deal(room, now_ns)
        elif turns.few:
            turns.recover(now_ns)
        given = len(batch)
        began_ns = time.monotonic_ns() if given >= MEASURED_TASKS else 0
        if given:
            self._execute()
        turns.behind = executor.waiting > 0
        if began_ns and not turns.behind:
            admission.ran(given, time.monotonic_ns() - began_ns)

    def _deal(self, room: int, now_ns: int) -> None:
        """Leaves in the batch what the executor soon begins, ``room`` requests; the rest waits for its turn."""
        turns, batch = self._turns, self.batch
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
        self._turns.begun_ns = time.monotonic_ns()
        if self._samples is not None:
            self._samples.take(batch)
        group = None if self._settle is None else GroupCommit(len(batch), self._settle)
        self._accepted += len(batch)  # before: while it runs them, another thread may begin to read
        try:
            accepted = self._executor.execute_all(
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
