"""What servers on grpcio share: statuses, limits in gRPC core's terms, a call as grpcio knows it."""

import logging
import socket
import time
from collections.abc import Iterable
from typing import Protocol

import grpc

from stock_service.rpc.call import Call
from stock_service.rpc.errors import FaultCode
from stock_service.rpc.option_types import family_of
from stock_service.rpc.security import AUTHORIZATION

STATUS = {code: next(status for status in grpc.StatusCode if status.value[0] == code) for code in FaultCode}
"""grpcio's status of each fault."""

FAILED = "the handler failed; the server's log says why"
"""What a client is told of a handler that raised what is no fault."""

CANCEL_S = 1.0
"""How long grpcio gets to end the calls that it cancels in the end."""

_CORE_MAX = 2**31 - 1
"""The largest number that an option of the core takes."""

_FOR_EVER_S = 1e12
"""Where grpcio says that so much or more is left, no deadline was set: ``grpc-timeout`` says 3.6e11 s at most."""


def quieten() -> None:
    """Has grpcio log nothing of metadata that is not UTF-8, which it else does with a traceback for each request.

    It takes the bytes for Latin-1, which no metadata of the service needs. Which of its loggers says so is its own
    matter: each that there is gets the filter. May be repeated.
    """
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.startswith("grpc.") and isinstance(logger, logging.Logger):
            logger.addFilter(_is_about_us)


def _is_about_us(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("Invalid encoding on")


class Context(Protocol):
    """A call's context: that of grpcio's thread-based server, or of its asyncio one."""

    def time_remaining(self) -> float | None:
        """Seconds that are left."""

    def peer(self) -> str:
        """``ipv4:HOST:PORT``."""

    def invocation_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """What the client sent beside the request."""


def call_of(payload: bytes, context: Context) -> Call:
    """A call as grpcio knows it."""
    left_s = context.time_remaining()
    limited = left_s is not None and left_s < _FOR_EVER_S
    deadline_ns = time.monotonic_ns() + int(left_s * 1e9) if left_s is not None and limited else None
    metadata = tuple((key, value) for key, value in context.invocation_metadata() or () if key != AUTHORIZATION)
    return Call(payload, context.peer().partition(":")[2], deadline_ns, metadata)


def check_free(host: str, port: int, shares_port: bool) -> None:
    """Raises OSError, which says why an address cannot be had: gRPC core only says that it cannot."""
    socket.create_server((host, port), family=family_of(host), reuse_port=shares_port).close()


def core_options(
    frame_bytes_max: int, pipeline_max: int, idle_timeout_s: float, connections_max: int, shares_port: bool
) -> list[tuple[str, int]]:
    """Our limits in gRPC core's terms.

    The core cancels calls at random, some behind its 1,000th and all behind its 3,000th that waits to be handed over,
    and their clients cannot know why. So it is told to keep as many as there may be: the executor refuses by name.
    """
    calls_max = min(connections_max * pipeline_max, _CORE_MAX)
    return [
        ("grpc.server.max_pending_requests", calls_max),
        ("grpc.server.max_pending_requests_hard_limit", calls_max),
        ("grpc.so_reuseport", int(shares_port)),  # else a port in use is an error, no second server behind it
        ("grpc.max_receive_message_length", frame_bytes_max),
        ("grpc.max_concurrent_streams", pipeline_max),
        ("grpc.max_connection_idle_ms", int(idle_timeout_s * 1000)),
        ("grpc.max_allowed_incoming_connections", connections_max),
    ]
