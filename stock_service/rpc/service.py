"""An RPC service, independent of any transport.

A ``Service`` maps the full names of methods to methods. A transport serves any service, and imports no service. A
``Method`` knows the types of its messages. So a transport only finds the method by name, and gives it the bytes of a
protobuf message. A transport that speaks JSON first converts JSON to these bytes (``message_json.py``). Only this
module decodes the bytes, so undecodable bytes are INVALID_ARGUMENT on every transport.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar, cast

from google.protobuf.message import DecodeError, Message
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from stock_service.rpc.call import Call
from stock_service.rpc.decoding import decoder
from stock_service.rpc.errors import InvalidRequest
from stock_service.rpc.health import CHECK, Health
from stock_service.rpc.metering import metered, metered_on_loop, metered_stream, outcomes_of
from stock_service.rpc.metrics import Meter, Metrics
from stock_service.rpc.security import Right
from stock_service.rpc.waiting import Flush

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

Answer = Callable[[bytes], bytes]
"""Method as a function from an encoded request to an encoded response. Raises a Fault."""

CallAnswer = Callable[[Call], bytes]
"""Method as a function from a call to an encoded response. Raises a Fault."""

StreamAnswer = Callable[[Call], Iterator[bytes]]
"""Method as a function from a call to an iterator of encoded replies. The iterator may raise a Fault."""

AwaitedAnswer = Callable[[Call], Awaitable[bytes]]
"""Method as a coroutine function from a call to an encoded response. Raises a Fault."""


@dataclass(frozen=True, slots=True)
class Route:
    """Address of a method in HTTP: a verb and a path, such as ``Route("PUT", "/entities/{id}")``.

    A part of the path in braces is a variable: it fills the request's field with the same name. The body, in JSON,
    fills the other fields.
    """

    verb: str
    path: str


@dataclass(frozen=True, slots=True)
class Method(Generic[Request, Response]):
    """One method of a service: the types of request and response, and the function from a request to a response.

    ``function`` may raise a Fault, and must be thread-safe. If ``wants_call`` is True, ``function`` gets the ``Call``
    as its second argument. ``route`` is the method's address on HTTP, with messages in JSON. ``on_loop`` is for a
    ``function`` that waits: a coroutine function with the same effect. Only transports with an event loop use
    ``on_loop``: the event loop serves other calls during the wait. ``right`` is the right that a caller needs on a
    server with access control.
    """

    request_type: type[Request]
    response_type: type[Response]
    function: Callable[[Request], Response] | Callable[[Request, Call], Response]
    wants_call: bool = False
    route: Route | None = None
    on_loop: Callable[[Request], Awaitable[Response]] | Callable[[Request, Call], Awaitable[Response]] | None = None
    right: Right = Right.ADMIN
    meter: Meter | None = None
    """Meter that counts the method's requests; None for a server without metrics."""

    def answer(self) -> Answer:
        """Returns the method as a function from an encoded request to an encoded reply. ``wants_call`` must be False.
        Call ``answer`` once, before serving.

        The returned function raises InvalidRequest for bytes that do not decode.
        """
        assert not self.wants_call
        return self._answering()

    def answer_call(self) -> CallAnswer:
        """Returns the method as a function of a ``Call``, for any method. Otherwise like ``answer``."""
        answer = self._answering()
        if not self.wants_call:
            return lambda call: answer(call.payload)
        function = cast(Callable[..., Response], self.function)
        return lambda call: answer(call.payload, lambda request: function(request, call))

    def _answering(self) -> Callable[..., bytes]:
        """Returns the method as a function from an encoded request to an encoded reply. The returned function may get a
        second argument: a function to call instead of ``function``.
        """
        decode: Callable[[bytes], Request] = decoder(self.request_type)
        function = cast(Callable[[Request], Response], self.function)
        if self.meter is not None:
            return metered(decode, function, self.meter, partial(_undecodable, request_type=self.request_type))

        def answer(payload: bytes, function: Callable[[Request], Response] = function) -> bytes:
            try:
                request = decode(payload)
            except DecodeError as error:
                raise _undecodable(payload, self.request_type) from error
            return function(request).SerializeToString()

        return answer

    def answer_on_loop(self) -> AwaitedAnswer:
        """Returns the method as a coroutine function of a ``Call``. ``on_loop`` must not be None. Otherwise like
        ``answer``.
        """
        assert self.on_loop is not None
        decode = _strict_decoder(self.request_type)
        on_loop = cast(Callable[..., Awaitable[Response]], self.on_loop)
        wants_call = self.wants_call
        if self.meter is not None:
            counted = metered_on_loop(decode, on_loop, self.meter)
            if not wants_call:
                return lambda call: counted(call.payload)
            return lambda call: counted(call.payload, lambda request: on_loop(request, call))

        async def answer_on_loop(call: Call) -> bytes:
            request = decode(call.payload)
            reply = await (on_loop(request, call) if wants_call else on_loop(request))
            return reply.SerializeToString()

        return answer_on_loop


@dataclass(frozen=True, slots=True)
class StreamMethod(Generic[Request, Response]):
    """A method that answers a request with several replies. When a reply was sent, the server asks ``function`` for the
    next reply.

    ``function`` may be a generator. If the client ends the call early, the thread that notices this end closes the
    generator. The generator must then end quickly. If ``talks`` is True, a client may send several requests in one
    call; the server answers the requests one after the other. ``right`` is the right that a caller needs, as for a
    ``Method``.
    """

    request_type: type[Request]
    response_type: type[Response]
    function: Callable[[Request, Call], Iterator[Response]]
    talks: bool = False
    right: Right = Right.ADMIN
    meter: Meter | None = None
    """Meter that counts each request of a call; None for a server without metrics."""

    def answer_stream(self) -> StreamAnswer:
        """Returns the method as a function of a ``Call``. Call ``answer_stream`` once, before serving. The returned
        function's iterator raises InvalidRequest for bytes that do not decode.
        """
        decode = _strict_decoder(self.request_type)
        if self.meter is not None:
            return metered_stream(decode, self.function, self.meter)

        def answer(call: Call) -> Iterator[bytes]:
            for reply in self.function(decode(call.payload), call):
                yield reply.SerializeToString()

        return answer


@dataclass(frozen=True, slots=True)
class Service:
    """A service. ``name`` is the protobuf service's full name. ``methods`` maps ``/name/Method`` to the method.

    ``streams`` has the methods with several replies, by path. Only the transport ``grpc_static`` serves such methods.
    ``flush`` is for a service whose requests may wait without a thread (``waiting.py``), and None for other services. A
    server that lets requests wait calls ``flush``, on any thread, when it has begun all requests that it has read.
    ``health`` tells if the server serves now; None for a service that is always well.
    """

    name: str
    methods: Mapping[str, Method[Any, Any]]
    flush: Flush | None = None
    streams: Mapping[str, StreamMethod[Any, Any]] = field(default_factory=dict)
    health: Health | None = None

    def with_health(self) -> "Service":
        """Returns this service with ``health``, and with the health service's method Check."""
        health = self.health or Health(self.name)
        check = Method(HealthCheckRequest, HealthCheckResponse, health.check, right=Right.ANYONE)
        return replace(self, methods={**self.methods, CHECK: check}, health=health)

    def rights(self) -> dict[bytes, Right]:
        """Returns the right that each method needs, by the method's path."""
        needed = {path.encode(): method.right for path, method in self.methods.items()}
        return needed | {path.encode(): method.right for path, method in self.streams.items()}

    def counted(self, metrics: Metrics) -> "Service":
        """Returns this service with a meter for each method. Call ``counted`` before serving."""
        methods = {
            path: replace(method, meter=metrics.meter(path, outcomes_of(method.response_type.DESCRIPTOR)))
            for path, method in self.methods.items()
        }
        streams = {path: replace(stream, meter=metrics.meter(path, {})) for path, stream in self.streams.items()}
        return replace(self, methods=methods, streams=streams)


def _strict_decoder(request_type: type[Request]) -> Callable[[bytes], Request]:
    """Makes a decoder that raises InvalidRequest. ``answer`` does not use this decoder, to save one function call for
    each request.
    """
    decode: Callable[[bytes], Request] = decoder(request_type)

    def decode_strictly(payload: bytes) -> Request:
        try:
            return decode(payload)
        except DecodeError as error:
            raise _undecodable(payload, request_type) from error

    return decode_strictly


def _undecodable(payload: bytes, request_type: type[Message]) -> InvalidRequest:
    return InvalidRequest(f"{len(payload)} bytes that are no {request_type.DESCRIPTOR.full_name}")
