"""Calls of the asyncio server for those alone who may make them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from stock_service.rpc.errors import Fault
from stock_service.rpc.grpcio.securing import REFLECTION, Checks
from stock_service.rpc.grpcio.serving import STATUS

Context = grpc.aio.ServicerContext[bytes, bytes]

Handler = Callable[[bytes, Context], Awaitable[bytes]]
"""A method as grpcio calls it."""


def checked(handler: Handler, checks: Checks, path: bytes) -> Handler:
    """A method, for those alone who may ask for it."""

    async def handle(payload: bytes, context: Context) -> bytes:
        try:
            checks.check(path, context)
        except Fault as fault:
            refused = fault
        else:
            return await handler(payload, context)
        return await context.abort(STATUS[refused.code], refused.detail)

    return handle


def checked_stream(handler: Callable[[Any, Any], AsyncIterator[Any]], checks: Checks) -> Callable[..., Any]:
    """Reflection, likewise."""

    async def handle(requests: Any, context: Any) -> AsyncIterator[Any]:
        try:
            checks.check(REFLECTION, context)
        except Fault as fault:
            await context.abort(STATUS[fault.code], fault.detail)
        async for reply in handler(requests, context):
            yield reply

    return handle
