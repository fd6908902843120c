"""The http1 transport: HTTP/1.1 without a library, one request after the other on a connection.

Serves ``POST /package.Service/Method`` with a message in protobuf (``application/protobuf``, or ``x-protobuf``) or in
JSON (``application/json``), and the routes of methods that have one, in JSON. Replies come in the order of the
requests: only one of the pipelined requests is under way at a time. A client gives its time limit in ``Timeout-Ms``.

Limits, besides the executor's: ``connections_max`` (429), ``frame_bytes_max`` for a body (413), 8 KiB for a head (431),
``read_timeout_s`` for a request to be whole (408), ``idle_timeout_s``. When one of these limits is exceeded, the
connection is closed. Before the close the server reads and drops the client's bytes for a while, so that no reset
destroys the status. The server refuses a request that a browser sends for a page of another site, by ``Content-Type``,
``Origin`` and ``Host`` (README.md). A client shows a token in ``Authorization: Bearer TOKEN``. Left out: compression,
ranges, and any request that is not a call of a method.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from stock_service.rpc.codec_connection import CodecConnection
from stock_service.rpc.concurrency import Executor
from stock_service.rpc.server_core.guarding import guarded
from stock_service.rpc.server_core.options import ReadOptions, add_read_options, read_options
from stock_service.rpc.server_core.protocol import methods_of
from stock_service.rpc.server_core.reactor import RequestServer
from stock_service.rpc.service import Service
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials
from stock_service.rpc.transports import Address, Connection, ServeOptions, Server
from stock_service.rpc.transports.http1.codec import HttpCodec, HttpNull
from stock_service.rpc.transports.http1.requests import Http
from stock_service.rpc.wire.http1_status import PROTOBUF, encode_response

LABEL = "HTTP/1.1"
DEFAULT_PORT = 50080
DEFAULT_EXECUTOR = "leader-followers"
REFUSED_EXECUTORS: dict[str, str] = {}
TLS_PROTOCOLS = ("http/1.1",)
TAKES_LISTENER = True

add_options = add_read_options
own_options = read_options
codec = HttpCodec


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """Starts a server, which listens when this returns. Raises OSError if it cannot listen."""
    own: ReadOptions = options.own or ReadOptions()
    service = service.with_health()
    methods = methods_of(service)
    in_order = replace(options, pipeline_max=1)
    protocol = guarded(Http(service, methods, options), options.access, service)
    return RequestServer(methods, protocol, executor, in_order, own)


def connect(address: Address, timeout_s: float, credentials: ClientCredentials = NO_CREDENTIALS) -> Connection:
    """Opens a connection. Blocks until the connection is made, for ``timeout_s`` at most.

    Raises Unavailable, or DeadlineExceeded where the server's host does not answer; UsageError for credentials that
    cannot be used.
    """
    new_codec = partial(HttpCodec, address, credentials.token, credentials.metadata)
    return CodecConnection(address, new_codec, credentials.context(TLS_PROTOCOLS)).open(timeout_s)


def null_answers(reply: bytes) -> Callable[[], HttpNull]:
    """Returns a factory of a connection's answers: ``reply`` to every request."""
    response = encode_response(200, PROTOBUF, reply)
    return lambda: HttpNull(response)
