"""What clients on a messaging library share: a request's bytes, and what its reply means."""

from stock_service.rpc.errors import FAULTS, InternalFault, InvalidRequest, Unavailable
from stock_service.rpc.wire.framing import CALL_MAX, METHOD_BYTES_MAX, FramingError, ReplyFrame
from stock_service.rpc.wire.messages import cut_reply, encode_request


def request_message(call: int, path: str, payload: bytes, timeout_s: float) -> bytes:
    """A request's message. Raises InvalidRequest for a name that is too long."""
    method = path.encode()
    if len(method) > METHOD_BYTES_MAX:
        raise InvalidRequest(f"a method's name of {len(method)} bytes, allowed: {METHOD_BYTES_MAX}")
    return encode_request(call, max(1, round(timeout_s * 1000)), method, payload)


def following(call: int) -> int:
    """The number of the call after this one."""
    return call % CALL_MAX + 1


def reply_frame(message: bytes, server: str) -> ReplyFrame:
    """The reply that a message is. Raises Unavailable where what came from ``server`` is none."""
    try:
        return cut_reply(message)
    except FramingError as error:
        raise Unavailable(f"{server} sent what is no reply: {error}") from error


def outcome(reply: ReplyFrame) -> bytes:
    """A reply's payload. Raises the fault that it is."""
    if reply.code == 0:
        return reply.payload
    raise FAULTS.get(reply.code, InternalFault)(reply.payload.decode(errors="replace"))
