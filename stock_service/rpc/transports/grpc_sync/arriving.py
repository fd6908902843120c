"""What grpcio's server takes for its executor: it gives a call to a thread once the call's message is there.

grpcio gives a call away at its headers, and has the thread wait for the message. So a client that sends headers alone
takes a thread for as long as it likes; eight such calls take all of eight workers. It also counts such a call as under
way, and 1,032 of them are as many as a server of 8 workers and a queue of 1,024 lets in. Here grpcio's serving thread
asks for the message, and the executor gets the call when it has come. What finds no room there is RESOURCE_EXHAUSTED.

A call that waits for its message costs no thread. ``WAITING_MAX`` of them may; then the one that has waited longest is
ended for the next.

This replaces ``_unary_request`` of grpcio's ``_server.py``, and uses what that file keeps to itself. grpcio needs a
``submit`` that returns a Future and never raises: raising kills its serving thread, and every later call hangs. All but
``executor``'s tasks run on that thread.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

from grpc import _server as grpcio
from grpc._cython import cygrpc  # type: ignore[attr-defined]  # which has no types

from stock_service.rpc.concurrency import Task
from stock_service.rpc.errors import Fault, Overloaded, Unavailable, UnknownMethod

WAITING_MAX = 1024
"""Calls that may wait for their message, at most: as many as may wait for a thread by default."""

P = ParamSpec("P")
T = TypeVar("T")

_GIVEN_AWAY: Future[Any] = Future()
"""What grpcio gets for every call. It counts calls by their futures, which it need not: the executor does."""

_GIVEN_AWAY.set_result(None)


class Arriving(ThreadPoolExecutor):
    """See the module. Deriving from ThreadPoolExecutor is for the type alone; of it, only ``submit`` is used."""

    def __init__(self, execute: Callable[[Task], None]) -> None:
        super().__init__(max_workers=1)  # which starts no thread
        self._execute = execute
        self.waiting: dict[Any, Any] = {}
        """The calls that wait for their message: grpcio's state and its event of each, the oldest first."""

    def refuse(self) -> None:
        """From now on no call is given to a thread: the server is stopping, and says so."""
        self._execute = _stopping

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Takes a call of one message from grpcio, which holds its lock: has its message received. Never raises."""
        in_pool, event, state, behaviour, _, deserialise, serialise = cast(tuple[Any, ...], args)
        run = cast(Callable[..., None], fn)
        waiting = self.waiting
        if len(waiting) >= WAITING_MAX:
            oldest = next(iter(waiting))
            _end(oldest, waiting.pop(oldest), Overloaded("its message has not come, and too many others wait"))
        received = grpcio._receive_message(state, event.call, deserialise)

        def arrived(message: Any) -> Any:
            waiting.pop(state, None)
            ended = received(message)
            request, state.request = state.request, None
            try:
                if request is None:
                    raise UnknownMethod("exactly one message is a request")  # grpcio's own status for this
                wanted = partial(_unless_given_up, state, request)
                self._execute(partial(run, in_pool, event, state, behaviour, wanted, deserialise, serialise))
            except Fault as fault:
                _end(state, event, fault)
            return ended

        waiting[state] = event
        event.call.start_server_batch((cygrpc.ReceiveMessageOperation(0),), arrived)
        state.due.add(grpcio._RECEIVE_MESSAGE_TOKEN)
        return _GIVEN_AWAY


def _stopping(_: Task) -> None:
    raise Unavailable("the server is stopping")


def _unless_given_up(state: Any, request: Any) -> Any:
    """A call's request, asked for by the thread that is to answer it. None once its client has given up: grpcio then
    has no handler called."""
    return request if grpcio._is_rpc_state_active(state) else None


def _end(state: Any, event: Any, fault: Fault) -> None:
    """Ends a call that no thread has, unless it has ended."""
    with state.condition:
        if grpcio._is_rpc_state_active(state):
            grpcio._abort(state, event.call, int(fault.code), fault.detail.encode())
