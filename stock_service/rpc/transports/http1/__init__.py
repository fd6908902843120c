"""The http1 transport: HTTP/1.1 without a library. A connection has one request at a time.

A client calls a method by ``POST /package.Service/Method``, with a message in protobuf (``application/protobuf``, or
``x-protobuf``) or in JSON (``application/json``). A method with a route (``service.Route``) can also be called by its
route, in JSON. The server answers a connection's requests one at a time, in their order. A client states its time limit
in the header field ``Timeout-Ms``, and shows a token in ``Authorization: Bearer TOKEN``.

Limits, besides the executor's, each with the HTTP status of its responses: ``connections_max`` (429),
``frame_bytes_max`` for a body (413), 8 KiB for a head (431), ``read_timeout_s`` for an unfinished request (408),
``idle_timeout_s``. The server closes a connection that exceeds one of these limits. Before the close the server reads
and drops the client's bytes for a while. Otherwise a reset could destroy the response. If a browser sends a request for
a page of another site, the server refuses the request. The server recognises such requests by ``Content-Type``,
``Origin`` and ``Host`` (README.md). Left out: compression, ranges, and any request that is not a call of a method.
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
    """Starts a listening server. Raises OSError if the server cannot listen."""
    own: ReadOptions = options.own or ReadOptions()
    service = service.with_health()
    methods = methods_of(service)
    in_order = replace(options, pipeline_max=1)
    protocol = guarded(Http(service, methods, options), options.access, service)
    return RequestServer(methods, protocol, executor, in_order, own)


def connect(address: Address, timeout_s: float, credentials: ClientCredentials = NO_CREDENTIALS) -> Connection:
    """Opens a connection, as ``transports.Transport.connect`` describes."""
    new_codec = partial(HttpCodec, address, credentials.token, credentials.metadata)
    return CodecConnection(address, new_codec, credentials.context(TLS_PROTOCOLS)).open(timeout_s)


def null_answers(reply: bytes) -> Callable[[], HttpNull]:
    """Returns a function that makes the null server's codecs: every request gets ``reply``."""
    response = encode_response(200, PROTOBUF, reply)
    return lambda: HttpNull(response)
