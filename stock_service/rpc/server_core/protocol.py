"""Interface of a protocol on the server core: bytes to requests, and requests to the bytes of their replies. No I/O.

This module also has a service's methods as functions of bytes, for any protocol, with their timeline and counts.

Every protocol's ``answer`` calls ``answered``. No function here raises, except ``Waiting`` on a server that lets
requests wait.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from stock_service.rpc.call import NO_METADATA, Call, Metadata, ReplyMetadata
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.metrics import Meter, Metrics
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.service import Answer, CallAnswer, Service
from stock_service.rpc.timeline import NO_METHOD, Timeline
from stock_service.rpc.waiting import Flush, Waiting
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.served_stream import RequestDecoder

Request = TypeVar("Request")
"""A request, as a protocol cuts it from a stream."""


class WireProtocol(Protocol[Request]):
    """Protocol of one server, whose connections are streams of bytes. Any thread may call the methods, which never
    raise. A decoder is for one thread.
    """

    def answer(self, request: Request, arrived_ns: int, peer: Address) -> bytes:
        """Reply to a request, or a fault. ``arrived_ns`` is the time of its reading, on ``time.monotonic_ns``."""

    def path(self, request: Request) -> bytes | None:
        """Path of the method that a request names, ``/package.Service/Method``; other bytes for an unknown method. None
        for a method of the protocol itself, which no timeline records.
        """

    def refusal(self, request: Request, code: FaultCode, detail: str) -> bytes:
        """Reply to a request that is refused."""

    def decoder(self) -> RequestDecoder[Request]:
        """Decoder of a new connection, which cuts its bytes into requests. For the thread that reads them."""

    def timeout_ms(self, request: Request) -> int:
        """Time limit of a request, in milliseconds; 0 for a request without a time limit."""

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """Last bytes of a connection that is closed with a fault."""

    def goodbye(self) -> bytes:
        """Last bytes of a connection that the server ends when no reply is missing. The bytes may be empty.

        The goodbye tells the client that no other request was begun.
        """

    def objection(self, error: FramingError) -> bytes:
        """Last bytes of a connection whose client has sent bytes that are no request."""


_log = logging.getLogger(__name__)

OK = 0
"""The code of an answer; any other code is a ``FaultCode``."""

Answering = Callable[[Request, int, Address], bytes]
"""The function ``WireProtocol.answer``, or the function that ``stamping`` makes from ``answer``."""


@dataclass(frozen=True, slots=True)
class Methods:
    """A service's methods by their names in bytes. ``plain`` methods take a request alone, ``calling`` methods take a
    call.
    """

    plain: Mapping[bytes, Answer]
    calling: Mapping[bytes, CallAnswer]
    flush: Flush | None = None
    """The service's ``flush``."""
    meters: Mapping[bytes, Meter] = field(default_factory=dict)
    """Meters of the methods whose requests are counted."""

    def answered(
        self,
        name: bytes,
        payload: bytes,
        timeout_ms: int,
        arrived_ns: int,
        peer: Address,
        metadata: Metadata = NO_METADATA,
        said: ReplyMetadata | None = None,
    ) -> tuple[int, bytes]:
        """``OK`` and the response message of a request, or a fault's code and its detail; never raises.

        ``arrived_ns`` is the time of the request's reading, on ``time.monotonic_ns``: a handler does not start after
        the client has given up, ``timeout_ms`` later (0: never). ``peer`` is the client's address. ``said`` takes the
        method's metadata.
        """
        try:
            if timeout_ms and time.monotonic_ns() - arrived_ns > timeout_ms * 1_000_000:
                if name in self.meters:
                    self.meters[name].missed()
                return FaultCode.DEADLINE_EXCEEDED, f"not begun within {timeout_ms} ms".encode()
            method = self.plain.get(name)
            if method is not None:
                return OK, method(payload)
            calling = self.calling.get(name)
            if calling is None:
                return FaultCode.UNIMPLEMENTED, f"no method {name.decode(errors='backslashreplace')!r}".encode()
            deadline_ns = arrived_ns + timeout_ms * 1_000_000 if timeout_ms else None
            return OK, calling(Call(payload, shown_address(peer), deadline_ns, metadata, said))
        except BaseException as error:  # SystemExit too: every request gets its reply
            return failure(name, error)


def failure(name: bytes, error: BaseException) -> tuple[int, bytes]:
    """The fault's code and text for an exception of a handler. Logs an exception that is not a Fault. Raises
    ``Waiting`` again.
    """
    if isinstance(error, Waiting):
        try:
            raise error
        finally:
            del error  # breaks the circle of the error and this frame, so that the garbage collector need not
    if isinstance(error, Fault):
        return error.code, error.detail.encode(errors="replace")
    _log.error("the handler of %r raised", name, exc_info=error)
    return FaultCode.INTERNAL, b"the handler failed; the server's log says why"


def methods_of(service: Service) -> Methods:
    """The methods of a service as functions of bytes."""
    methods = {path.encode(): method for path, method in service.methods.items()}
    return Methods(
        {name: method.answer() for name, method in methods.items() if not method.wants_call},
        {name: method.answer_call() for name, method in methods.items() if method.wants_call},
        service.flush,
        {name: method.meter for name, method in methods.items() if method.meter is not None},
    )


def stamping(timeline: Timeline, methods: Methods, protocol: WireProtocol[Request]) -> Answering[Request]:
    """Wraps the protocol's ``answer``: a timeline also notes when the thread begins a request and when the reply is
    ready.

    ``arrived_ns`` is noted as accepted: ``time.monotonic_ns`` is the timeline's clock, too. The caller of ``answer``
    notes when the reply was sent.
    """
    local = timeline.local
    numbers = {name: timeline.method_number(name.decode()) for name in (*methods.plain, *methods.calling)}

    def answer_stamped(request: Request, arrived_ns: int, peer: Address) -> bytes:
        stamper = local.stamper
        stamper.begin(arrived_ns)
        reply = protocol.answer(request, arrived_ns, peer)
        path = protocol.path(request)
        if path is not None:
            stamper.handled(numbers.get(path, NO_METHOD))
        return reply

    return answer_stamped


class CountedRefusals(Generic[Request]):
    """A protocol that counts its refusals, of requests and of connections; see ``WireProtocol``."""

    def __init__(self, protocol: WireProtocol[Request], metrics: Metrics) -> None:
        self._protocol = protocol
        self._refused = metrics.refused
        self.answer, self.path, self.timeout_ms = protocol.answer, protocol.path, protocol.timeout_ms
        self.decoder, self.goodbye = protocol.decoder, protocol.goodbye

    def refusal(self, request: Request, code: FaultCode, detail: str) -> bytes:
        """The protocol's refusal, counted."""
        self._refused("request", code.name)
        return self._protocol.refusal(request, code, detail)

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """The protocol's farewell, counted."""
        self._refused("connection", code.name)
        return self._protocol.farewell(code, detail)

    def objection(self, error: FramingError) -> bytes:
        """The protocol's objection, counted."""
        self._refused("connection", error.code.name)
        return self._protocol.objection(error)
