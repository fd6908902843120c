"""The jsonrpc transport: JSON-RPC 1.0 over TCP, as Go's ``net/rpc/jsonrpc`` speaks it.

A request is ``{"method": "Service.Method", "params": [MESSAGE], "id": NUMBER}`` and its reply ``{"id": NUMBER,
"result": MESSAGE, "error": null}``; an error is a text, ``CODE: detail``. A message is an object of its fields
(``message_json.py``). It may also be a text: its bytes of protobuf in base64; its reply then is one too. So a client
that does not know the types can call any method. ``"timeout_ms"`` beside the id says how long the client waits, which
Go's client never says.

Many requests may be under way on a connection; replies come in any order. Limits, besides the executor's, are those of
sockets; ``frame_bytes_max`` is for the message, and its text may be a third longer. Left out: notifications.
"""

from collections.abc import Callable

from stock_service.rpc import codec_connection
from stock_service.rpc.concurrency import Executor
from stock_service.rpc.server_core.options import ReadOptions, add_read_options, only_loopback, read_options
from stock_service.rpc.server_core.protocol import methods_of
from stock_service.rpc.server_core.reactor import RequestServer
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, Connection, ServeOptions, Server
from stock_service.rpc.transports.jsonrpc.codec import JsonRpcCodec, JsonRpcNull
from stock_service.rpc.transports.jsonrpc.requests import JsonRpc
from stock_service.rpc.wire.codec import Codec

__all__ = [
    "DEFAULT_EXECUTOR",
    "DEFAULT_PORT",
    "LABEL",
    "REFUSED_EXECUTORS",
    "SHARES_PORT",
    "TAKES_LISTENER",
    "TLS_PROTOCOLS",
    "add_options",
    "codec",
    "connect",
    "null_answers",
    "own_options",
    "serve",
]

LABEL = "JSON-RPC"
DEFAULT_PORT = 50081
DEFAULT_EXECUTOR = "static-pool"
REFUSED_EXECUTORS: dict[str, str] = {}
TLS_PROTOCOLS = None
SHARES_PORT = True
TAKES_LISTENER = True

add_options = add_read_options
own_options = read_options


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """A server that listens when this returns, on a loopback address.

    Raises OSError where it cannot, UsageError for another address.
    """
    only_loopback("jsonrpc", options.host)
    own = options.own or ReadOptions()
    assert isinstance(own, ReadOptions), f"the options of another transport: {own}"
    service = service.with_health()
    methods = methods_of(service)
    return RequestServer(methods, JsonRpc(service, methods, options.frame_bytes_max), executor, options, own)


def connect(address: Address, timeout_s: float) -> Connection:
    """A connection that is made when this returns. Blocks for ``timeout_s`` at most.

    Raises Unavailable, or DeadlineExceeded where the server's host does not answer.
    """
    return codec_connection.connect(address, timeout_s, JsonRpcCodec)


def codec(_address: Address, timeout_s: float) -> Codec:
    """What a new connection of the lean client speaks."""
    return JsonRpcCodec(timeout_s)


def null_answers(reply: bytes) -> Callable[[], JsonRpcNull]:
    """What answers every request of a connection with this message, as text in base64."""
    return lambda: JsonRpcNull(reply)
