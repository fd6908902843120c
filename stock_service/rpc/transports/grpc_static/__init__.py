"""The project's own gRPC transport: HTTP/2 without a library, on the server core, with grpcio's client.

``serve`` starts the server: the core's reading thread cuts bytes into calls (``wire/grpc_session.py``). The executor's
threads answer the calls (``requests.py``). With ``leader-followers`` the reading thread itself answers short calls. The
server also has the standard health service and server reflection, v1alpha and v1. The codec and the null server are the
same for every transport that speaks gRPC.

Limits, besides the executor's: ``connections_max``, ``frame_bytes_max`` (of a message; a larger one is
RESOURCE_EXHAUSTED), ``idle_timeout_s``, ``pipeline_max`` (calls of one connection at a time), and its own
``read_timeout_s``.

This transport alone carries a service's ``streams``, and metadata of a reply (``call.ReplyMetadata``). A call with
several replies holds no worker between two replies: the server asks for the next reply once the last reply has left.

Left out: a call with several request messages, unless each reply answers one request message.
"""

from dataclasses import replace

from stock_service.rpc import grpcio
from stock_service.rpc.concurrency import Executor
from stock_service.rpc.server_core.options import ReadOptions, add_read_options, read_options
from stock_service.rpc.service import Service
from stock_service.rpc.transports import ServeOptions, Server

LABEL = "gRPC, our own"
DEFAULT_PORT = 50056
DEFAULT_EXECUTOR = "leader-followers"
REFUSED_EXECUTORS: dict[str, str] = {}
TLS_PROTOCOLS = ("h2",)
TAKES_LISTENER = True

add_options = add_read_options
own_options = read_options
codec, null_answers = grpcio.codec, grpcio.null_answers
__getattr__ = grpcio.loaded  # gives ``connect``

_RESETS = 4
"""Factor: for each call that may be open on a connection, the executor may have this number of calls, since reset calls
also count.
"""


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """Starts a server, which listens when this returns. Raises OSError if it cannot listen."""
    from stock_service.rpc.health import WATCH
    from stock_service.rpc.reflection import reflection
    from stock_service.rpc.security import Right
    from stock_service.rpc.server_core.guarding import guarded
    from stock_service.rpc.server_core.protocol import methods_of
    from stock_service.rpc.server_core.reactor import RequestServer
    from stock_service.rpc.transports.grpc_static.requests import GrpcRequests

    own: ReadOptions = options.own or ReadOptions()
    service = replace(service.with_health(), streams={**service.streams, **reflection(service.name)})
    methods = methods_of(service)
    protocol = GrpcRequests(service, methods, options.frame_bytes_max, options.pipeline_max)
    unpaused = replace(options, pipeline_max=_RESETS * options.pipeline_max)
    closed = guarded(protocol, options.access, service, {WATCH.encode(): Right.ANYONE})
    server = RequestServer(methods, closed, executor, unpaused, own, sessions=protocol.decoder)
    assert service.health is not None
    service.health.tell(server.renew)
    return server
