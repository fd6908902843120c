"""An RPC service free of any transport.

A ``Service`` maps full method names to methods. A transport serves any service, and imports none. A ``Method`` has the
types of its messages, so that the method's name is enough to decode and encode. On any transport a method gets the
bytes of a protobuf message; a transport that speaks JSON converts JSON to such bytes (``message_json.py``). Decoding
happens here, once, so that undecodable bytes are INVALID_ARGUMENT everywhere.
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
"""Function of a method, from an encoded request to an encoded response. Raises a Fault."""

CallAnswer = Callable[[Call], bytes]
"""A method from a call to an encoded response; raises a Fault."""

StreamAnswer = Callable[[Call], Iterator[bytes]]
"""A method from a call to several encoded replies; asking for the next reply may raise a Fault."""

AwaitedAnswer = Callable[[Call], Awaitable[bytes]]
"""A method from a call to an encoded response, on an event loop; raises a Fault."""


@dataclass(frozen=True, slots=True)
class Route:
    """A method's address on transports that have routes: an HTTP verb and a path, ``Route("PUT", "/entities/{id}")``.

    A part of the path in braces is a variable: it fills the request's field of that name. Fields that no variable
    fills come from the body, in JSON.
    """

    verb: str
    path: str


@dataclass(frozen=True, slots=True)
class Method(Generic[Request, Response]):
    """One method: its request and response types, and the function from request to response, which may raise a Fault.

    Any number of threads may call ``function`` at once. With ``wants_call``, the ``Call`` is the second argument of
    ``function``. ``route`` is the method's address, with messages in JSON, on transports with routes. ``on_loop`` is
    for a ``function`` that waits: a coroutine function with the same effect, so that an event loop serves other calls
    during the wait. Only transports with an event loop use ``on_loop``. ``right`` is the right that a caller needs on a
    server that knows its callers.
    """

    request_type: type[Request]
    response_type: type[Response]
    function: Callable[[Request], Response] | Callable[[Request, Call], Response]
    wants_call: bool = False
    route: Route | None = None
    on_loop: Callable[[Request], Awaitable[Response]] | Callable[[Request, Call], Awaitable[Response]] | None = None
    right: Right = Right.ADMIN
    meter: Meter | None = None
    """Meter that counts the method's requests; None for a method without counts."""

    def answer(self) -> Answer:
        """The method as a function of bytes, for a method that wants no call. Make this function once, before serving.

        The answer raises InvalidRequest for bytes that do not decode.
        """
        assert not self.wants_call
        return self._answering()

    def answer_call(self) -> CallAnswer:
        """The method as a function of a call, for any method; otherwise like ``answer``."""
        answer = self._answering()
        if not self.wants_call:
            return lambda call: answer(call.payload)
        function = cast(Callable[..., Response], self.function)
        return lambda call: answer(call.payload, lambda request: function(request, call))

    def _answering(self) -> Callable[..., bytes]:
        """The method as a function of bytes. The second argument is a function to call instead of ``function``."""
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
        """For a method with ``on_loop``, a coroutine function of a call; for any other method, the function of
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
    """A method that answers a request with several messages, one by one as the client takes them.

    ``function`` may be a generator. If the client leaves, the thread that notices this closes the generator: the
    generator must then end quickly. With ``talks`` a client may send several requests in one call; the server answers
    them one after the other. ``right`` is the same as for a ``Method``.
    """

    request_type: type[Request]
    response_type: type[Response]
    function: Callable[[Request, Call], Iterator[Response]]
    talks: bool = False
    right: Right = Right.ADMIN
    meter: Meter | None = None
    """Meter, as for a ``Method``; each request of a call is counted."""

    def answer_stream(self) -> StreamAnswer:
        """The method as a function of bytes. Make this function once, before serving. The function raises
        InvalidRequest for bytes that do not decode.
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
    """A service. ``name`` is the protobuf service's full name; ``methods`` maps ``/name/Method`` to the method.

    ``streams`` are the methods with several replies. Only the transport ``grpc_static`` serves such methods. ``flush``
    is for a service whose requests may wait without a thread (``waiting.py``), and None for other services. A server
    that lets requests wait calls ``flush``, on any thread, once the server has begun all requests that it has read.
    ``health`` tells if the server serves now; None means always.
    """

    name: str
    methods: Mapping[str, Method[Any, Any]]
    flush: Flush | None = None
    streams: Mapping[str, StreamMethod[Any, Any]] = field(default_factory=dict)
    health: Health | None = None

    def with_health(self) -> "Service":
        """The same service with ``health``, and with the method Check, by which clients ask for the health."""
        health = self.health or Health(self.name)
        check = Method(HealthCheckRequest, HealthCheckResponse, health.check, right=Right.ANYONE)
        return replace(self, methods={**self.methods, CHECK: check}, health=health)

    def rights(self) -> dict[bytes, Right]:
        """Right that each method needs, by its path."""
        needed = {path.encode(): method.right for path, method in self.methods.items()}
        return needed | {path.encode(): method.right for path, method in self.streams.items()}

    def counted(self, metrics: Metrics) -> "Service":
        """The same service with counts of its requests. Call this before serving."""
        methods = {
            path: replace(method, meter=metrics.meter(path, outcomes_of(method.response_type.DESCRIPTOR)))
            for path, method in self.methods.items()
        }
        streams = {path: replace(stream, meter=metrics.meter(path, {})) for path, stream in self.streams.items()}
        return replace(self, methods=methods, streams=streams)


def _strict_decoder(request_type: type[Request]) -> Callable[[bytes], Request]:
    """A decoder that raises InvalidRequest. ``answer`` does not use it, to save one function call in the hot path."""
    decode: Callable[[bytes], Request] = decoder(request_type)

    def decode_strictly(payload: bytes) -> Request:
        try:
            return decode(payload)
        except DecodeError as error:
            raise _undecodable(payload, request_type) from error

    return decode_strictly


def _undecodable(payload: bytes, request_type: type[Message]) -> InvalidRequest:
    return InvalidRequest(f"{len(payload)} bytes that are no {request_type.DESCRIPTOR.full_name}")
