"""Tasks of the executor: each answers one request, sends the reply, and asks for the reading thread if need be.

Any thread may run one. ``ask`` has the reading thread look at a connection. A request whose client has gone before it
is begun is dropped: its client cannot tell whether it was. One that was begun goes on to its end.

**Group commit**: the requests of a batch share one write to the disk, and wait for it without a thread. A request that
waits leaves its thread; when the wait is over it is served again: see ``rpc/waiting.py``.
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from threading import get_ident

from stock_service.rpc.concurrency import Task
from stock_service.rpc.server_core.connection import ServedConnection
from stock_service.rpc.server_core.protocol import Answering, Answers, Methods, Request, stamping
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.waiting import Flush, Wait, Waiting, going_on, here

Serve = Callable[[ServedConnection[Request], Request, int], None]
"""Answers a request and sends its reply; the last is when it arrived, on ``time.monotonic_ns``."""

Ask = Callable[[ServedConnection[Request]], None]


def serving(
    methods: Methods, protocol: Answers[Request], speaks: bool, ask: Ask[Request], timeline: Timeline | None
) -> Serve[Request]:
    """A server's way to serve a request. ``speaks``: its protocol has words of its own to send."""
    if timeline is not None:  # a request that waits for the disk keeps its thread, so that its stamps are of one
        return stamped_task(stamping(timeline, methods, protocol), ask, timeline)
    serve = (session_task if speaks else plain_task)(protocol.answer, ask)
    return serve if methods.flush is None else serving_again(serve)


def plain_task(answer: Answering[Request], ask: Ask[Request]) -> Serve[Request]:
    """For a protocol whose replies leave as they are."""

    def serve(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        reply = b""
        if not connection.gone or _is_begun():
            reply = answer(request, arrived_ns, connection.peer)
        if connection.reply(reply):
            ask(connection)

    return serve


def session_task(answer: Answering[Request], ask: Ask[Request]) -> Serve[Request]:
    """For a protocol that speaks by itself."""

    def serve(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        if not connection.gone or _is_begun():
            needs_a_look = connection.answer(request, answer(request, arrived_ns, connection.peer))
        else:
            needs_a_look = connection.reply(b"")  # without its session, which nobody feeds any more
        if needs_a_look:
            ask(connection)

    return serve


def stamped_task(answer_stamped: Answering[Request], ask: Ask[Request], timeline: Timeline) -> Serve[Request]:
    """For any, noting in a timeline that the reply was given away; ``answer_stamped`` notes the rest."""
    local = timeline.local

    def serve(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        if not connection.gone or _is_begun():
            needs_a_look = connection.answer(request, answer_stamped(request, arrived_ns, connection.peer))
            if local.stamper.handled_ns:
                local.stamper.end()
        else:
            needs_a_look = connection.reply(b"")
        if needs_a_look:
            ask(connection)

    return serve


def _is_begun() -> bool:
    """Whether the request was begun before, and goes on after a wait."""
    return here.wait is not None and here.wait.on is not None


Poll = Callable[[float | None, int], list[tuple[int, int]]]
"""``select.epoll.poll``."""

PAUSE_S = 0.002
"""How long reading waits at most for requests that go on: time for about 200 replies."""


def serving_again(serve: Serve[Request]) -> Serve[Request]:
    """The same, for requests that may wait: one that has to is served again when its wait is over. Any thread."""

    def serve_with(wait: Wait, connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        here.wait = wait
        try:
            serve(connection, request, arrived_ns)
        except Waiting:
            pass  # whoever it waits for has it served again
        finally:
            here.wait = None

    def serve_later(connection: ServedConnection[Request], request: Request, wait: Wait) -> None:
        serve_with(wait, connection, request, time.monotonic_ns())  # it was begun in time

    def serve_first(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        serve_with(Wait(partial(serve_later, connection, request)), connection, request, arrived_ns)

    return serve_first


def polling_behind(poll: Poll) -> Poll:
    """The same poll, which first lets those requests reply that go on just then; all that comes of it is read at once.

    For an epoll that is level-triggered: what was found before is found again.
    """

    def poll_behind(timeout_s: float | None, most: int) -> list[tuple[int, int]]:
        events = poll(timeout_s, most)
        if going_on.locked() and going_on.acquire(timeout=PAUSE_S):
            going_on.release()
            events = poll(0, most)
        return events

    return poll_behind


class GroupCommit:
    """The tasks of one batch; the last of them that ends has the disk written.

    One that is alone flushes on the executor's thread that ran it, which saves waking another. Else another does it: no
    thread that has more to do waits for the disk, and least of all the one that reads.
    """

    def __init__(self, size: int, flush: Flush) -> None:
        """``size`` is the number of tasks. For the thread that reads."""
        self._flush = flush
        self._size = size
        self._reader = get_ident()
        self._ended = count(1)  # next() of it is atomic in CPython

    def run(self, task: Task) -> None:
        """Runs one of the tasks."""
        try:
            task()
        finally:
            if next(self._ended) == self._size:
                self._flush(self._size == 1 and get_ident() != self._reader)

    def leave_out(self, number: int) -> None:
        """Says that so many of the tasks are not run."""
        if self._size in [next(self._ended) for _ in range(number)]:
            self._flush(False)
