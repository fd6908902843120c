"""Makes the functions that answer and count a method's requests, for a server with metrics (``Method.answer``). A
function converts an encoded request to an encoded reply.

``Method`` also has these functions without counting. A counting function has its own copy of the code: a call of the
other function would take longer than the counting.
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
    """Returns the names of a response type's statuses (such as ``OK``), by number. Empty for a type without an enum
    field ``status``.
    """
    field = response.fields_by_name.get("status")
    if field is None or field.enum_type is None:
        return {}
    return {value.number: value.name.removeprefix("STATUS_") for value in field.enum_type.values if value.number}


def metered(
    decode: Decode, function: Callable[[Any], Any], meter: Meter, undecodable: Undecodable
) -> Callable[..., bytes]:
    """Makes a function from an encoded request to an encoded reply. The function counts the method's requests, and may
    get a second argument: a function to call instead of ``function``.
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
    """Makes a coroutine function from an encoded request to an encoded reply. The coroutine function counts the
    method's requests, and may get a second argument: a function to await instead of ``on_loop``. ``decode`` raises
    InvalidRequest.
    """

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
    """Makes a function from a ``Call`` to the encoded replies, for a method with several replies. The function counts
    the method's requests, and measures no times. A request counts as ended after its last reply. ``decode`` raises
    InvalidRequest.
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
