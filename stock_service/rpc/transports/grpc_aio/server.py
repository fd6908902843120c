"""Server of the transport ``grpc_aio``: grpcio's asyncio server, with an event loop on its own thread.

Like ``grpc_sync/server.py``, the server answers any generated client, and has the standard health service and server
reflection. ``requests_max`` becomes grpcio's ``maximum_concurrent_rpcs``; gRPC core keeps the other limits.

Only the loop's thread uses grpcio's objects. A worker thread gives its reply to the loop by ``call_soon_threadsafe``.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from operator import call
from threading import Thread
from typing import Any

import grpc

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import Fault, Unavailable
from stock_service.rpc.grpcio.draining import LAST_S, drain
from stock_service.rpc.grpcio.securing import Checks, add_port
from stock_service.rpc.grpcio.serving import (
    CANCEL_S,
    STATUS,
    Behaviour,
    add_methods,
    behaviour_of,
    call_of,
    check_free,
    core_options,
    fault_of,
    quieten,
    stamped,
    stamping,
)
from stock_service.rpc.health import CHECK
from stock_service.rpc.service import Method, Service
from stock_service.rpc.transports import Address, ServeOptions
from stock_service.rpc.transports.grpc_aio.waiting import Waits, settle

Context = grpc.aio.ServicerContext[bytes, bytes]

Handler = Callable[[bytes, Context], Awaitable[bytes]]
"""Coroutine function that grpcio calls for a method. The function may raise any exception; ``AioServer._handler`` wraps
the function, and converts the exceptions.
"""

_WHOLE = "a call whose message is there"
"""Name of a call's asyncio task after the call's message has come. Before the message comes, the task has another name.
"""


class AioServer:
    """Implementation of ``transports.Server`` on grpcio's asyncio server. If ``on_loop`` is True, the event loop
    answers calls.
    """

    def __init__(self, service: Service, executor: Executor, on_loop: bool, options: ServeOptions) -> None:
        check_free(options)
        quieten()
        self._service = service = service.with_health()
        assert service.health is not None
        self._health = service.health
        self._checks = Checks(options.access, service)
        execute = executor.execute if options.metrics is None else options.metrics.waited(executor.execute)
        self._execute = execute if options.timeline is None else stamping(execute, options.timeline)
        self._answers_on_loop = on_loop
        self._waits = None if service.flush is None or options.timeline is not None else Waits(service.flush)
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._stop_asked: asyncio.Future[float] = self._loop.create_future()
        self._ending = False
        self._changed = asyncio.Event()  # set when the health changes, and at the end; then replaced by a new Event
        self._health.tell(self._tell)
        self._refuses = False
        listening: Future[int] = Future()
        self._thread = Thread(target=self._run, args=(listening,), name="grpc-aio-loop")
        self._thread.start()
        try:
            self.address: Address = (options.host, listening.result())
        except BaseException:
            self._thread.join()
            raise

    def stop(self, grace_s: float) -> bool:
        """Stops the server, as ``transports.Server.stop`` describes. If a handler blocks the loop, ``stop`` blocks for
        the sum of ``grace_s``, ``LAST_S`` and ``CANCEL_S``.
        """
        self._ending = True
        self._health.stop()
        if self._loop.is_closed():
            return True  # an earlier ``stop`` has ended the server
        drained = drain(self.address[1], self._under_way, self._refuse, grace_s)
        settle(self._stop_asked, LAST_S if drained else 0.0)
        self._thread.join(LAST_S + CANCEL_S)
        return drained and not self._thread.is_alive()

    def _under_way(self) -> int:
        """Returns the number of calls whose message has come, and whose reply is not sent yet. Watches and reflection
        calls do not count.
        """
        return sum(task.get_name() == _WHOLE for task in asyncio.all_tasks(self._loop))

    def _refuse(self) -> None:
        self._refuses = True

    def _tell(self) -> None:
        """Makes each watch send the health's status if the status has changed. Thread-safe."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._change)

    # ---- the loop's thread

    def _run(self, listening: Future[int]) -> None:
        try:
            self._loop.run_until_complete(self._serve(listening))
        except BaseException as error:  # ``__init__`` waits for the port, and raises this error
            if listening.done():
                raise
            listening.set_exception(error)
        finally:
            self._loop.close()

    async def _serve(self, listening: Future[int]) -> None:
        """Starts the server, and sets ``listening`` to the port. Waits for ``stop``, and then ends all calls."""
        server = grpc.aio.server(
            options=core_options(self._options), maximum_concurrent_rpcs=self._options.requests_max
        )
        handlers = {path: self._handler(path, method) for path, method in self._service.methods.items()}
        add_methods(server, handlers, self._watch, self._reflect)
        port = add_port(server, self._options)
        await server.start()
        listening.set_result(port)
        await server.stop(await self._stop_asked)
        left = asyncio.all_tasks() - {asyncio.current_task()}  # calls that wait for a message, watches, reflection
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=CANCEL_S)

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _watch(self, request: Any, context: Any) -> None:
        """Handler of the health service's Watch: sends the status now, and then each change. A stop ends every watch,
        so that no watch delays the stop.
        """
        told = None
        while True:
            changed, ends, status = self._changed, self._ending, self._health.watched(request)
            if status != told:
                await context.write(status)
                told = status
            if ends:
                return
            await changed.wait()

    async def _reflect(self, requests: Any, context: Any) -> AsyncIterator[bytes]:
        try:
            async for payload in requests:
                for reply in self._checks.reflect(payload, context):
                    yield reply
        except Fault as fault:
            await context.abort(STATUS[fault.code], fault.detail)

    def _handler(self, path: str, method: Method[Any, Any]) -> Handler:
        """Makes the handler that grpcio calls for a method. The handler admits only callers with the right to the
        method. An exception becomes a gRPC status.
        """
        answer = self._checks.checked(self._answer(path, method), path)
        is_work = path != CHECK

        async def handle(payload: bytes, context: Context) -> bytes:
            try:
                if is_work:
                    self._enter()
                return await answer(payload, context)
            except (asyncio.CancelledError, GeneratorExit):
                raise
            except BaseException as error:  # also SystemExit, since every request must get a reply
                refused = fault_of(error)
            return await context.abort(STATUS[refused.code], refused.detail)

        return handle

    def _enter(self) -> None:
        """Counts the current task as a call whose message has come. Raises Unavailable if the server is stopping."""
        if self._refuses:
            raise Unavailable("the server is stopping")
        task = asyncio.current_task()
        assert task is not None
        task.set_name(_WHOLE)

    def _answer(self, path: str, method: Method[Any, Any]) -> Handler:
        """Makes the inner handler of a method, which answers on the loop or on the executor."""
        behaviour, timeline, waits = behaviour_of(method), self._options.timeline, self._waits
        if path == CHECK:
            return _at_once(behaviour)
        if self._answers_on_loop and method.on_loop is not None:  # the timeline omits such calls: one call per thread
            awaited = method.answer_on_loop()
            return lambda payload, context: awaited(call_of(payload, context))
        if self._answers_on_loop and waits is not None:
            return lambda payload, context: waits.answered(partial(behaviour, payload, context))
        if timeline is not None:
            behaviour = stamped(behaviour, timeline, path)
        if not self._answers_on_loop:
            return partial(self._on_executor, behaviour)
        if timeline is None:
            return _at_once(behaviour)
        run: Callable[[Callable[[], bytes]], Any] = stamping(call, timeline)
        return _at_once(lambda payload, context: run(partial(behaviour, payload, context)))

    async def _on_executor(self, behaviour: Behaviour, payload: bytes, context: Context) -> bytes:
        """Answers a call on a thread of the executor. If the client cancels the call before a thread begins the call,
        the method is not called.
        """
        reply: asyncio.Future[bytes] = self._loop.create_future()
        self._execute(partial(_run, reply, behaviour, payload, context))
        return await reply


def _at_once(behaviour: Behaviour) -> Handler:
    """Makes a handler that calls ``behaviour`` on the event loop."""

    async def answer(payload: bytes, context: Context) -> bytes:
        return behaviour(payload, context)

    return answer


def _run(reply: asyncio.Future[bytes], behaviour: Behaviour, payload: bytes, context: Context) -> None:
    """Task of the executor for one call: calls ``behaviour``, and gives the result to the future ``reply``."""
    if reply.cancelled():
        return
    try:
        result: bytes | Fault = behaviour(payload, context)
    except BaseException as error:  # also SystemExit, since every request must get a reply
        result = fault_of(error)
    settle(reply, result)
