"""Functions that make connections for both kinds of client on every transport. The lean client is built on the
transport's codec. The library client is the transport's own client."""

import ssl
from collections.abc import Callable
from functools import lru_cache, partial
from typing import cast

from clients.load.plan.load_plan import LoadPlan
from stock_service.rpc.codec_connection import CodecConnection
from stock_service.rpc.errors import UsageError
from stock_service.rpc.tls import NO_CREDENTIALS
from stock_service.rpc.transports import Connection, load
from stock_service.rpc.wire.codec import Codec, Prepared

PREPARED_MAX = 1024
"""Largest number of encoded requests in the cache of ``connecting``. A load repeats a few dozen requests."""


def lean_codec(plan: LoadPlan) -> Callable[[], Codec]:
    """Returns the function that makes the codec of a new connection of the lean client. Raises UsageError if the
    transport has no lean client.
    """
    known = load(plan.transport)
    if known.codec(plan.address) is None:
        raise UsageError("--client", "lean", f"library, since only its own library speaks {known.LABEL}")
    own = plan.credentials
    shown = (own.token, own.metadata) if own.token or own.metadata else ()
    return cast(Callable[[], Codec], partial(known.codec, plan.address, *shown))


def lean_context(plan: LoadPlan) -> ssl.SSLContext | None:
    """TLS context for the lean client's connections; None for connections without TLS. Raises UsageError if the files
    of the plan's credentials cannot be used."""
    return plan.credentials.context(load(plan.transport).TLS_PROTOCOLS)


def connecting(plan: LoadPlan) -> Callable[[float], Connection]:
    """Returns the function that makes a connection with the plan's kind of client. For a library client, imports the
    transport's library.

    The returned function takes a timeout in seconds, blocks for this time at most, and raises a Fault. With each
    request the lean client sends the plan's timeout to the server, even if less time is left for the call. Raises
    UsageError if the transport does not have this kind of client.
    """
    if plan.client == "library":
        library = load(plan.transport).connect
        if plan.credentials == NO_CREDENTIALS:
            return partial(library, plan.address)
        return partial(library, plan.address, credentials=plan.credentials)
    codec, context = lean_codec(plan), lean_context(plan)
    encode = codec().prepare

    @lru_cache(PREPARED_MAX)
    def prepare(path: str, payload: bytes, _timeout_s: float) -> Prepared:
        return encode(path, payload, plan.timeout_s)

    return lambda timeout_s: CodecConnection(plan.address, codec, context, prepare).open(timeout_s)


def check(plan: LoadPlan) -> None:
    """Checks that the plan's client can be made. Raises UsageError if the transport does not have this kind of client,
    or if the client's library is missing. Also raises UsageError for a plan with metadata if the transport has no
    metadata.
    """
    if plan.credentials.metadata:
        load(plan.transport).codec(plan.address, metadata=plan.credentials.metadata)
    connecting(plan)
