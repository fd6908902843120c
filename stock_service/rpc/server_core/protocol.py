"""Interface of a protocol on the server core. A protocol decodes requests and encodes replies, without I/O.

The module also has ``Methods``: the methods of a service, as functions from an encoded request to an encoded response.
Further wrappers in the module record times of requests in the timeline, or count refusals in the metrics.

``WireProtocol.answer`` raises only ``Waiting``, and only on a server with group commit.
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
"""Type of a request, which the protocol's decoder makes."""


class WireProtocol(Protocol[Request]):
    """Protocol of one server: makes decoders of requests, answers requests, and encodes refusals. The methods are
    thread-safe. Only ``answer`` raises an exception: ``Waiting``. A decoder is not thread-safe.
    """

    def answer(self, request: Request, arrived_ns: int, peer: Address) -> bytes:
        """Calls a request's method, and encodes the reply or the fault. ``arrived_ns`` is the request's arrival time,
        by ``time.monotonic_ns``.
        """

    def path(self, request: Request) -> bytes | None:
        """Returns the path of a request's method, ``/package.Service/Method``. For an unknown method, the result may be
        any other bytes. For a method of the protocol itself, the result is None. The timeline leaves out requests with
        the path None.
        """

    def refusal(self, request: Request, code: FaultCode, detail: str) -> bytes:
        """Encodes the reply that refuses a request with a fault."""

    def decoder(self) -> RequestDecoder[Request]:
        """Makes the decoder that cuts a new connection's bytes into requests."""

    def timeout_ms(self, request: Request) -> int:
        """Returns a request's time limit in milliseconds; 0 for no time limit."""

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """Encodes the last bytes of a connection that the server closes because of a fault."""

    def goodbye(self) -> bytes:
        """Encodes the last bytes of a connection that the server ends after all replies. The result may be empty.

        The bytes tell the client that the server has begun no request except the answered requests.
        """

    def objection(self, error: FramingError) -> bytes:
        """Encodes the last bytes to a client that has sent bytes that are not a request."""


_log = logging.getLogger(__name__)

OK = 0
"""Code of a reply with a method's response. The code of a reply with a fault is a ``FaultCode``."""

Answering = Callable[[Request, int, Address], bytes]
"""Function that answers a request: ``WireProtocol.answer``, or the wrapper that ``stamping`` makes. The arguments are
the request, its arrival time by ``time.monotonic_ns``, and the client's address.
"""


@dataclass(frozen=True, slots=True)
class Methods:
    """A service's methods as functions that return an encoded response, by path. The methods in ``plain`` take only an
    encoded request. The methods in ``calling`` take a ``Call``, which also has the deadline and the metadata.
    """

    plain: Mapping[bytes, Answer]
    calling: Mapping[bytes, CallAnswer]
    flush: Flush | None = None
    """Function that starts one commit for several requests (``Service.flush``); None for a service without group
    commit.
    """
    meters: Mapping[bytes, Meter] = field(default_factory=dict)
    """Meters of the methods that have a meter, by path."""

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
        """Calls the method with the path ``name``. Returns ``OK`` and the encoded response, or a fault's code and text.
        Never raises, except ``Waiting``.

        ``arrived_ns`` is the request's arrival time by ``time.monotonic_ns``. ``timeout_ms`` is the request's time
        limit in milliseconds, counted from the arrival (0: no time limit). If the time limit is over, the method is not
        called. ``peer`` is the client's address. The method writes the metadata of its reply to ``said``.
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
        except BaseException as error:  # also SystemExit, since every request must get a reply
            return failure(name, error)


def failure(name: bytes, error: BaseException) -> tuple[int, bytes]:
    """Converts an exception of the method ``name`` to a fault's code and text. Logs an exception that is not a Fault.
    If ``error`` is a ``Waiting``, raises this exception again, since the request gets its reply later.
    """
    if isinstance(error, Waiting):
        try:
            raise error
        finally:
            del error  # breaks the reference cycle of the error and this frame
    if isinstance(error, Fault):
        return error.code, error.detail.encode(errors="replace")
    _log.error("the handler of %r raised", name, exc_info=error)
    return FaultCode.INTERNAL, b"the handler failed; the server's log says why"


def methods_of(service: Service) -> Methods:
    """Makes the ``Methods`` of a service."""
    methods = {path.encode(): method for path, method in service.methods.items()}
    return Methods(
        {name: method.answer() for name, method in methods.items() if not method.wants_call},
        {name: method.answer_call() for name, method in methods.items() if method.wants_call},
        service.flush,
        {name: method.meter for name, method in methods.items() if method.meter is not None},
    )


def stamping(timeline: Timeline, methods: Methods, protocol: WireProtocol[Request]) -> Answering[Request]:
    """Wraps the protocol's ``answer``. For each request, the wrapper writes three times to the timeline: when the
    request arrived, when a thread began the request, and when the reply was encoded.

    The caller of the wrapper must write the time when the reply was sent.
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
    """``WireProtocol`` that counts the refusals of requests and of connections in the metrics."""

    def __init__(self, protocol: WireProtocol[Request], metrics: Metrics) -> None:
        self._protocol = protocol
        self._refused = metrics.refused
        self.answer, self.path, self.timeout_ms = protocol.answer, protocol.path, protocol.timeout_ms
        self.decoder, self.goodbye = protocol.decoder, protocol.goodbye

    def refusal(self, request: Request, code: FaultCode, detail: str) -> bytes:
        """Counts a refused request, and encodes the refusal."""
        self._refused("request", code.name)
        return self._protocol.refusal(request, code, detail)

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """Counts a connection that the server closes because of a fault. Encodes the connection's last bytes."""
        self._refused("connection", code.name)
        return self._protocol.farewell(code, detail)

    def objection(self, error: FramingError) -> bytes:
        """Counts a connection whose client sent bytes that are no request. Encodes the connection's last bytes."""
        self._refused("connection", error.code.name)
        return self._protocol.objection(error)
