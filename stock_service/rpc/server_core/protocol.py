"""What the server core asks of a protocol: bytes to requests, and requests to the bytes of their replies. No I/O.

A request's bytes to its reply's, whatever the protocol; and the timeline of it.

``answered`` is what every protocol's ``answer`` ends in. Nothing here raises, but ``Waiting`` where the server lets
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
"""A request as a protocol cuts it from a stream."""


class WireProtocol(Protocol[Request]):
    """One server's, whose connections are streams of bytes. Any thread may call its methods, and none of them raises.

    A decoder alone is one thread's.
    """

    def answer(self, request: Request, arrived_ns: int, peer: Address) -> bytes:
        """A request's reply, a fault where it has no outcome. ``arrived_ns``: read when, on ``time.monotonic_ns``."""

    def path(self, request: Request) -> bytes | None:
        """The method that a request names, ``/package.Service/Method``; anything else for none of the service.

        None: it is one of the protocol's own, which a timeline leaves out.
        """

    def refusal(self, request: Request, code: FaultCode, detail: str) -> bytes:
        """A reply to a request that is not answered."""

    def decoder(self) -> RequestDecoder[Request]:
        """What cuts a new connection's bytes into requests. For the thread that reads them."""

    def timeout_ms(self, request: Request) -> int:
        """How long a request says that its client waits, in milliseconds; 0: it does not."""

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """What to say about the connection, which is then closed."""

    def goodbye(self) -> bytes:
        """What is said last where the server ends a connection that owes no reply; empty: nothing.

        It says that no other request was begun.
        """

    def objection(self, error: FramingError) -> bytes:
        """The same about bytes that are no request."""


_log = logging.getLogger(__name__)

OK = 0
"""The code of an answer; any other is a ``FaultCode``."""

Answering = Callable[[Request, int, Address], bytes]
"""``WireProtocol.answer``, or what ``stamping`` makes of it."""


@dataclass(frozen=True, slots=True)
class Methods:
    """A service's methods by the bytes that name them on the wire: those of a request alone, and those of a call."""

    plain: Mapping[bytes, Answer]
    calling: Mapping[bytes, CallAnswer]
    flush: Flush | None = None
    """The service's own."""
    meters: Mapping[bytes, Meter] = field(default_factory=dict)
    """What counts their requests, of those that are counted."""

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
        """A request's ``OK`` and response message, or a fault's code and its detail; never raises.

        ``arrived_ns`` is when the request was read, on ``time.monotonic_ns``: a handler does not start once the client
        has given up, ``timeout_ms`` later (0: never). ``peer`` is whom it was read from.
        ``said`` is for what the method says besides.
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
    """A handler's exception as a fault's code and text. Logs it where it is no Fault. Raises ``Waiting`` again."""
    if isinstance(error, Waiting):
        try:
            raise error
        finally:
            del error  # it has this frame: the two would be a circle, which only a collection ends
    if isinstance(error, Fault):
        return error.code, error.detail.encode(errors="replace")
    _log.error("the handler of %r raised", name, exc_info=error)
    return FaultCode.INTERNAL, b"the handler failed; the server's log says why"


def methods_of(service: Service) -> Methods:
    """A service's methods as they are answered."""
    methods = {path.encode(): method for path, method in service.methods.items()}
    return Methods(
        {name: method.answer() for name, method in methods.items() if not method.wants_call},
        {name: method.answer_call() for name, method in methods.items() if method.wants_call},
        service.flush,
        {name: method.meter for name, method in methods.items() if method.meter is not None},
    )


def stamping(timeline: Timeline, methods: Methods, protocol: WireProtocol[Request]) -> Answering[Request]:
    """The protocol's ``answer``, noting in a timeline that the thread begins with a request and has its reply.

    ``arrived_ns`` is what is noted as accepted: ``time.monotonic_ns`` is the timeline's clock, too. That the reply was
    given away is for the caller to note.
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
    """A protocol whose refusals are counted, of requests and of connections; see ``protocol.WireProtocol``."""

    def __init__(self, protocol: WireProtocol[Request], metrics: Metrics) -> None:
        self._protocol = protocol
        self._refused = metrics.refused
        self.answer, self.path, self.timeout_ms = protocol.answer, protocol.path, protocol.timeout_ms
        self.decoder, self.goodbye = protocol.decoder, protocol.goodbye

    def refusal(self, request: Request, code: FaultCode, detail: str) -> bytes:
        """The protocol's, counted."""
        self._refused("request", code.name)
        return self._protocol.refusal(request, code, detail)

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """The protocol's, counted."""
        self._refused("connection", code.name)
        return self._protocol.farewell(code, detail)

    def objection(self, error: FramingError) -> bytes:
        """The protocol's, counted."""
        self._refused("connection", error.code.name)
        return self._protocol.objection(error)
