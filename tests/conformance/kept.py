"""What a kind of server cannot keep, and who speaks gRPC: the one place that leaves a kind out of a check."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conformance.running import Kind

GRPC = ("grpc", "grpc_static", "grpc_aio")
"""The transports that speak gRPC."""


def answers_several(kind: "Kind") -> bool:
    """Whether servers of this kind answer several requests at a time. An event loop answers one after the other."""
    return kind.dispatch != "loop"
