"""``python -m experiments.services.servicer --transport T …`` serves an unchanged servicer of gRPC's generated code.

The generated function ``add_GreeterServicer_to_server`` adds the servicer's methods to ``Added``, which stands in for a
server of grpcio. ``wrapped`` makes a service of these methods, and our server serves this service. The module supports
only the parts of gRPC that the study ``python_grpc_servers`` needs. These parts are methods with one request and one or
several replies, and the methods of ``grpc.ServicerContext`` about the current call. Left out: interceptors, and status
codes for which this project has no fault.
"""

import sys

from stock_service.rpc.process.beginning import begin

if __name__ == "__main__":
    begin()  # before the other imports, which take long

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import grpc
from google.protobuf.message import Message

from experiments import services
from experiments.helloworld import greeter_pb2_grpc
from experiments.helloworld.greeter_pb2 import HelloReply, HelloRequest
from experiments.services import __main__ as serving
from experiments.services.grpc_servers import TRIAL, Greeter, Handlers, trial_handlers
from stock_service.rpc.call import Call, Metadata
from stock_service.rpc.errors import coded
from stock_service.rpc.security import Right
from stock_service.rpc.service import Method, Service, StreamMethod

NAME = "greeter-servicer"


class Context:
    """Adapter that gives a call those methods of ``grpc.ServicerContext`` that the study needs."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    def invocation_metadata(self) -> Metadata:
        """Metadata of the request, as pairs of key and value."""
        return self._call.metadata

    def peer(self) -> str:
        """Address of the client that sent the request."""
        return self._call.peer

    def time_remaining(self) -> float | None:
        """Seconds until the call's deadline, at least 0. None for a call without a deadline."""
        deadline_ns = self._call.deadline_ns
        return None if deadline_ns is None else max(0.0, (deadline_ns - time.monotonic_ns()) / 1e9)

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        """Ends the call with a status code: raises the fault of this code."""
        raise coded(code.value[0], details)


class Added:
    """Stand-in for ``grpc.Server``: stores the methods that gRPC's generated code adds, and serves no client."""

    def __init__(self) -> None:
        self.name = ""
        self.handlers: Handlers = {}

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Does nothing, since generated code also adds these methods by ``add_registered_method_handlers``."""

    def add_registered_method_handlers(self, name: str, handlers: Handlers) -> None:
        """Stores the full name of a service, and the handlers of its methods by the methods' names."""
        self.name, self.handlers = name, handlers


def wrapped(name: str, handlers: Handlers, messages: Callable[[str], tuple[type[Message], type[Message]]]) -> Service:
    """Makes a service of our server from the handlers of methods with one request. Handlers of other methods are left
    out.

    ``name`` is the service's full name. ``messages`` gives the types of a method's request and reply.
    """
    methods, streams = dict[str, Method[Any, Any]](), dict[str, StreamMethod[Any, Any]]()
    for of, handler in handlers.items():
        if handler.unary_unary is not None:
            function = _of_call(handler.unary_unary)
            methods[f"/{name}/{of}"] = Method(*messages(of), function, wants_call=True, right=Right.ANYONE)
        elif handler.unary_stream is not None:
            streams[f"/{name}/{of}"] = StreamMethod(*messages(of), _of_call(handler.unary_stream), right=Right.ANYONE)
    return Service(name, methods, streams=streams)


def _of_call(behaviour: Callable[..., Any]) -> Callable[[Message, Call], Any]:
    """Makes a function for a method of our server. The function takes a request and a ``Call``, and calls
    ``behaviour``, the method of a servicer, with the request and a ``Context`` of the call.
    """
    return lambda request, call: behaviour(request, Context(call))


def greeter_servicer() -> Service:
    """Makes a service for our server. The service has the methods of the generated greeter's servicer, and the methods
    of ``TRIAL`` with one request.
    """
    added = Added()
    greeter_pb2_grpc.add_GreeterServicer_to_server(Greeter(), cast(grpc.Server, added))
    greeter, trial = (
        wrapped(name, handlers, lambda _: (HelloRequest, HelloReply))
        for name, handlers in ((added.name, added.handlers), (TRIAL, trial_handlers()))
    )
    return replace(greeter, methods={**greeter.methods, **trial.methods}, streams=trial.streams)


def main(arguments: Sequence[str]) -> None:
    """Serves the servicer until a signal, and then exits the process."""
    services.SERVICES[NAME] = f"{__name__}:greeter_servicer"  # this module is ``__main__``
    serving.main(["serve", NAME, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
