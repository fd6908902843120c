"""Messages as JSON: a written message reads as the same one, and other texts are refused."""

import json
import math
from typing import Any, cast

import pytest
from google.protobuf import descriptor_pb2, struct_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.v1 import echo_pb2, entity_pb2, sort_pb2
from stock_service.rpc.errors import InternalFault, InvalidRequest
from stock_service.rpc.message_json import from_json, to_json
from stock_service.v1 import stock_pb2

FILES = (stock_pb2, echo_pb2, entity_pb2, sort_pb2)

KINDS: list[type[Message]] = [
    getattr(file, cast(str, name)) for file in FILES for name in file.DESCRIPTOR.message_types_by_name
]

VALUES: dict[int, st.SearchStrategy[object]] = {
    FieldDescriptor.TYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_ENUM: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_STRING: st.text(st.characters(exclude_categories=["Cs"])),
    FieldDescriptor.TYPE_DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    FieldDescriptor.TYPE_BOOL: st.booleans(),
}


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Any message of the services here."""
    kind = draw(st.sampled_from(KINDS))
    fields: dict[str, object] = {}
    for field in cast(Descriptor, kind.DESCRIPTOR).fields:
        value = VALUES[field.type]
        fields[field.name] = draw(st.lists(value, max_size=4) if field.is_repeated else value)
    return kind(**fields)


def as_values(message: Message) -> dict[str, object]:
    """A message's fields as Python's JSON has them."""
    fields = cast(Descriptor, message.DESCRIPTOR).fields
    values: dict[str, Any] = {field.name: getattr(message, field.name) for field in fields}
    return {field.name: list(values[field.name]) if field.is_repeated else values[field.name] for field in fields}


@given(messages())
def test_a_message_is_read_as_it_was_written(message: Message) -> None:
    """A message reads as it was written: every field, also zeros, by its name, and integers as exact numbers."""
    text = to_json(message)
    assert from_json(type(message), text) == message
    assert json.loads(text) == as_values(message)


def test_messages_within_messages_are_objects() -> None:
    """Messages within messages are objects, with bytes in base64, presence kept, and enums by number or name."""
    value = descriptor_pb2.UninterpretedOption(string_value=b"\xff\x00")
    value.name.add(name_part="a", is_extension=True)
    text = to_json(value)
    assert json.loads(text) == {"name": [{"name_part": "a", "is_extension": True}], "string_value": "/wA="}
    assert from_json(descriptor_pb2.UninterpretedOption, text) == value
    trade = from_json(stock_pb2.TradeRequest, b'{"side": "SIDE_SELL"}')
    assert (
        trade == from_json(stock_pb2.TradeRequest, b'{"side": 2}') == stock_pb2.TradeRequest(side=stock_pb2.SIDE_SELL)
    )


def test_a_message_may_contain_itself() -> None:
    """A message may contain itself, directly or through other messages."""
    kind = descriptor_pb2.DescriptorProto(name="a")
    kind.nested_type.add(name="b").nested_type.add(name="c").field.add(number=1)
    text = to_json(kind)
    assert from_json(descriptor_pb2.DescriptorProto, text) == kind
    with pytest.raises(InvalidRequest, match="name: got 1, allowed: a text"):
        from_json(descriptor_pb2.DescriptorProto, b'{"nested_type": [{"nested_type": [{"name": 1}]}]}')
    with pytest.raises(InvalidRequest, match="no JSON"):
        from_json(descriptor_pb2.DescriptorProto, b'{"nested_type": [' * 100_000)


PUT, TRADE = entity_pb2.PutEntityRequest, stock_pb2.TradeRequest


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (PUT, b"[]", "PutEntityRequest: got .*allowed: an object"),
        (PUT, b'{"id": "1"}', "id: got '1', allowed: a whole number from -9223372036854775808"),
        (PUT, b'{"id": 1.0}', "id: got 1.0"),
        (PUT, b'{"id": true}', "id: got True"),
        (PUT, b'{"id": null}', "id: got None"),
        (PUT, b'{"id": 9223372036854775808}', "id: got 9223372036854775808"),
        (PUT, b'{"Id": 1}', "has no field 'Id'"),
        (PUT, b'{"value": "1"}', "value: got '1', allowed: a finite number"),
        (PUT, b'{"value": 1' + b"0" * 400 + b"}", "value: got 10"),
        (PUT, b'{"value": 1e400}', "no JSON"),
        (PUT, b'{"value": NaN}', "no JSON"),
        (PUT, b'{"description": 1}', "description: got 1, allowed: a text"),
        (PUT, b'{"description": "\xff"}', "no JSON"),
        (PUT, b'{"description": "\\ud800"}', "no JSON"),
        (PUT, b'{"id": 1} 2', "no JSON"),
        (PUT, b"[" * 100_000, "no JSON"),
        (TRADE, b'{"side": "SIDE"}', "side: got 'SIDE', allowed: one of SIDE_UNSPECIFIED, SIDE_BUY"),
        (TRADE, b'{"side": 2147483648}', "side: got 2147483648, allowed: .*SIDE_SELL, or a whole number from -2147"),
        (sort_pb2.MergeSortRequest, b'{"values": 1}', "values: got 1, allowed: a list"),
        (sort_pb2.MergeSortRequest, b'{"values": [1, "2"]}', "values: got '2'"),
        (descriptor_pb2.UninterpretedOption, b'{"string_value": "a"}', "string_value: got 'a', allowed: base64"),
        (descriptor_pb2.UninterpretedOption, b'{"string_value": 1}', "string_value: got 1, allowed: base64"),
        (sort_pb2.MergeSortRequest, b'{"values": ' + b"[" * 100_000, "no JSON"),
        (
            descriptor_pb2.UninterpretedOption,
            b'{"positive_int_value": 18446744073709551616}',
            "from 0 to 1844674407370955",
        ),
        (descriptor_pb2.UninterpretedOption, b'{"name": [{"name_part": 1}]}', "name_part: got 1, allowed: a text"),
        (descriptor_pb2.UninterpretedOption, b'{"name": [1]}', "NamePart: got 1, allowed: an object"),
        (descriptor_pb2.FieldDescriptorProto, b'{"label": 9}', "label: got 9, .*LABEL_REQUIRED, or the number of one"),
        (PUT, b'{"id": "1", "id": 1}', "no PutEntityRequest: "),
    ],
)
def test_what_is_no_such_message_is_refused(kind: type[Message], text: bytes, said: str) -> None:
    """A text that is not such a message is INVALID_ARGUMENT, with the given and the allowed values."""
    with pytest.raises(InvalidRequest, match=said):
        from_json(kind, text)


@settings(max_examples=50)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode), st.sampled_from(KINDS))
def test_any_bytes_are_a_message_or_refused(text: bytes, kind: type[Message]) -> None:
    """Nothing but InvalidRequest is raised."""
    try:
        from_json(kind, text)
    except InvalidRequest:
        pass


def test_a_paths_variables_fill_fields() -> None:
    """A path's variables fill fields beside the body's. Both may have the same value. Another value, or one of another
    type, is refused."""
    expected = PUT(id=-7, description="7")
    assert from_json(PUT, b"", {"id": "-7", "description": "7"}) == expected
    assert from_json(PUT, b'{"id": -7, "description": "7"}', {"id": "-7"}) == expected
    with pytest.raises(InvalidRequest, match="id: got 8, allowed: -7, as in the path"):
        from_json(PUT, b'{"id": 8}', {"id": "-7"})
    for text in ("x", "1.0", "", "9" * 19, "+1", "1" * 5000):
        with pytest.raises(InvalidRequest, match=r"id: got .*allowed: a whole number"):
            from_json(PUT, b"", {"id": text})
    assert from_json(PUT, b"", {"value": "-1.5e3"}).value == -1500
    assert from_json(entity_pb2.PutEntityResponse, b"", {"created": "true"}).created


def test_a_paths_variables_are_no_json() -> None:
    """A number may have zeros before it, an enum's name has no quotes, and no space is around."""
    assert from_json(TRADE, b"", {"quantity": "007", "side": "SIDE_BUY"}) == TRADE(quantity=7, side=stock_pb2.SIDE_BUY)
    assert from_json(TRADE, b"", {"side": "1"}).side == stock_pb2.SIDE_BUY
    for name, text in [
        ("quantity", " 7 "),
        ("quantity", "7\n"),
        ("quantity", "[" * 100_000),
        ("side", '"SIDE_BUY"'),
        ("side", " 1"),
    ]:
        with pytest.raises(InvalidRequest, match=f"INVALID_ARGUMENT: {name}: got .*allowed: "):
            from_json(TRADE, b"", {name: text})
    for text in (" 1", "nan", "inf", "1e999"):
        with pytest.raises(InvalidRequest, match=r"value: got .*allowed: a finite number"):
            from_json(PUT, b"", {"value": text})
    with pytest.raises(InvalidRequest, match="created: got '1', allowed: true or false"):
        from_json(entity_pb2.PutEntityResponse, b"", {"created": "1"})


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_json_has_not_is_internal(value: float) -> None:
    """A number that JSON lacks is INTERNAL, since only a handler's reply can have one."""
    with pytest.raises(InternalFault, match="value is"):
        to_json(PUT(value=value))


def test_maps_are_left_out() -> None:
    """A message that has one is a programmer's mistake, found at its first use."""
    with pytest.raises(TypeError, match="no JSON here"):
        to_json(struct_pb2.Struct())
