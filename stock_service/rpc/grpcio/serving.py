"""Code that the servers on grpcio share: conversion of methods, faults and limits for grpcio, and wrappers that record
times for a timeline.
"""

import logging
import socket
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from stock_service.rpc.call import Call
from stock_service.rpc.concurrency import Task
from stock_service.rpc.errors import Fault, FaultCode, InternalFault
from stock_service.rpc.health import WATCH
from stock_service.rpc.option_types import family_of
from stock_service.rpc.reflection import REFLECTION
from stock_service.rpc.security import AUTHORIZATION
from stock_service.rpc.server_core.options import ServeOptions
from stock_service.rpc.service import Method
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.waiting import Waiting

_log = logging.getLogger(__name__)

T = TypeVar("T")

Server = grpc.Server | grpc.aio.Server
"""A server of grpcio: thread-based or asyncio."""

Context = grpc.ServicerContext | grpc.aio.ServicerContext[bytes, bytes]
"""grpcio's context of a call, on a thread-based or an asyncio server."""

Behaviour = Callable[[bytes, Context], bytes]
"""Method as a function from an encoded request, and the call's context, to an encoded reply. Raises a Fault."""

STATUS = {code: next(status for status in grpc.StatusCode if status.value[0] == code) for code in FaultCode}
"""grpcio's status of each fault, by the fault's code."""

CANCEL_S = 1.0
"""Seconds that a stopping server waits for the end of the calls that grpcio has cancelled."""

_CORE_MAX = 2**31 - 1
"""Largest value of an option of gRPC core."""

_FOR_EVER_S = 1e12
"""Time in seconds. If the remaining time of a call is at least this time, the call has no deadline: the largest
``grpc-timeout`` is 3.6e11 s.
"""


def quieten() -> None:
    """Stops grpcio's log lines about metadata that is not UTF-8. Each request with such metadata would log a traceback.

    grpcio reads such metadata as Latin-1, and the service needs no such metadata. The function adds a filter to each
    logger of grpcio, since each logger may write such a line. May be called again.
    """
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.startswith("grpc.") and isinstance(logger, logging.Logger):
            logger.addFilter(_is_about_us)


def _is_about_us(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("Invalid encoding on")


def call_of(payload: bytes, context: Context) -> Call:
    """Makes the ``Call`` of a request from grpcio's context."""
    left_s = context.time_remaining()
    limited = left_s is not None and left_s < _FOR_EVER_S
    deadline_ns = time.monotonic_ns() + int(left_s * 1e9) if left_s is not None and limited else None
    metadata = tuple((key, value) for key, value in context.invocation_metadata() or () if key != AUTHORIZATION)
    return Call(payload, context.peer().partition(":")[2], deadline_ns, metadata)


def behaviour_of(method: Method[Any, Any]) -> Behaviour:
    """Makes the ``Behaviour`` of a method. The ``Behaviour`` makes a ``Call`` from grpcio's context only if the method
    takes a ``Call``.
    """
    if method.wants_call:
        answer_call = method.answer_call()
        return lambda payload, context: answer_call(call_of(payload, context))
    answer = method.answer()
    return lambda payload, _: answer(payload)


def fault_of(error: BaseException) -> Fault:
    """Converts an exception of a handler to a fault. Logs an exception that is not a Fault. Raises a ``Waiting`` again,
    since the request gets its reply later.
    """
    if isinstance(error, Waiting):
        raise error
    if isinstance(error, Fault):
        return error
    _log.error("a handler raised", exc_info=error)
    return InternalFault("the handler failed; the server's log says why")


def stamped(behaviour: Behaviour, timeline: Timeline, path: str) -> Behaviour:
    """Wraps a behaviour. The result also records in the timeline the time when the reply or fault is ready."""
    local, number = timeline.local, timeline.method_number(path)

    def answer_stamped(payload: bytes, context: Context) -> bytes:
        try:
            return behaviour(payload, context)
        finally:
            local.stamper.handled(number)

    return answer_stamped


def stamping(execute: Callable[[Task], T], timeline: Timeline) -> Callable[[Task], T]:
    """Wraps ``execute``. The result also records three times of a call in the timeline: when the server accepted the
    call, and when a thread began and ended the call.

    The timeline does not record calls of another service, such as health.
    """
    local, now_ns = timeline.local, timeline.now_ns

    def run(accepted_ns: int, task: Task) -> object:
        stamper = local.stamper
        stamper.begin(accepted_ns)
        try:
            return task()
        finally:
            if stamper.handled_ns:
                stamper.end()

    return lambda task: execute(partial(run, now_ns(), task))


def add_methods(
    server: Server, behaviours: Mapping[str, Callable[..., Any]], watch: Callable[..., Any], reflect: Callable[..., Any]
) -> None:
    """Adds methods to a server. ``behaviours`` has methods as functions of bytes, by path. ``watch`` is the handler of
    the health service's Watch, for messages. ``reflect`` is the handler of server reflection, for bytes.
    """
    read, write = HealthCheckRequest.FromString, HealthCheckResponse.SerializeToString
    handlers: dict[str, Any] = {path: grpc.unary_unary_rpc_method_handler(each) for path, each in behaviours.items()}
    handlers[WATCH] = grpc.unary_stream_rpc_method_handler(watch, read, write)
    handlers |= dict.fromkeys(REFLECTION, grpc.stream_stream_rpc_method_handler(reflect))
    services: dict[str, dict[str, Any]] = {}
    for path, handler in handlers.items():
        _, service, name = path.split("/")
        services.setdefault(service, {})[name] = handler
    for service, named in services.items():
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, named),))
        server.add_registered_method_handlers(service, named)


def check_free(options: ServeOptions) -> None:
    """Opens and closes a listening socket on the server's address. If the address cannot be used, raises OSError with
    the reason, which gRPC core would not tell.
    """
    family = family_of(options.host)
    socket.create_server((options.host, options.port), family=family, reuse_port=options.shares_port).close()


def core_options(options: ServeOptions) -> list[tuple[str, int]]:
    """Converts the limits of ``options`` to options of gRPC core.

    By default, while over 1,000 calls wait for grpcio, the core cancels some calls at random. While over 3,000 calls
    wait, the core cancels every further call. The clients get no reason. So these options set both limits to the
    largest number of calls that can come. Then the executor refuses calls, with a reason.
    """
    calls_max = min(options.connections_max * options.pipeline_max, _CORE_MAX)
    ages = [
        ("grpc.max_connection_age_ms", int(options.connection_age_s * 1000)),  # gRPC core varies this time by a tenth
        ("grpc.max_connection_age_grace_ms", int(options.connection_grace_s * 1000)),
    ]
    return [
        *(ages if options.connection_age_s else ()),
        ("grpc.server.max_pending_requests", calls_max),
        ("grpc.server.max_pending_requests_hard_limit", calls_max),
        ("grpc.so_reuseport", int(options.shares_port)),  # 0: a port in use is an error
        ("grpc.max_receive_message_length", options.frame_bytes_max),
        ("grpc.max_concurrent_streams", options.pipeline_max),
        ("grpc.max_connection_idle_ms", int(options.idle_timeout_s * 1000)),
        ("grpc.max_allowed_incoming_connections", options.connections_max),
    ]
