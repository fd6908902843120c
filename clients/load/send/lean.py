"""The lean client of each transport: its codec, and a blocking connection on it."""

from functools import partial

from clients.load.send.codec import Codec
from clients.load.send.lean_connection import connect
from clients.load.send.lean_grpc import GrpcCodec
from clients.load.send.socket_codec import SocketCodec
from stock_service.rpc.transports import Address, Connection


def lean_codec(transport: str, address: Address, timeout_s: float) -> Codec:
    """What a new connection speaks; ``timeout_s`` is told to the server with each request."""
    if transport == "grpc":
        return GrpcCodec(f"{address[0]}:{address[1]}", timeout_s)
    return SocketCodec(timeout_s)


def lean_connect(transport: str, address: Address, call_timeout_s: float, timeout_s: float) -> Connection:
    """A connection that is made when this returns. Blocks for ``timeout_s`` at most; raises a Fault.

    ``call_timeout_s`` is told to the server with each request, however long connecting may take.
    """
    return connect(address, timeout_s, partial(lean_codec, transport, address, call_timeout_s))
