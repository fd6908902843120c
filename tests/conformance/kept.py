"""Promises that a kind of server cannot keep, with the reason. Only this table leaves a kind out of a check.

A key is a transport, or a kind as ``TRANSPORT-DISPATCH``. The transport's docstring has each entry, too.
"""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tests.conformance.running import Kind

Promise = Literal[
    "several at a time",
    "headers without a message hold no thread",
    "survives a path that is not UTF-8",
]

NOT_KEPT: dict[str, dict[Promise, str]] = {
    "grpc": {"headers without a message hold no thread": "grpcio gives a call to a thread at its headers"},
    "grpc_aio": {"survives a path that is not UTF-8": "grpcio's asyncio server takes no further call"},
    "grpc_aio-loop": {"several at a time": "the loop answers one request after the other"},
}

GRPC = ("grpc", "grpc_static", "grpc_aio")
"""The transports that speak gRPC."""


def keeps(kind: "Kind", promise: Promise) -> bool:
    """Tell whether servers of this kind keep a promise."""
    return not any(promise in NOT_KEPT.get(name, {}) for name in (kind.transport, f"{kind.transport}-{kind.dispatch}"))
