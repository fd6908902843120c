"""Code that the transports on grpcio share, for clients and servers. So no transport imports another transport.

grpcio is imported on its first use. The lean client's codec and the null server are also in this module, and do not
need grpcio. Left out: code that speaks gRPC without grpcio, which is in ``wire``.
"""

from collections.abc import Callable
from typing import Any

from stock_service.rpc.option_types import shown_address
from stock_service.rpc.security import Metadata
from stock_service.rpc.wire.grpc_codec import GrpcCodec
from stock_service.rpc.wire.grpc_null import null_answers as null_answers


def loaded(name: str) -> Callable[..., Any]:
    """The attribute ``connect`` of a transport's module. Reading the attribute imports grpcio. So the time of a
    connection does not include the import.
    """
    if name != "connect":
        raise AttributeError(name)
    from stock_service.rpc.grpcio.client import connect

    return connect


def codec(address: tuple[str, int], token: str = "", metadata: Metadata = ()) -> GrpcCodec:
    """Codec of a new connection of the lean client."""
    return GrpcCodec(shown_address(address), token, metadata)
