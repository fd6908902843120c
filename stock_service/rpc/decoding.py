"""A decoder of protobuf messages. The decoder recognises an enum number that needs more than 32 bits.

An enum field holds 32 bits. In every programming language, protobuf cuts a longer number to 32 bits. For example,
protobuf reads 2^32 + 1 as 1: in the field ``side``, this unknown number would become BUY. This decoder replaces a
longer number by ``NO_MEMBER``. The service refuses ``NO_MEMBER`` like any other number that is not in the enum.

Left out: enum fields that are repeated, in a oneof, or in a nested message. Also left out: integer fields of 32 bits.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

Kind = TypeVar("Kind", bound=Message)

NO_MEMBER = -(2**31)
"""Number that replaces an enum number over 32 bits. It is the smallest integer of 32 bits, which no enum of the project
has.
"""


def decoder(kind: type[Kind]) -> Callable[[bytes], Kind]:
    """Makes the function that decodes messages of the type ``kind``. Call ``decoder`` once for each type. The function
    is thread-safe, and raises DecodeError.
    """
    decode: Callable[[bytes], Kind] = kind.FromString
    enums = {field.number: field.name for field in cast(Descriptor, kind.DESCRIPTOR).fields if _is_enum(field)}
    if not enums:
        return decode

    def decode_enums(payload: bytes) -> Kind:
        message = decode(payload)
        # An encoded number of several bytes is not ASCII. A number over 32 bits takes more bytes than when cut.
        if not payload.isascii() and message.ByteSize() != len(payload):
            for number, value in _varints(payload).items():
                if number in enums and not _fits(value):
                    setattr(message, enums[number], NO_MEMBER)
        return message

    return decode_enums


def _is_enum(field: FieldDescriptor) -> bool:
    return field.enum_type is not None and not field.is_repeated and field.containing_oneof is None


def _varints(payload: bytes) -> dict[int, int]:
    """Returns the last value of each integer field, by the field's number. The values are not cut to 32 bits. The
    message ``Empty`` has no fields, so a decoded ``Empty`` keeps every number as an unknown field.
    """
    sent = UnknownFieldSet(Empty.FromString(payload))
    fields = (sent[index] for index in range(len(sent)))
    return {field.field_number: field.data for field in fields if field.wire_type == 0}


def _fits(value: int) -> bool:
    """Returns True if a number, given as 64 bits in two's complement, fits into 32 bits."""
    return value < 2**31 or value >= 2**64 - 2**31
