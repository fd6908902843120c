"""Values: statuses and their codes, dollars and cents, and that values never change."""

import math
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stock_service.trading.model import (
    INT64_MAX,
    LookupReply,
    Side,
    Status,
    Stock,
    TradeReply,
    UpdateReply,
    cents,
    dollars,
)
from stock_service.v1 import stock_pb2


def test_every_status_has_the_assignments_code() -> None:
    """1 is done, 0 suspended, -1 unknown, -2 a refused argument."""
    codes = {status.name: status.assignment_code for status in Status}
    refused = dict.fromkeys(("INVALID_PRICE", "INVALID_QUANTITY", "INVALID_SIDE"), -2)
    assert codes == {"OK": 1, "SUSPENDED": 0, "UNKNOWN_STOCK": -1, **refused}
    assert {type(code) for code in codes.values()} == {int}


def test_the_numbers_are_those_of_the_wire() -> None:
    """Statuses and sides have the numbers of the protobuf enums, which have no others but unspecified."""
    assert {f"STATUS_{status.name}": status.value for status in Status} | {"STATUS_UNSPECIFIED": 0} == dict(
        stock_pb2.Status.items()
    )
    assert {f"SIDE_{side.name}": side.value for side in Side} | {"SIDE_UNSPECIFIED": 0} == dict(stock_pb2.Side.items())


def test_values_cannot_be_changed() -> None:
    """A value that any thread may hold cannot be assigned to, and takes no further attribute."""
    for value in (Stock("A", 1, 2), LookupReply(Status.OK), TradeReply(Status.OK), UpdateReply(Status.OK)):
        with pytest.raises(AttributeError):
            setattr(value, next(iter(type(value).__annotations__)), None)
        assert not hasattr(value, "__dict__")


def test_dollars_have_two_decimals() -> None:
    """Cents of any size are printed as dollars with two decimals."""
    printed = {0: "$0.00", 5: "$0.05", 1599: "$15.99", 100_000: "$1000.00", INT64_MAX: "$92233720368547758.07"}
    assert {price_cents: dollars(price_cents) for price_cents in printed} == printed


@given(st.integers(0, INT64_MAX))
def test_what_is_printed_is_read(price_cents: int) -> None:
    """Every price is printed so that it is read as itself."""
    assert cents(dollars(price_cents)) == price_cents


@given(st.integers(0, 2**40))
def test_a_float_of_dollars_is_its_cents(price_cents: int) -> None:
    """A float loses nothing, though no float is 0.1."""
    assert cents(price_cents / 100) == price_cents


@given(st.decimals(-(10**12), 10**12, allow_nan=False, allow_infinity=False, places=6))
def test_cents_are_rounded_half_to_even(amount: Decimal) -> None:
    """Fractions of a cent go to the nearer cent, halves to the even one."""
    assert cents(str(amount)) == int((amount * 100).to_integral_value(ROUND_HALF_EVEN))


def test_amounts_that_are_read() -> None:
    """Amounts are read with a sign of the currency or without, as text or as a float. A negative one is read, too."""
    texts = {"15.99": 1599, "$15.99": 1599, " $15.99 ": 1599, "-1.50": -150, "0.015": 2, "1e2": 10_000}
    assert {text: cents(text) for text in texts} == texts
    assert [cents(amount) for amount in (15.99, 0.125, -0.0)] == [1599, 12, 0]


@pytest.mark.parametrize(
    "amount",
    ["", "$", "dollars", "1,5", "1.5.0", "NaN", "sNaN", "inf", "-Infinity", math.nan, math.inf, -math.inf, "0x10"],
)
def test_what_is_no_amount_is_refused(amount: str | float) -> None:
    """A text that is not an amount, NaN and infinity are ValueErrors with the given value."""
    with pytest.raises(ValueError, match="amount") as refused:
        cents(amount)
    assert repr(amount) in str(refused.value)


@pytest.mark.parametrize(
    "amount", ["92233720368547758.08", "-92233720368547758.09", "1e30", 1e300, "1e5000", "1e999999"]
)
def test_more_than_the_wire_carries_is_refused(amount: str | float) -> None:
    """An amount of over 2^63 - 1 cents is a ValueError."""
    with pytest.raises(ValueError, match="more than the service carries"):
        cents(amount)


@given(st.text(max_size=20) | st.from_regex(r"\$?-?[0-9]{1,3}(\.[0-9]{1,3})?(e[+-]?[0-9]{1,3})?", fullmatch=True))
def test_any_text_is_an_amount_or_refused(text: str) -> None:
    """Nothing but a whole number of cents or a ValueError comes of a text."""
    refusal = ""
    price_cents = 0
    try:
        price_cents = cents(text)
    except ValueError as error:
        refusal = str(error)
    assert repr(text) in refusal or (not refusal and abs(price_cents) <= INT64_MAX)
