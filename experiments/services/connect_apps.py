"""The greeter as applications of connectrpc: ``wsgi`` and ``asgi``, in the form of connectrpc's generated code.

Both applications also serve the service ``TRIAL`` of ``grpc_servers.py``. The server pyvoy imports an application by
its name.
"""

from typing import Any

from connectrpc.compat import google_protobuf_codecs
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.server import ConnectASGIApplication, ConnectWSGIApplication, Endpoint, EndpointSync

from experiments.helloworld.greeter_pb2 import HelloReply, HelloRequest
from experiments.services.grpc_servers import (
    TRIAL,
    AwaitedGreeter,
    Greeter,
    awaited,
    several,
    several_on_loop,
    talked,
    talked_on_loop,
    waited,
)

GREETER = "helloworld.Greeter"


def _endpoints(kind: Any, greet: Any, wait: Any, stream: Any, talk: Any) -> dict[str, Any]:
    """Endpoints of the greeter's method and of the methods of ``TRIAL``, by path. ``kind`` is the class Endpoint or
    EndpointSync."""
    made = (
        (GREETER, "SayHello", StreamType.UNARY, kind.unary, greet),
        (TRIAL, "Wait", StreamType.UNARY, kind.unary, lambda request, context: wait(request, _left_s(context))),
        (TRIAL, "Several", StreamType.SERVER_STREAM, kind.server_stream, stream),
        (TRIAL, "Talk", StreamType.BIDI_STREAM, kind.bidi_stream, talk),
    )
    types = {"input": HelloRequest, "output": HelloReply, "idempotency_level": IdempotencyLevel.UNKNOWN}
    return {
        f"/{service}/{name}": add(
            method=MethodInfo(name=name, service_name=service, stream_type=stream, **types), function=function
        )
        for service, name, stream, add, function in made
    }


def _left_s(context: Any) -> float | None:
    """Seconds until the call's deadline, from connectrpc's context; None for a call without a deadline."""
    left_ms = context.timeout_ms
    return None if left_ms is None else left_ms / 1000


_PATH, _CODECS = {"path": f"/{GREETER}"}, google_protobuf_codecs()
_ON_LOOP = _endpoints(Endpoint, AwaitedGreeter().SayHello, awaited, several_on_loop, talked_on_loop)

wsgi = type("Wsgi", (ConnectWSGIApplication,), _PATH)(
    endpoints=_endpoints(EndpointSync, Greeter().SayHello, waited, several, talked), codecs=_CODECS
)
asgi = type("Asgi", (ConnectASGIApplication,), _PATH)(service=object(), endpoints=lambda _: _ON_LOOP, codecs=_CODECS)
