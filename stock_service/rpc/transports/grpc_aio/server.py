"""The server of gRPC on asyncio: grpcio's, on an event loop on a thread of its own.

What it offers and its limits are those of ``grpc_sync``: any generated client, health, reflection, ``requests_max`` as
grpcio's ``maximum_concurrent_rpcs``, the rest as gRPC core's own limits.

Everything of grpcio is touched on the loop's thread alone. A worker hands its reply over by ``call_soon_threadsafe``.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from stock_service.rpc.call import Call
from stock_service.rpc.concurrency import Executor
from stock_service.rpc.descriptors import Descriptors
from stock_service.rpc.errors import Fault, InternalFault, Unavailable
from stock_service.rpc.grpcio.draining import LAST_S, drain
from stock_service.rpc.grpcio.securing import add_port, checks_of
from stock_service.rpc.grpcio.serving import (
    CANCEL_S,
    FAILED,
    STATUS,
    call_of,
    check_free,
    core_options,
    quieten,
)
from stock_service.rpc.health import Health, response
from stock_service.rpc.service import Method, Service
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.transports import Address, ServeOptions
from stock_service.rpc.transports.grpc_aio.checking import checked, checked_stream
from stock_service.rpc.transports.grpc_aio.waiting import Waits
from stock_service.rpc.waiting import Waiting

_log = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[bytes, bytes]

Behaviour = Callable[[bytes, Context], bytes]
"""A method that raises nothing but a Fault."""

Handler = Callable[[bytes, Context], Awaitable[bytes]]
"""A method as grpcio calls it."""

SERVING = health_pb2.HealthCheckResponse.SERVING
UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class AioServer:
    """A server that is listening; see ``transports.Server``. ``on_loop``: its loop answers by itself."""

    def __init__(self, service: Service, executor: Executor, on_loop: bool, options: ServeOptions) -> None:
        check_free(options.host, options.port, options.shares_port)
        quieten()
        self._service = service
        self._checks = checks_of(options.access, service)
        self._execute = executor.execute if options.metrics is None else options.metrics.waited(executor.execute)
        self._answers_on_loop = on_loop
        self._waits = None if service.flush is None else Waits(service.flush)
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._stop_asked: asyncio.Future[float] = self._loop.create_future()
        self._health = _Health(service.health or Health(service.name), service.name)
        self._gate = _Gate()
        listening: Future[int] = Future()
        self._thread = Thread(target=self._run, args=(listening,), name="grpc-aio-loop")
        self._thread.start()
        try:
            self.address: Address = (options.host, listening.result())
        except BaseException:
            self._thread.join()
            raise

    def stop(self, grace_s: float) -> bool:
        """See ``transports.Server.stop``. A handler that blocks the loop is waited for no longer than any other."""
        try:
            self._loop.call_soon_threadsafe(self._health.end)
            drained = drain(self.address[1], self._under_way, self._gate.close, grace_s)
            self._loop.call_soon_threadsafe(self._ask_to_stop, LAST_S if drained else 0.0)
        except RuntimeError:
            return True  # the loop is closed: all has ended before
        self._thread.join(LAST_S + CANCEL_S)
        return drained and not self._thread.is_alive()

    def _under_way(self) -> int:
        """Calls whose message is there and whose reply is not sent; no watch, and no reflection."""
        return sum(task.get_name() == _WHOLE for task in asyncio.all_tasks(self._loop))

    def _ask_to_stop(self, last_s: float) -> None:
        if not self._stop_asked.done():
            self._stop_asked.set_result(last_s)

    # ---- the loop's thread

    def _run(self, listening: Future[int]) -> None:
        try:
            self._loop.run_until_complete(self._serve(listening))
        except BaseException as error:  # whoever waits for the port gets it
            if listening.done():
                raise
            listening.set_exception(error)
        finally:
            self._loop.close()

    async def _serve(self, listening: Future[int]) -> None:
        """Serves until a stop is asked for, and then ends what is under way."""
        options, service = self._options, self._service
        limits = core_options(
            options.frame_bytes_max,
            options.pipeline_max,
            options.idle_timeout_s,
            options.connections_max,
            options.shares_port,
        )
        server = grpc.aio.server(options=limits, maximum_concurrent_rpcs=options.requests_max)
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            path.rpartition("/")[2]: grpc.unary_unary_rpc_method_handler(self._checked(path, method))
            for path, method in service.methods.items()
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, handlers),))
        server.add_registered_method_handlers(service.name, handlers)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        reflected = (service.name, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflecting = reflection.aio.ReflectionServicer(reflected, pool=Descriptors())
        if self._checks is not None:
            reflecting.ServerReflectionInfo = checked_stream(reflecting.ServerReflectionInfo, self._checks)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(reflecting, server)
        port = add_port(server, (options.host, options.port), options.tls, options.shares_port)
        await server.start()
        listening.set_result(port)
        await server.stop(await self._stop_asked)
        left = asyncio.all_tasks() - {asyncio.current_task()}  # what waited for a message, or was open for good
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=CANCEL_S)

    def _checked(self, path: str, method: Method[Any, Any]) -> Handler:
        """A method, for those alone who may ask for it."""
        handler, checks = self._handler(path, method), self._checks
        return handler if checks is None else checked(handler, checks, path.encode())

    def _handler(self, path: str, method: Method[Any, Any]) -> Handler:
        behaviour, timeline = _behaviour(method), self._options.timeline
        if self._answers_on_loop and method.on_loop is not None:
            return _awaited(method, self._gate)
        if self._answers_on_loop and self._waits is not None and timeline is None:
            return _on_loop_or_waiting(behaviour, self._waits, self._gate)
        if self._answers_on_loop:
            return _on_loop(behaviour if timeline is None else _stamped(behaviour, timeline, path), self._gate)
        if timeline is None:
            return _on_executor(partial(_run_task, self._loop, behaviour), self._execute, self._gate, _no_clock)
        task = _stamped_task(partial(_run_task, self._loop, behaviour), timeline, path)
        return _on_executor(task, self._execute, self._gate, timeline.now_ns)


class _Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # which has no types
    """The standard health service: SERVING until the end, which ends every watch too, so that none holds up a stop."""

    def __init__(self, served: Health, service: str) -> None:
        self._served = served
        self._statuses = dict.fromkeys(("", service), SERVING)
        self._ended = asyncio.Event()

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802  # gRPC's name
        """The status of a service by its name; NOT_FOUND for others."""
        status = self._statuses.get(request.service)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND)
        if not self._served.serving():
            return response(False)
        return health_pb2.HealthCheckResponse(status=status)

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: N802  # gRPC's name
        """The status now, and again when it changes: once, in the end."""
        for _ in range(2):
            status = self._statuses.get(request.service, UNKNOWN)
            await context.write(health_pb2.HealthCheckResponse(status=status))
            await self._ended.wait()

    def end(self) -> None:
        """From now on nothing is served."""
        self._statuses = dict.fromkeys(self._statuses, NOT_SERVING)
        self._ended.set()


_WHOLE = "a call whose message is there"
"""The name of its task on the loop. That of one that waits for its message has another."""


class _Gate:
    """What every call of the service passes once its message is there; of the loop's thread."""

    def __init__(self) -> None:
        self._closed = False

    def enter(self) -> None:
        """Names the call's task. Raises Unavailable once the gate is closed."""
        if self._closed:
            raise Unavailable("the server is stopping")
        task = asyncio.current_task()
        assert task is not None
        task.set_name(_WHOLE)

    def close(self) -> None:
        """From now on every call is refused. From any thread."""
        self._closed = True


def _behaviour(method: Method[Any, Any]) -> Behaviour:
    """A method that raises nothing but a Fault."""
    if method.wants_call:
        answer_call = method.answer_call()
        return _guarded(lambda payload, context: answer_call(call_of(payload, context)))
    answer = method.answer()
    return _guarded(lambda payload, _: answer(payload))


def _guarded(behaviour: Behaviour) -> Behaviour:
    def guarded(payload: bytes, context: Context) -> bytes:
        try:
            return behaviour(payload, context)
        except (Fault, Waiting):
            raise
        except BaseException:  # SystemExit too: every request gets its reply
            _log.exception("a handler raised")
            raise InternalFault(FAILED) from None

    return guarded


def _stamped(behaviour: Behaviour, timeline: Timeline, path: str) -> Behaviour:
    """The same on the loop, noted in a timeline: it is begun with as it is accepted, and replied as it is handled."""
    local, number = timeline.local, timeline.method_number(path)

    def answer_stamped(payload: bytes, context: Context) -> bytes:
        stamper = local.stamper
        stamper.begin(timeline.now_ns())
        try:
            return behaviour(payload, context)
        finally:
            stamper.handled(number)
            stamper.end()

    return answer_stamped


def _on_loop(behaviour: Behaviour, gate: _Gate) -> Handler:
    """A method that the loop answers."""

    async def handle(payload: bytes, context: Context) -> bytes:
        try:
            gate.enter()
            return behaviour(payload, context)
        except Fault as fault:
            refused = fault
        return await context.abort(STATUS[refused.code], refused.detail)

    return handle


def _on_loop_or_waiting(behaviour: Behaviour, waits: Waits, gate: _Gate) -> Handler:
    """The same, of one that may have to wait: the loop serves others meanwhile."""

    async def handle(payload: bytes, context: Context) -> bytes:
        try:
            gate.enter()
            return await waits.answered(partial(behaviour, payload, context))
        except Fault as fault:
            refused = fault
        return await context.abort(STATUS[refused.code], refused.detail)

    return handle


def _awaited(method: Method[Any, Any], gate: _Gate) -> Handler:
    """A method that waits on the loop, which serves other calls meanwhile. It is in no timeline: those are of threads
    that have one request at a time."""
    answer = method.answer_on_loop()

    async def guarded(call: Call) -> bytes:
        try:
            return await answer(call)
        except (Fault, asyncio.CancelledError):
            raise
        except BaseException:  # SystemExit too: every request gets its reply
            _log.exception("a handler raised")
            raise InternalFault(FAILED) from None

    async def handle(payload: bytes, context: Context) -> bytes:
        try:
            gate.enter()
            return await guarded(call_of(payload, context))
        except Fault as fault:
            refused = fault
        return await context.abort(STATUS[refused.code], refused.detail)

    return handle


Reply = asyncio.Future[bytes]

Execute = Callable[[Callable[[], object]], None]
"""An executor's."""

Task = Callable[[Reply, bytes, Context, int], None]
"""Answers a request on a thread of the executor; the last is when it was accepted, in nanoseconds."""


def _on_executor(task: Task, execute: Execute, gate: _Gate, now_ns: Callable[[], int]) -> Handler:
    """A method that the executor answers. One whose client gives up before a thread has it is not begun."""

    async def handle(payload: bytes, context: Context) -> bytes:
        accepted_ns = now_ns()
        reply: Reply = asyncio.get_running_loop().create_future()
        try:
            gate.enter()
            execute(partial(task, reply, payload, context, accepted_ns))
            return await reply
        except Fault as fault:
            refused = fault
        return await context.abort(STATUS[refused.code], refused.detail)

    return handle


def _no_clock() -> int:
    return 0


def _run_task(
    loop: asyncio.AbstractEventLoop,
    behaviour: Behaviour,
    reply: Reply,
    payload: bytes,
    context: Context,
    _accepted_ns: int,
    handled: Callable[[], None] = lambda: None,
) -> None:
    """A task: gives the loop what a method answers, or its fault."""
    if reply.cancelled():
        return
    answer, refused = b"", None
    try:
        answer = behaviour(payload, context)
    except Fault as fault:
        refused = fault
    handled()
    try:
        loop.call_soon_threadsafe(_settle, reply, answer, refused)
    except RuntimeError:
        pass  # the loop is closed: the server has given this request up


def _settle(reply: Reply, answer: bytes, refused: Fault | None) -> None:
    if reply.done():
        return  # its client has given up
    if refused is None:
        reply.set_result(answer)
    else:
        reply.set_exception(refused)


def _stamped_task(task: Callable[..., None], timeline: Timeline, path: str) -> Task:
    """The same, noting in a timeline when its request was where; replied is when the loop has been told."""
    local, number = timeline.local, timeline.method_number(path)

    def run_stamped(reply: Reply, payload: bytes, context: Context, accepted_ns: int) -> None:
        if reply.cancelled():
            return
        stamper = local.stamper
        stamper.begin(accepted_ns)
        task(reply, payload, context, accepted_ns, lambda: stamper.handled(number))
        stamper.end()

    return run_stamped
