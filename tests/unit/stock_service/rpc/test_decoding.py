"""Messages decoded with their enums as they were sent."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as some

from stock_service.rpc.decoding import NO_MEMBER, decoder
from stock_service.v1 import stock_pb2
from stock_service.v1.stock_pb2 import LookupRequest, TradeRequest

SIDE = b"\x18"
"""What the field ``side`` begins with."""

SIDES = set(stock_pb2.Side.values())


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    return bytes([value & 0x7F | 0x80]) + varint(value >> 7) if value > 0x7F else bytes([value])


@settings(max_examples=50)
@given(some.integers(0, 2**64 - 1), some.text(max_size=200), some.integers(-(2**63), 2**63 - 1))
def test_an_enum_is_the_number_that_was_sent(sent: int, name: str, quantity: int) -> None:
    """An enum is the sent number: a number of 32 bits is kept, of either sign, and no other makes a member. The other
    fields stay."""
    trade = TradeRequest(name=name, quantity=quantity)
    read = decoder(TradeRequest)(trade.SerializeToString() + SIDE + varint(sent))
    signed = sent - 2**64 if sent >= 2**63 else sent
    fits = -(2**31) <= signed < 2**31
    assert read.side == signed if fits else read.side not in SIDES
    assert (read.name, read.quantity) == (name, quantity)


def test_the_last_of_several_numbers_counts() -> None:
    """Of several numbers the last one counts, as for any repeated field. Bytes without a message are a DecodeError."""
    decode = decoder(TradeRequest)
    with pytest.raises(DecodeError):
        decode(b"\xff\xff")
    assert decode(SIDE + varint(2**32 + 1) + SIDE + varint(2)).side == 2
    assert decode(SIDE + varint(2) + SIDE + varint(2**32 + 1)).side == NO_MEMBER


def test_a_field_that_is_not_known_changes_nothing() -> None:
    """A newer client may send more."""
    sell = TradeRequest(name="é", side=stock_pb2.SIDE_SELL, quantity=300).SerializeToString()
    assert decoder(TradeRequest)(sell + b"\xf8\x01" + varint(2**40)).side == stock_pb2.SIDE_SELL


def test_a_message_without_an_enum_is_decoded_by_protobuf_alone() -> None:
    """A message without an enum is decoded by protobuf alone, at no further cost."""
    assert decoder(LookupRequest) == LookupRequest.FromString
