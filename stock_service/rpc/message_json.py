"""Protobuf messages as JSON and back, by their descriptors: an object of the fields, by the names in the ``.proto``.

Integers are numbers, 64 bits too: protobuf's own mapping writes those as text. An enum is its number, and may be given
by name; bytes are base64; every field without presence is written, zeros too.

Reading is strict: an unknown field, a value of another type or out of its range, and a number that is not finite are
InvalidRequest. msgspec reads the text, and checks it against the types that ``_shape`` finds in a descriptor. protobuf
checks the ranges of integers and the names of enums. Left out: maps, extensions, protobuf's well-known types, messages
that may contain themselves, and that a name comes twice in one object (the last one counts). Every function may be
called from any thread.
"""

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, TypeVar, cast

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from stock_service.rpc.errors import InternalFault, InvalidRequest, short

Kind = TypeVar("Kind", bound=Message)

_FLOAT_MAX = (2 - 2**-23) * 2.0**127
"""The greatest number that a ``float`` of protobuf holds."""

_TYPES: dict[int, Any] = {
    FieldDescriptor.TYPE_BOOL: bool,
    FieldDescriptor.TYPE_STRING: str,
    FieldDescriptor.TYPE_BYTES: bytes,
    FieldDescriptor.TYPE_ENUM: int | str,
    FieldDescriptor.TYPE_DOUBLE: float,
    FieldDescriptor.TYPE_FLOAT: Annotated[float, msgspec.Meta(ge=-_FLOAT_MAX, le=_FLOAT_MAX)],
}
"""What JSON has for a field's type; for all others but messages a whole number."""

_FLOATS = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)

_TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
"""Types that are texts in JSON, as all variables of a path are."""


def to_json(message: Message) -> bytes:
    """The message as JSON. Raises InternalFault where it has a number that JSON has not: only a handler makes those."""
    return msgspec.json.encode(_plain(message), enc_hook=_plain)


def from_json(kind: type[Kind], text: bytes, variables: Mapping[str, str] = {}) -> Kind:  # never changed
    """The message that this JSON is; no text at all is ``{}``. Raises InvalidRequest.

    ``variables`` fill fields from texts, by name; the JSON need not have those, and must not differ where it has them.
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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if not isinstance(error, msgspec.ValidationError):
            raise InvalidRequest(f"{len(text)} bytes that are no JSON: {short(str(error))}") from error
        raise InvalidRequest(f"no {descriptor.name}: {short(str(error))}") from error
    except ValueError as error:  # protobuf's
        raise InvalidRequest(f"no {descriptor.name}: {short(str(error))}") from error


def _fields(shaped: msgspec.Struct) -> dict[str, Any]:
    """Fields that were given, as a message's constructor takes them."""
    return cast(dict[str, Any], msgspec.to_builtins(shaped, builtin_types=(bytes,)))


def _of_path(field: FieldDescriptor, text: str) -> object:
    """A variable's text as JSON would have it; itself where it is none, to be refused."""
    try:
        return text if field.type in _TEXTS else msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


@lru_cache(maxsize=1024)
def _shape(descriptor: Descriptor) -> type[msgspec.Struct]:
    """Types of a message's fields, for msgspec. Raises TypeError for what is left out."""
    fields = [(field.name, _type(field) | msgspec.UnsetType, msgspec.UNSET) for field in descriptor.fields]
    return msgspec.defstruct(descriptor.name, fields, forbid_unknown_fields=True)


def _type(field: FieldDescriptor) -> Any:
    """What JSON has for a field."""
    of = field.message_type
    if of is not None and of.GetOptions().map_entry:
        raise TypeError(f"{field.full_name}: a type that has no JSON here")
    kind = _TYPES.get(field.type, int) if of is None else _shape(of)
    return list[kind] if field.is_repeated else kind  # type: ignore[valid-type]


@lru_cache(maxsize=1024)
def _members(descriptor: Descriptor) -> list[tuple[str, bool, bool]]:
    """Each field's name, whether it has presence, and whether it is a floating number. Raises as ``_shape``."""
    _shape(descriptor)
    return [(field.name, field.has_presence, field.type in _FLOATS) for field in descriptor.fields]


def _plain(value: Message | Iterable[object]) -> object:
    """What msgspec is to write for a message, or for a repeated field."""
    if not isinstance(value, Message):
        return list(value)
    written: dict[str, object] = {}
    for name, has_presence, is_float in _members(value.DESCRIPTOR):
        if not has_presence or value.HasField(name):
            held = written[name] = getattr(value, name)
            if is_float and not all(map(math.isfinite, held if isinstance(held, Iterable) else (held,))):
                raise InternalFault(f"{name} is {held!r}, which JSON has no number for")
    return written
