"""A request's message to its reply's, whatever library carried it."""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from stock_service.rpc.call import Call
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.service import Service
from stock_service.rpc.timeline import NO_METHOD, Timeline
from stock_service.rpc.wire.framing import FramingError, RequestFrame
from stock_service.rpc.wire.messages import call_of, cut_request, encode_reply

_log = logging.getLogger(__name__)


class Arrived(NamedTuple):
    """A request's message as it came. A tuple, because one is made for every request."""

    message: bytes
    arrived_ns: int
    """When it was read, on ``time.monotonic_ns``: a handler does not start once the client has given up."""
    peer: Callable[[], str]
    """Says who sent it, ``HOST:PORT``; asked for methods that want a call alone."""


Answering = Callable[[Arrived], bytes]
"""The message of the reply to a request's; never raises."""


def answering(service: Service, frame_bytes_max: int) -> Answering:
    """What answers a service's requests. One over ``frame_bytes_max`` is INVALID_ARGUMENT, as is one that is none."""
    methods = {path.encode(): method for path, method in service.methods.items()}
    plain = {name: method.answer() for name, method in methods.items() if not method.wants_call}
    calling = {name: method.answer_call() for name, method in methods.items() if method.wants_call}

    def answer(arrived: Arrived) -> bytes:
        message, arrived_ns, peer = arrived
        if len(message) > frame_bytes_max:
            detail = f"a request of {len(message)} bytes, allowed: {frame_bytes_max}"
            return refusal(message, FaultCode.INVALID_ARGUMENT, detail)
        try:
            call, timeout_ms, name, payload = cut_request(message)
        except FramingError as error:
            return encode_reply(0, FaultCode.INVALID_ARGUMENT, str(error).encode())
        try:
            if timeout_ms and time.monotonic_ns() - arrived_ns > timeout_ms * 1_000_000:
                return refusal(message, FaultCode.DEADLINE_EXCEEDED, f"not begun within {timeout_ms} ms")
            if (method := plain.get(name)) is not None:
                return encode_reply(call, 0, method(payload))
            if (wants_call := calling.get(name)) is None:
                return refusal(
                    message, FaultCode.UNIMPLEMENTED, f"no method {name.decode(errors='backslashreplace')!r}"
                )
            deadline_ns = arrived_ns + timeout_ms * 1_000_000 if timeout_ms else None
            return encode_reply(call, 0, wants_call(Call(payload, peer(), deadline_ns)))
        except Fault as fault:
            return refusal(message, fault.code, fault.detail)
        except BaseException:  # SystemExit too: every request gets its reply
            _log.exception("the handler of %r raised", name)
            return refusal(message, FaultCode.INTERNAL, "the handler failed; the server's log says why")

    return answer


def stamped(answer: Answering, service: Service, timeline: Timeline) -> Answering:
    """The same, noting in a timeline that the thread begins with a request and that its reply is there.

    That the reply was given away is for the caller to note.
    """
    local = timeline.local
    numbers = {path.encode(): timeline.method_number(path) for path in service.methods}

    def answer_stamped(arrived: Arrived) -> bytes:
        stamper = local.stamper
        stamper.begin(arrived.arrived_ns)
        reply = answer(arrived)
        stamper.handled(numbers.get(_method_of(arrived.message), NO_METHOD))
        return reply

    return answer_stamped


def _method_of(message: bytes) -> bytes:
    try:
        request: RequestFrame = cut_request(message)
    except FramingError:
        return b""
    return request.method


def refusal(message: bytes, code: FaultCode, detail: str) -> bytes:
    """The message of a fault, in reply to a request's."""
    return encode_reply(call_of(message), code, detail.encode())
