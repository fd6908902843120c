"""Initial stocks of a catalog: the four default stocks, or the stocks of a TOML file.

    [[stocks]]
    name = "GameStart"
    price = 15.99            # dollars, at most two decimals
    volume_limit = 1000000   # shares

``load`` refuses a file that has any fault. The error names the file, the place in the file, the given value and the
allowed values.
"""

import tomllib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from stock_service.rpc.errors import UsageError
from stock_service.trading.model import INT64_MAX, NAME_LENGTH_MAX, Stock, within_reach

DEFAULT_VOLUME_LIMIT = 1_000_000
"""Largest volume of a default stock in a day, in shares. The service's specification gives this number."""

DEFAULT_STOCKS = (
    Stock("GameStart", 1599, DEFAULT_VOLUME_LIMIT),
    Stock("FishCo", 4250, DEFAULT_VOLUME_LIMIT),
    Stock("BoarCo", 875, DEFAULT_VOLUME_LIMIT),
    Stock("MenhirCo", 10120, DEFAULT_VOLUME_LIMIT),
)

STOCKS_MAX = 100_000
"""Largest number of stocks in a catalog. With this limit a wrong file cannot fill the memory."""

_KEYS = {"name", "price", "volume_limit"}


def load(path: Path) -> tuple[Stock, ...]:
    """Reads the stocks of a file, in the file's order. Raises UsageError, which names the file and the line or key."""
    file = str(path)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise UsageError("--catalog", file, f"a readable file ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UsageError("--catalog", file, f"a file in UTF-8 (byte {error.start} is not)") from error
    except (ValueError, ArithmeticError, RecursionError) as error:  # TOMLDecodeError, and tomllib's other errors
        raise UsageError("--catalog", file, f"a file in TOML ({error})") from error
    unknown = document.keys() - {"stocks"}
    if unknown:
        raise UsageError(f"{file}: {min(unknown)}", document[min(unknown)], "no key but [[stocks]]")
    entries = document.get("stocks")
    if not isinstance(entries, list) or not entries or len(entries) > STOCKS_MAX:
        given = len(entries) if isinstance(entries, list) else entries
        raise UsageError(f"{file}: stocks", given, f"1 to {STOCKS_MAX} tables [[stocks]]")
    stocks: dict[str, Stock] = {}
    for number, entry in enumerate(entries, start=1):
        stock = _stock(f"{file}: stocks[{number}]", entry)
        if stock.name in stocks:
            raise UsageError(f"{file}: stocks[{number}].name", stock.name, "a name that no stock before it has")
        stocks[stock.name] = stock
    return tuple(stocks.values())


def _stock(place: str, entry: object) -> Stock:
    """Makes the stock of one table of the file. ``place`` names the table in an error. Raises UsageError."""
    if not isinstance(entry, dict):
        raise UsageError(place, entry, "a table with name, price and volume_limit")
    for key in sorted(entry.keys() ^ _KEYS):
        if key in _KEYS:
            raise UsageError(f"{place}.{key}", None, "a value: name, price and volume_limit are all needed")
        raise UsageError(f"{place}.{key}", entry[key], "no key but name, price and volume_limit")
    name, limit = entry["name"], entry["volume_limit"]
    if not isinstance(name, str) or not 0 < len(name) <= NAME_LENGTH_MAX:
        raise UsageError(f"{place}.name", name, f"a text of 1 to {NAME_LENGTH_MAX} characters")
    if type(limit) is not int or not 0 <= limit <= INT64_MAX:
        raise UsageError(f"{place}.volume_limit", limit, "a whole number of shares, from 0 to 2^63 - 1")
    return Stock(name, _price_cents(f"{place}.price", entry["price"]), limit)


def _price_cents(place: str, price: object) -> int:
    """Converts a price of the file to cents. ``place`` names the price in an error. Raises UsageError."""
    price_cents = Fraction(-1)
    if type(price) is int or (isinstance(price, Decimal) and price.is_finite() and within_reach(price)):
        price_cents = Fraction(price) * 100
    if price_cents.denominator != 1 or not 0 <= price_cents <= INT64_MAX:
        given = str(price) if isinstance(price, Decimal) else price
        raise UsageError(place, given, "dollars, 0 or more, with at most two decimals")
    return int(price_cents)
