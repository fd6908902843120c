"""Conversion of protobuf messages to JSON and back, by the messages' descriptors. All functions are thread-safe.

A message is a JSON object, with the field names of the ``.proto`` file. An integer of 64 bits is a JSON number;
protobuf's own mapping would write a text. An enum is written as a number, and may be read as a name. Bytes are base64.
Every field without presence is written, even if its value is zero.

Reading is strict: ``from_json`` raises InvalidRequest for an unknown field, for a value of a wrong type or out of
range, and for a number that is not finite. msgspec parses the text, and checks the values against the types that
``_shape`` makes from a descriptor. protobuf checks the ranges of integers and the names of enums. ``_fault`` searches
for the wrong field only after msgspec or protobuf has refused a text, so that reading a valid text stays fast.

Left out: maps, extensions, and protobuf's well-known types. A name may come twice in one object: the last value counts.
"""

import math
import re
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, TypeVar, cast

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from stock_service.rpc.errors import InternalFault, InvalidRequest, short

Kind = TypeVar("Kind", bound=Message)

_FLOAT_MAX = (2 - 2**-23) * 2.0**127
"""Largest number of protobuf's type ``float``."""

_TYPES: dict[int, Any] = {
    FieldDescriptor.TYPE_BOOL: bool,
    FieldDescriptor.TYPE_STRING: str,
    FieldDescriptor.TYPE_BYTES: bytes,
    FieldDescriptor.TYPE_ENUM: int | str,
    FieldDescriptor.TYPE_DOUBLE: Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)],
    FieldDescriptor.TYPE_FLOAT: Annotated[float, msgspec.Meta(ge=-_FLOAT_MAX, le=_FLOAT_MAX)],
}
"""Python type of a field's value in JSON, by the field's protobuf type. A protobuf type that is neither in this table
nor a message is an integer type.
"""

_INT32, _INT64 = (f"a whole number from {-(2**bits)} to {2**bits - 1}" for bits in (31, 63))

_ALLOWED = {
    FieldDescriptor.TYPE_BOOL: "true or false",
    FieldDescriptor.TYPE_STRING: "a text",
    FieldDescriptor.TYPE_BYTES: "base64",
    FieldDescriptor.TYPE_DOUBLE: "a finite number",
    FieldDescriptor.TYPE_FLOAT: f"a number from {-_FLOAT_MAX} to {_FLOAT_MAX}",
}
"""Texts that describe the allowed values of a field, by the field's protobuf type."""

_ALLOWED_WHOLE = {
    FieldDescriptor.CPPTYPE_INT32: _INT32,
    FieldDescriptor.CPPTYPE_INT64: _INT64,
    FieldDescriptor.CPPTYPE_UINT32: f"a whole number from 0 to {2**32 - 1}",
    FieldDescriptor.CPPTYPE_UINT64: f"a whole number from 0 to {2**64 - 1}",
}
"""Texts that describe the allowed values of an integer field, by the field's C++ type."""

_FLOATS = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)

_TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
"""Protobuf types whose values are texts in JSON."""

_WHOLE = re.compile(r"-?[0-9]{1,20}")
_DECIMAL = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?(e[+-]?[0-9]{1,3})?")
"""Patterns of numbers in a path: ``_WHOLE`` for an integer, ``_DECIMAL`` for a floating-point number."""


def to_json(message: Message) -> bytes:
    """Encodes a message as JSON. Raises InternalFault for NaN and infinity: JSON has no such numbers, and only a
    handler can have made them.
    """
    return msgspec.json.encode(_plain(message), enc_hook=_plain)


def from_json(kind: type[Kind], text: bytes, variables: Mapping[str, str] = {}) -> Kind:  # never changed
    """Decodes a JSON text to a message of the type ``kind``. An empty text counts as ``{}``. Raises InvalidRequest.

    ``variables`` has further fields, as texts from an HTTP path. The JSON may leave these fields out, or have them with
    the same values as in the path.
    """
    descriptor = cast(Descriptor, kind.DESCRIPTOR)
    shape = _shape(descriptor)
    try:
        fields = _fields(msgspec.json.decode(text or b"{}", type=shape))
        if variables:
            given = {name: _of_path(descriptor.fields_by_name[name], value) for name, value in variables.items()}
            for name, value in _fields(msgspec.convert(given, shape)).items():
                if fields.setdefault(name, value) != value:
                    allowed = f"allowed: {short(variables[name])}, as in the path"
                    raise InvalidRequest(f"{name}: got {short(repr(fields[name]))}, {allowed}")
        return kind(**fields)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:  # ValueError: from protobuf, and for bad UTF-8
        why = _why(descriptor, text, variables) or f"no {descriptor.name}: {short(str(error))}"
        raise InvalidRequest(why) from error


def _fields(shaped: msgspec.Struct) -> dict[str, Any]:
    """Converts the fields that a JSON text had to arguments of the message's constructor."""
    return cast(dict[str, Any], msgspec.to_builtins(shaped, builtin_types=(bytes,)))


def _of_path(field: FieldDescriptor, text: str) -> object:
    """Converts the text of a path's variable to the field's value in JSON. Returns an invalid text unchanged: a later
    check refuses this text.
    """
    if field.type in _TEXTS:
        return text
    if field.type == FieldDescriptor.TYPE_BOOL:
        return {"true": True, "false": False}.get(text, text)
    if field.type in _FLOATS:
        return float(text) if _DECIMAL.fullmatch(text) else text
    return int(text) if _WHOLE.fullmatch(text) else text


def _why(descriptor: Descriptor, text: bytes, variables: Mapping[str, str]) -> str | None:
    """Finds the reason why a JSON text is no message. Returns None if no reason is found. For example, if a name comes
    twice, the decoded JSON lacks the first value, which may be the wrong value.
    """
    try:
        given = {name: _of_path(descriptor.fields_by_name[name], value) for name, value in variables.items()}
        return _fault(descriptor, msgspec.json.decode(text or b"{}")) or _fault(descriptor, given)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"{len(text)} bytes that are no JSON: {short(str(error))}"


def _fault(descriptor: Descriptor, content: object) -> str | None:
    """Finds the first wrong field of decoded JSON. Returns a text with the field's value and the allowed values, or
    None if every field is valid.
    """
    if not isinstance(content, dict):
        return f"{descriptor.name}: got {short(repr(content))}, allowed: an object"
    for name, value in content.items():
        field = descriptor.fields_by_name.get(name)
        if field is None:
            return f"{descriptor.name} has no field {short(repr(name))}"
        if field.is_repeated and not isinstance(value, list):
            return f"{name}: got {short(repr(value))}, allowed: a list"
        for each in value if field.is_repeated else [value]:
            if field.message_type is not None:
                fault = _fault(field.message_type, each)
            else:
                fault = None if _takes(field, each) else f"{name}: got {short(repr(each))}, allowed: {_allowed(field)}"
            if fault is not None:
                return fault
    return None


def _takes(field: FieldDescriptor, value: object) -> bool:
    """Returns True if msgspec and protobuf accept a value for a field, or for an element of a repeated field."""
    try:
        held = msgspec.convert(value, _TYPES.get(field.type, int))
        GetMessageClass(cast(Descriptor, field.containing_type))(**{field.name: [held] if field.is_repeated else held})
    except (msgspec.ValidationError, ValueError):
        return False
    return True


def _allowed(field: FieldDescriptor) -> str:
    """Returns a text that describes the allowed values of a field."""
    if field.enum_type is not None:
        number = "the number of one" if field.enum_type.is_closed else _INT32
        return f"one of {', '.join(field.enum_type.values_by_name)}, or {number}"
    return _ALLOWED_WHOLE.get(field.cpp_type) or _ALLOWED[field.type]


@lru_cache(maxsize=1024)
def _shape(descriptor: Descriptor) -> type[msgspec.Struct]:
    """Makes the class with the types of a message's fields, for msgspec. Raises TypeError for a map field."""
    return _make_shape(descriptor, {})


def _make_shape(descriptor: Descriptor, made: dict[str, type[msgspec.Struct]]) -> type[msgspec.Struct]:
    """Makes the class of a message, and the classes of the messages inside this message. ``made`` has all classes made
    so far, by the message's full name, since a message may contain itself.
    """
    shape = made.get(descriptor.full_name)
    if shape is None:
        fields = [(field.name, Any, msgspec.UNSET) for field in descriptor.fields]
        shape = made[descriptor.full_name] = msgspec.defstruct(descriptor.name, fields, forbid_unknown_fields=True)
        # msgspec reads the annotations at the shape's first use, when all shapes are made.
        shape.__annotations__ = {field.name: _type(field, made) | msgspec.UnsetType for field in descriptor.fields}
    return shape


def _type(field: FieldDescriptor, made: dict[str, type[msgspec.Struct]]) -> Any:
    """Returns the Python type of a field's value in JSON. Raises TypeError for a map field."""
    of = field.message_type
    if of is not None and of.GetOptions().map_entry:
        raise TypeError(f"{field.full_name}: a type that has no JSON here")
    kind = _TYPES.get(field.type, int) if of is None else _make_shape(of, made)
    return list[kind] if field.is_repeated else kind  # type: ignore[valid-type]


@lru_cache(maxsize=1024)
def _members(descriptor: Descriptor) -> list[tuple[str, bool, bool]]:
    """Returns three values for each field: its name; True if the field has presence; True if the field is a
    floating-point field. Raises TypeError for a map field.
    """
    _shape(descriptor)
    return [(field.name, field.has_presence, field.type in _FLOATS) for field in descriptor.fields]


def _plain(value: Message | Iterable[object]) -> object:
    """Converts a message, or the value of a repeated field, to a value that msgspec can write. Raises InternalFault."""
    if not isinstance(value, Message):
        return list(value)
    written: dict[str, object] = {}
    for name, has_presence, is_float in _members(value.DESCRIPTOR):
        if not has_presence or value.HasField(name):
            held = written[name] = getattr(value, name)
            if is_float and not all(map(math.isfinite, held if isinstance(held, Iterable) else (held,))):
                raise InternalFault(f"{name} is {held!r}, which JSON has no number for")
    return written
