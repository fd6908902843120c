"""The lean client of each transport: the codec that the transport brings, and a blocking connection on it."""

from collections.abc import Callable
from functools import partial
from typing import cast

from clients.load.plan.load_plan import LoadPlan
from clients.load.send.lean_connection import connect
from stock_service.rpc.errors import UsageError
from stock_service.rpc.transports import Address, Connection, load
from stock_service.rpc.wire.codec import Codec


def lean_codec(transport: str, address: Address, timeout_s: float) -> Callable[[], Codec]:
    """What makes the codec of each new connection; ``timeout_s`` is told to the server with each request.

    Raises UsageError for a transport that only its own library speaks.
    """
    known = load(transport)
    if known.codec(address, timeout_s) is None:
        raise UsageError("--client", "lean", f"library, since only its own library speaks {known.LABEL}")
    return cast(Callable[[], Codec], partial(known.codec, address, timeout_s))


def lean_connect(transport: str, address: Address, timeout_s: float) -> Callable[[float], Connection]:
    """What makes a connection within the seconds that it is given; blocks for these at most, and raises a Fault.

    ``timeout_s`` is told to the server with each request, however long connecting may take. Raises as ``lean_codec``.
    """
    codec = lean_codec(transport, address, timeout_s)
    return lambda within_s: connect(address, within_s, codec)


def check(plan: LoadPlan) -> None:
    """Raises UsageError where the plan asks for a lean client that its transport has not."""
    if plan.client == "lean":
        lean_codec(plan.transport, plan.address, plan.timeout_s)
