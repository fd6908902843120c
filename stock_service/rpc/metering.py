"""Methods in bytes that count their requests. ``Method.answer`` gives such a method to a server with metrics.

A method that counts is a separate function, and does not call the method without counts: one more stack frame would
cost more than the counting.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from stock_service.rpc.call import Call
from stock_service.rpc.errors import Fault, FaultCode, InvalidRequest
from stock_service.rpc.metrics import CANCELLED, SKIPPED, Meter, now_ns
from stock_service.rpc.waiting import Waiting

Decode = Callable[[bytes], Any]

OnLoop = Callable[[Any], Awaitable[Any]]

Undecodable = Callable[[bytes], InvalidRequest]
"""Function that makes the fault for bytes that are no request of a method."""

_UNDECODABLE = FaultCode.INVALID_ARGUMENT.name


def outcomes_of(response: Descriptor) -> dict[int, str]:
    """The names of a response's statuses (such as ``OK``) by number. Empty for a response without an enum
    ``status``.
    """
    field = response.fields_by_name.get("status")
    if field is None or field.enum_type is None:
        return {}
    return {value.number: value.name.removeprefix("STATUS_") for value in field.enum_type.values if value.number}


def metered(
    decode: Decode, function: Callable[[Any], Any], meter: Meter, undecodable: Undecodable
) -> Callable[..., bytes]:
    """A method from bytes to bytes that counts its requests. The method's second argument is a function to call instead
    of ``function``.
    """
    begin, ended, by_status, observe = meter.begin, meter.ended, meter.by_status, meter.observe

    def answer(payload: bytes, function: Callable[[Any], Any] = function) -> bytes:
        began_ns = 0 if begin() & SKIPPED else now_ns()
        try:
            request = decode(payload)
        except DecodeError as error:
            meter.failed(_UNDECODABLE)
            raise undecodable(payload) from error
        try:
            reply = function(request)
        except BaseException as error:
            _count(meter, error)
            raise
        ended[reply.status if by_status else None]()
        if began_ns:
            observe((now_ns() - began_ns) / 1e9)
        encoded: bytes = reply.SerializeToString()
        return encoded

    return answer


def metered_on_loop(decode: Decode, on_loop: OnLoop, meter: Meter) -> Callable[..., Awaitable[bytes]]:
    """A method that counts its requests on an event loop. ``decode`` raises InvalidRequest."""

    async def answer(payload: bytes, on_loop: OnLoop = on_loop) -> bytes:
        began_ns = 0 if meter.begin() & SKIPPED else now_ns()
        try:
            reply = await on_loop(decode(payload))
        except BaseException as error:
            _count(meter, error)
            raise
        meter.ended[reply.status if meter.by_status else None]()
        if began_ns:
            meter.observe((now_ns() - began_ns) / 1e9)
        encoded: bytes = reply.SerializeToString()
        return encoded

    return answer


def metered_stream(
    decode: Decode, function: Callable[[Any, Call], Iterator[Any]], meter: Meter
) -> Callable[[Call], Iterator[bytes]]:
    """A method of several replies that counts its requests. A request ends after its last reply. The time of a request
    is not measured.

    ``decode`` raises InvalidRequest.
    """

    def answer(call: Call) -> Iterator[bytes]:
        try:
            for reply in function(decode(call.payload), call):
                yield reply.SerializeToString()
        except GeneratorExit:
            late = call.deadline_ns is not None and now_ns() > call.deadline_ns
            meter.failed(FaultCode.DEADLINE_EXCEEDED.name if late else CANCELLED)
            raise
        except BaseException as error:
            _count(meter, error)
            raise
        meter.ended[None]()

    return answer


def _count(meter: Meter, error: BaseException) -> None:
    """Counts an exception of a handler, except ``Waiting``: a request that waits without a thread has not ended."""
    if not isinstance(error, Waiting):
        meter.failed((error.code if isinstance(error, Fault) else FaultCode.INTERNAL).name)
