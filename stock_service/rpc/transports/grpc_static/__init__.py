"""The transport ``grpc_static``, the project's own gRPC server: HTTP/2 without a library, on the server core.

``serve`` starts the server. The core's reading thread cuts bytes into calls (``wire/grpc_session.py``). The executor's
threads answer the calls (``requests.py``). With the executor ``leader-followers``, the reading thread itself answers
short calls. The server also has the standard health service, and server reflection (v1alpha and v1). The client is
grpcio's. All gRPC transports have the same client, codec and null server.

Limits, besides the executor's: ``connections_max``, ``frame_bytes_max`` (a call with a larger message gets
RESOURCE_EXHAUSTED), ``idle_timeout_s``, ``pipeline_max`` (calls of one connection at a time), and the transport's own
``read_timeout_s``.

Only this transport supports a service's ``streams``, and metadata in replies (``call.ReplyMetadata``). In a call with
several replies, the server asks the method for a reply once the previous reply was sent. Between two replies the call
occupies no worker.

Left out: calls in which several request messages together get one reply.
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
"""The core's limit of a connection's requests under way, divided by ``pipeline_max`` (the limit of open calls). The
core also counts requests whose call was reset.
"""


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """Starts a listening server. Raises OSError if the server cannot listen."""
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
