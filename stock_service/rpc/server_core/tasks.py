"""What the executor is given: a task answers one request, sends the reply, and asks for the reading thread if need be.

Any thread may run one. ``ask`` has the reading thread look at a connection. A request whose client has gone before it
is begun is dropped: its client cannot tell whether it was. One that was begun goes on to its end.
"""

from collections.abc import Callable

from stock_service.rpc.server_core.answering import Answering
from stock_service.rpc.server_core.protocol import Request
from stock_service.rpc.server_core.served_connection import ServedConnection
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.waiting import here

Task = Callable[[ServedConnection[Request], Request, int], None]
"""Of a request, and when it arrived, on ``time.monotonic_ns``."""

Ask = Callable[[ServedConnection[Request]], None]


def plain_task(answer: Answering[Request], ask: Ask[Request]) -> Task[Request]:
    """For a protocol whose replies leave as they are."""

    def serve(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        reply = b""
        if not connection.gone or _is_begun():
            reply = answer(request, arrived_ns, connection.peer)
        if connection.reply(reply):
            ask(connection)

    return serve


def session_task(answer: Answering[Request], ask: Ask[Request]) -> Task[Request]:
    """For a protocol that speaks by itself."""

    def serve(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        if not connection.gone or _is_begun():
            needs_a_look = connection.answer(request, answer(request, arrived_ns, connection.peer))
        else:
            needs_a_look = connection.reply(b"")  # without its session, which nobody feeds any more
        if needs_a_look:
            ask(connection)

    return serve


def stamped_task(answer_stamped: Answering[Request], ask: Ask[Request], timeline: Timeline) -> Task[Request]:
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
