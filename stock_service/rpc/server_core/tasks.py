"""What the executor is given: a task answers one request, sends the reply, and asks for the reading thread if need be.

Any thread may run one. ``ask`` has the reading thread look at a connection.
"""

from collections.abc import Callable

from stock_service.rpc.server_core.answering import Answering
from stock_service.rpc.server_core.protocol import Request
from stock_service.rpc.server_core.served_connection import ServedConnection
from stock_service.rpc.timeline import Timeline

Task = Callable[[ServedConnection[Request], Request, int], None]
"""Of a request, and when it arrived, on ``time.monotonic_ns``."""

Ask = Callable[[ServedConnection[Request]], None]


def plain_task(answer: Answering[Request], ask: Ask[Request]) -> Task[Request]:
    """For a protocol whose replies leave as they are."""

    def serve(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        if connection.reply(answer(request, arrived_ns, connection.peer)):
            ask(connection)

    return serve


def session_task(answer: Answering[Request], ask: Ask[Request]) -> Task[Request]:
    """For a protocol that speaks by itself."""

    def serve(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        if connection.answer(request, answer(request, arrived_ns, connection.peer)):
            ask(connection)

    return serve


def stamped_task(answer_stamped: Answering[Request], ask: Ask[Request], timeline: Timeline) -> Task[Request]:
    """For any, noting in a timeline that the reply was given away; ``answer_stamped`` notes the rest."""
    local = timeline.local

    def serve(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        needs_a_look = connection.answer(request, answer_stamped(request, arrived_ns, connection.peer))
        if local.stamper.handled_ns:
            local.stamper.end()
        if needs_a_look:
            ask(connection)

    return serve
