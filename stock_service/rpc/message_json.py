"""Protobuf messages as JSON and back, by their descriptors: an object of the fields, by the names in the ``.proto``.

Integers are numbers, 64 bits too: protobuf's own mapping writes those as text, which Go's clients refuse. An enum is
its number, and may be given by name; bytes are base64; every field without presence is written, zeros too.

Reading is strict: an unknown field, a value of another type or out of its range, and a number that is not finite are
InvalidRequest. Left out: maps, extensions, protobuf's well-known types, and that a name comes twice in one object (the
last one counts). Every function may be called from any thread.
"""

import binascii
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar, cast

import msgspec
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from stock_service.rpc.errors import InternalFault, InvalidRequest, short

Kind = TypeVar("Kind", bound=Message)

Value = int | float | str | bytes | bool | Message
"""What a field holds, as protobuf gives it."""

_TYPES = FieldDescriptor

_RANGES = {
    **dict.fromkeys((_TYPES.TYPE_INT32, _TYPES.TYPE_SINT32, _TYPES.TYPE_SFIXED32), (-(2**31), 2**31 - 1)),
    **dict.fromkeys((_TYPES.TYPE_INT64, _TYPES.TYPE_SINT64, _TYPES.TYPE_SFIXED64), (-(2**63), 2**63 - 1)),
    **dict.fromkeys((_TYPES.TYPE_UINT32, _TYPES.TYPE_FIXED32), (0, 2**32 - 1)),
    **dict.fromkeys((_TYPES.TYPE_UINT64, _TYPES.TYPE_FIXED64), (0, 2**64 - 1)),
}
"""The least and the greatest number of each type of integers."""

_FLOAT_MAX = (2 - 2**-23) * 2.0**127
"""The greatest number that a ``float`` of protobuf holds."""


@dataclass(frozen=True, slots=True)
class _Field:
    """One field: its name, how its value is written and read, and how a path's text is made such a value."""

    name: str
    repeated: bool
    presence: bool
    write: Callable[[Value], object]
    read: Callable[[object], object]
    parse: Callable[[str], object]


def to_json(message: Message) -> bytes:
    """The message as JSON. Raises InternalFault where it has a number that JSON has not: only a handler makes those."""
    return msgspec.json.encode(_written(message))


def from_json(kind: type[Kind], text: bytes, variables: Mapping[str, str] = {}) -> Kind:  # never changed
    """The message that this JSON is; no text at all is ``{}``. Raises InvalidRequest.

    ``variables`` fill fields from texts, by name; the JSON need not have those, and must not differ where it has them.
    """
    content: object = {}
    if text:
        try:
            content = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequest(f"{len(text)} bytes that are no JSON: {short(str(error))}") from error
    if variables:
        content = _joined(_descriptor(kind), content, variables)
    return from_value(kind, content)


def from_value(kind: type[Kind], content: object) -> Kind:
    """The message that decoded JSON is. Raises InvalidRequest."""
    return kind(**_read(_descriptor(kind), content))


def _descriptor(kind: type[Message]) -> Descriptor:
    return cast(Descriptor, kind.DESCRIPTOR)


def _joined(descriptor: Descriptor, content: object, variables: Mapping[str, str]) -> object:
    """An object's content, and the variables of its path."""
    if not isinstance(content, dict):
        return content
    fields = _fields(descriptor)
    joined = dict(content)
    for name, text in variables.items():
        value = fields[name].parse(text)
        if joined.setdefault(name, value) != value:
            raise InvalidRequest(f"{name}: got {short(repr(joined[name]))}, allowed: {short(text)}, as in the path")
    return joined


def _written(message: Message) -> dict[str, object]:
    written: dict[str, object] = {}
    for field in _fields(message.DESCRIPTOR).values():
        if field.presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        written[field.name] = [field.write(each) for each in value] if field.repeated else field.write(value)
    return written


def _read(descriptor: Descriptor, content: object) -> dict[str, object]:
    """A message's fields as its constructor takes them."""
    if not isinstance(content, dict):
        raise InvalidRequest(f"{descriptor.name}: got {short(repr(content))}, allowed: an object")
    fields, given = _fields(descriptor), dict[str, object]()
    for name, value in content.items():
        field = fields.get(name)
        if field is None:
            raise InvalidRequest(f"{descriptor.name} has no field {short(repr(name))}")
        if not field.repeated:
            given[name] = field.read(value)
        elif isinstance(value, list):
            given[name] = [field.read(each) for each in value]
        else:
            raise _refused(name, value, "a list")
    return given


@lru_cache(maxsize=1024)
def _fields(descriptor: Descriptor) -> Mapping[str, _Field]:
    """A message's fields by name."""
    return {field.name: _field(field) for field in descriptor.fields}


def _field(field: FieldDescriptor) -> _Field:
    """How one field is written and read. Raises TypeError for a type that is left out."""
    name, kind = field.name, field.type
    write: Callable[[Value], object] = lambda value: value  # noqa: E731  # what most fields take
    parse: Callable[[str], object] = lambda text: text  # noqa: E731
    match kind:
        case _ if kind in _RANGES:
            read, parse = _integer(name, *_RANGES[kind]), _whole
        case _TYPES.TYPE_BOOL:
            read, parse = (
                _plain(name, bool, "true or false"),
                lambda text: {"true": True, "false": False}.get(text, text),
            )
        case _TYPES.TYPE_STRING:
            read = _plain(name, str, "a text")
        case _TYPES.TYPE_ENUM:
            read, parse = _enum(name, cast(EnumDescriptor, field.enum_type)), _whole
        case _TYPES.TYPE_DOUBLE | _TYPES.TYPE_FLOAT:
            read, parse = _number(name, _FLOAT_MAX if kind == _TYPES.TYPE_FLOAT else math.inf), _decimal
            write = _finite(name)
        case _TYPES.TYPE_BYTES:
            read, write = _base64(name), lambda value: b64encode(cast(bytes, value)).decode()
        case _TYPES.TYPE_MESSAGE if not (of := cast(Descriptor, field.message_type)).GetOptions().map_entry:
            read, write = (lambda value: _read(of, value)), lambda value: _written(cast(Message, value))
        case _:
            raise TypeError(f"{field.full_name}: a type that has no JSON here")
    return _Field(name, field.is_repeated, field.has_presence, write, read, parse)


def _plain(name: str, kind: type, allowed: str) -> Callable[[object], object]:
    def read(value: object) -> object:
        if type(value) is not kind:
            raise _refused(name, value, allowed)
        return value

    return read


def _integer(name: str, least: int, greatest: int) -> Callable[[object], object]:
    def read(value: object) -> object:
        if type(value) is not int or not least <= value <= greatest:
            raise _refused(name, value, f"a whole number from {least} to {greatest}")
        return value

    return read


def _enum(name: str, kind: EnumDescriptor) -> Callable[[object], object]:
    whole, numbers = _integer(name, *_RANGES[_TYPES.TYPE_INT32]), {of.name: of.number for of in kind.values}

    def read(value: object) -> object:
        if isinstance(value, str):
            if value not in numbers:
                raise _refused(name, value, f"one of {', '.join(numbers)}, or a number")
            return numbers[value]
        return whole(value)

    return read


def _number(name: str, greatest: float) -> Callable[[object], object]:
    def read(value: object) -> object:
        if type(value) in (int, float):
            try:
                number = float(cast(float, value))
            except OverflowError:  # a whole number beyond all floating ones
                number = math.inf
            if math.isfinite(number) and abs(number) <= greatest:
                return number
        raise _refused(name, value, "a finite number")

    return read


def _finite(name: str) -> Callable[[Value], object]:
    def write(value: Value) -> object:
        if not math.isfinite(cast(float, value)):
            raise InternalFault(f"{name} is {value!r}, which JSON has no number for")
        return value

    return write


def _base64(name: str) -> Callable[[object], object]:
    def read(value: object) -> object:
        try:
            return b64decode(cast(str, value), validate=True)
        except (TypeError, ValueError, binascii.Error) as error:
            raise _refused(name, value, "base64") from error

    return read


def _whole(text: str) -> object:
    """A path's text as an integer; itself where it is none, to be refused."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,20}", text) else text


def _decimal(text: str) -> object:
    """The same for a number."""
    return float(text) if re.fullmatch(r"-?[0-9]{1,20}(\.[0-9]{1,20})?(e[+-]?[0-9]{1,3})?", text) else text


def _refused(name: str, value: object, allowed: str) -> InvalidRequest:
    return InvalidRequest(f"{name}: got {short(repr(value))}, allowed: {allowed}")
