"""An RPC service free of any transport.

A ``Service`` maps full method names to methods; a transport serves any service and knows none. The payload on every
transport is the protobuf message's bytes, so that comparing transports does not compare codecs. Decoding happens here,
once, so that undecodable bytes are INVALID_ARGUMENT everywhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from stock_service.rpc.errors import InvalidRequest

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

Answer = Callable[[bytes], bytes]
"""A method in bytes: an encoded request to an encoded response; raises a Fault."""


@dataclass(frozen=True, slots=True)
class Service:
    """``name`` is the protobuf service's full name; ``methods`` maps ``/name/Method`` to what answers it.

    The methods are called from any thread, several at once.
    """

    name: str
    methods: Mapping[str, Answer]


def method(request_type: type[Request], function: Callable[[Request], Response]) -> Answer:
    """A function of messages as a function of bytes. The answer raises InvalidRequest for bytes that do not decode."""
    decode: Callable[[bytes], Request] = request_type.FromString

    def answer(payload: bytes) -> bytes:
        try:
            request = decode(payload)
        except DecodeError as error:
            raise InvalidRequest(f"{len(payload)} bytes that are no {request_type.DESCRIPTOR.full_name}") from error
        return function(request).SerializeToString()

    return answer
