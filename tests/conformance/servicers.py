"""Servers of servicers: grpcio's and ours, which are to be told apart by their clients in nothing that is documented.

Each test is run on both. ``DIFFERENCES`` is what differs, with the reason.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from stock_service.rpc.server import server

SERVERS: Mapping[str, Callable[..., grpc.Server]] = {"grpcio": grpc.server, "ours": server}
"""What makes a server, as ``grpc.server`` does."""

DIFFERENCES: Mapping[str, str] = {
    "credentials": "grpc.ServerCredentials cannot be read by public names: add_secure_port takes a ServerTls",
    "options": "an option that is not kept is refused by its name: grpcio ignores one that it does not know",
    "bounds": "at most limits.requests_max calls are accepted at a time: everything of ours is bounded",
    "certificates": "a handler is told the common name of a client's certificate alone: all that the core keeps of it",
}
"""What differs, with the reason."""

Make = Callable[..., grpc.Server]
Code = grpc.StatusCode

NAME = "tests.v1.Servicer"
UNARY = f"/{NAME}/Unary"

Behaviour = Callable[[Any, Any], Any]


def unary(behaviour: Behaviour) -> Mapping[str, Any]:
    """A method of one request and one reply, in bytes."""
    return {"Unary": grpc.unary_unary_rpc_method_handler(behaviour)}


def generic(methods: Mapping[str, Any]) -> grpc.GenericRpcHandler:
    """What generated code of old gives to a server."""
    return grpc.method_handlers_generic_handler(NAME, dict(methods))


@contextmanager
def started(make: Make, methods: Mapping[str, Any], **given: Any) -> Iterator[tuple[Any, str]]:
    """A server that serves these methods until ``with`` ends, and its address."""
    with ThreadPoolExecutor(given.pop("workers", 4)) as pool:
        served = make(pool, options=[("grpc.so_reuseport", 0)], **given)
        served.add_generic_rpc_handlers((generic(methods),))
        address = f"127.0.0.1:{served.add_insecure_port('127.0.0.1:0')}"
        served.start()
        try:
            yield served, address
        finally:
            served.stop(None)
            served.wait_for_termination()


@contextmanager
def channel(address: str) -> Iterator[Any]:  # whose stub knows no method of bytes
    """grpcio's, with a connection of its own."""
    with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as opened:
        yield opened


@contextmanager
def calling(make: Make, methods: Mapping[str, Any], **given: Any) -> Iterator[Any]:
    """A channel to such a server."""
    with started(make, methods, **given) as (_, address), channel(address) as opened:
        yield opened


def failed(call: Callable[[], object]) -> Any:
    """The error of a call that fails."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value


def noted(notes: list[Any], note: object, reply: bytes) -> bytes:
    """The reply, once the note is taken: for a handler in one line."""
    notes.append(note)
    return reply


class Interceptor(grpc.ServerInterceptor):
    """Notes its name and what it is told, and goes on, unless it has a handler of its own."""

    def __init__(self, name: str, told: list[Any], own: Any = None) -> None:
        self.name, self.told, self.own = name, told, own

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """See ``grpc.ServerInterceptor``."""
        self.told.append((self.name, handler_call_details.method, dict(handler_call_details.invocation_metadata)["a"]))
        return self.own or continuation(handler_call_details)
