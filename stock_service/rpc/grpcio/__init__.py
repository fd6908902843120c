"""Code of clients and servers that all gRPC transports share. So no transport imports another transport.

Reading the attribute ``connect`` of a gRPC transport imports grpcio. The codecs of the lean client and of the null
server are also here, but do not need grpcio. (The null server sends the same reply to every request.) Left out: the
implementation of gRPC without grpcio. That implementation is in ``wire``.
"""

from collections.abc import Callable
from typing import Any

from stock_service.rpc.option_types import shown_address
from stock_service.rpc.security import Metadata
from stock_service.rpc.wire.grpc_codec import GrpcCodec
from stock_service.rpc.wire.grpc_null import null_answers as null_answers


def loaded(name: str) -> Callable[..., Any]:
    """Serves as the function ``__getattr__`` of the gRPC transports' modules. So these modules have the lazy attribute
    ``connect``.

    Reading ``connect`` imports grpcio. So the time for opening a connection does not contain the time for the import.
    Raises AttributeError for any other name.
    """
    if name != "connect":
        raise AttributeError(name)
    from stock_service.rpc.grpcio.client import connect

    return connect


def codec(address: tuple[str, int], token: str = "", metadata: Metadata = ()) -> GrpcCodec:
    """Makes the codec by which the lean load client encodes and decodes gRPC on a new connection, without grpcio."""
    return GrpcCodec(shown_address(address), token, metadata)
