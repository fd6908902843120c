"""Value types of the exchange: stock, side of a trade, outcome, and the replies of the three methods.

All values are immutable, so any thread may use a value without a lock. Replies are tuples: every request makes a reply,
and making a tuple takes half the time of making a dataclass. Prices are integers, in cents. ``dollars`` converts a
price to the text that people read. ``cents`` converts the dollars that people type to a price.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from enum import IntEnum
from typing import NamedTuple

NAME_LENGTH_MAX = 64
"""Largest number of characters in a stock's name, by the service's specification."""

REQUEST_ID_LENGTH_MAX = 64
"""Largest number of characters in a request_id, by the service's specification."""

QUANTITY_MAX = 2**31 - 1
"""Largest number of shares in one trade, by the service's specification."""

INT64_MAX = 2**63 - 1
"""Largest price, and largest volume, that an int64 field of the messages can have."""


class Side(IntEnum):
    """Direction of a trade. The enum ``Side`` of the protobuf messages has the same numbers."""

    BUY = 1
    SELL = 2


class Status(IntEnum):
    """Outcome of a request. The enum ``Status`` of the protobuf messages has the same numbers."""

    OK = 1
    SUSPENDED = 2
    UNKNOWN_STOCK = 3
    INVALID_PRICE = 4
    INVALID_QUANTITY = 5
    INVALID_SIDE = 6

    @property
    def assignment_code(self) -> int:
        """Number of the outcome in the course assignment: 1 done, 0 suspended, -1 unknown stock, -2 refused
        argument."""
        return {Status.OK: 1, Status.SUSPENDED: 0, Status.UNKNOWN_STOCK: -1}.get(self, -2)


@dataclass(frozen=True, slots=True)
class Stock:
    """State of a stock at one moment: price, in cents; volume and volume limit, in shares."""

    name: str
    price_cents: int
    volume_limit: int
    volume: int = 0


class LookupReply(NamedTuple):
    """Reply to a Lookup: price, volume, and number of the stock's last commit. All are 0 for an unknown stock."""

    status: Status
    price_cents: int = 0
    volume: int = 0
    sequence: int = 0


class TradeReply(NamedTuple):
    """Reply to a Trade: status, the stock's volume after the trade, and the number of the commit (0 for a refusal)."""

    status: Status
    volume: int = 0
    sequence: int = 0


class UpdateReply(NamedTuple):
    """Reply to an Update: status, and the number of the commit (0 for a refusal)."""

    status: Status
    sequence: int = 0


def dollars(price_cents: int) -> str:
    """Writes cents as dollars: ``1599`` → ``$15.99``."""
    return f"${price_cents // 100}.{price_cents % 100:02d}"


def within_reach(amount: Decimal) -> bool:
    """Returns True if computing with the amount is safe: the amount is finite, under 10^20, and has at most 30 decimal
    places.

    A larger amount fits into no field of a message, and converted to an integer it could fill the memory. The
    denominator of an amount with more decimal places could also fill the memory.
    """
    return not amount or (amount.adjusted() < 20 and int(amount.as_tuple().exponent) >= -30)


def cents(amount: str | float) -> int:
    """Converts dollars to cents, rounded half to even: ``"15.99"``, ``"$15.99"`` or ``15.99`` → 1599.

    Raises ValueError for a text that is no amount, for NaN and infinity, and for an amount over ``INT64_MAX`` cents.
    Accepts a negative amount, which the exchange refuses (``Status.INVALID_PRICE``).
    """
    if isinstance(amount, float) and not math.isfinite(amount):
        raise ValueError(f"no finite amount: {amount!r}")
    try:
        exact = Decimal(str(amount).strip().removeprefix("$"))
        if not exact.is_finite():
            raise ValueError(f"no finite amount: {amount!r}")
        if not within_reach(exact):
            raise ValueError(f"{'more' if abs(exact) > 1 else 'finer'} than the service carries: {amount!r}")
        price_cents = int((exact * 100).to_integral_value(ROUND_HALF_EVEN))
    except ArithmeticError as error:
        raise ValueError(f"no amount in dollars: {amount!r}") from error
    if abs(price_cents) > INT64_MAX:
        raise ValueError(f"more than the service carries: {amount!r}")
    return price_cents
