"""Catalog files: a right file is read exactly. A wrong one is refused in one line with the place and the reason."""

import re
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stock_service.rpc.errors import UsageError
from stock_service.trading.catalog_file import DEFAULT_STOCKS, STOCKS_MAX, load
from stock_service.trading.model import INT64_MAX, Stock

ALL_NEEDED = "a value: name, price and volume_limit are all needed"
NAME = "a text of 1 to 64 characters"
PRICE = "dollars, 0 or more, with at most two decimals"
LIMIT = "a whole number of shares, from 0 to 2^63 - 1"
TABLES = f"1 to {STOCKS_MAX} tables [[stocks]]"

GOOD = '[[stocks]]\nname = "A"\nprice = 1\nvolume_limit = 10\n'


def one(name: str = '"A"', price: str = "1", limit: str = "10") -> str:
    """A file of one stock, its values as TOML."""
    return f"[[stocks]]\nname = {name}\nprice = {price}\nvolume_limit = {limit}\n"


def written(folder: Path, text: str | bytes) -> Path:
    """A file with this text."""
    path = folder / "catalog.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_default_catalog_is_the_assignments() -> None:
    """Four stocks, each with a limit of a million shares and nothing traded."""
    assert [stock.name for stock in DEFAULT_STOCKS] == ["GameStart", "FishCo", "BoarCo", "MenhirCo"]
    assert {stock.volume_limit for stock in DEFAULT_STOCKS} == {1_000_000}
    assert all(stock.price_cents > 0 and stock.volume == 0 for stock in DEFAULT_STOCKS)


def test_a_file_is_read_in_its_order(tmp_path: Path) -> None:
    """Prices are exact cents, with up to two decimals or none; names may be anything of 64 characters."""
    longest = "é" * 64
    text = one('"Zürich \\n 1"', "15.99", "0") + one(f'"{longest}"', "0", str(INT64_MAX)) + one('"A"', "1.10", "1_000")
    assert load(written(tmp_path, text)) == (
        Stock("Zürich \n 1", 1599, 0),
        Stock(longest, 0, INT64_MAX),
        Stock("A", 110, 1000),
    )


@pytest.mark.parametrize(
    ("price", "price_cents"),
    [("0.1", 10), ("0.10000", 10), ("1e2", 10_000), ("1e-2", 1), ("-0.0", 0), ("92233720368547758.07", INT64_MAX)],
)
def test_a_price_is_exact(tmp_path: Path, price: str, price_cents: int) -> None:
    """Every way to write an amount of whole cents is that amount."""
    assert load(written(tmp_path, one(price=price)))[0].price_cents == price_cents


BAD: dict[str, tuple[str, str, object, str]] = {
    # what is wrong: the file, then the place, what is there and what is allowed
    "empty": ("", "stocks", None, TABLES),
    "no stocks": ("stocks = []", "stocks", 0, TABLES),
    "one table": ("[stocks]\nname = 'A'", "stocks", {"name": "A"}, TABLES),
    "a stock is a number": ("stocks = [1]", "stocks[1]", 1, "a table with name, price and volume_limit"),
    "another key": ("limit = 3\n" + GOOD, "limit", 3, "no key but [[stocks]]"),
    "another key of a stock": (GOOD + "side = 1", "stocks[1].side", 1, "no key but name, price and volume_limit"),
    "no name": ("[[stocks]]\nprice = 1\nvolume_limit = 1", "stocks[1].name", None, ALL_NEEDED),
    "no price": ("[[stocks]]\nname = 'A'\nvolume_limit = 1", "stocks[1].price", None, ALL_NEEDED),
    "no limit": ("[[stocks]]\nname = 'A'\nprice = 1", "stocks[1].volume_limit", None, ALL_NEEDED),
    "second stock": (GOOD + "[[stocks]]\nname = 'B'\nprice = 1", "stocks[2].volume_limit", None, ALL_NEEDED),
    "name empty": (one(name='""'), "stocks[1].name", "", NAME),
    "name too long": (one(name=f'"{"x" * 65}"'), "stocks[1].name", "x" * 65, NAME),
    "name a number": (one(name="7"), "stocks[1].name", 7, NAME),
    "name twice": (GOOD + GOOD, "stocks[2].name", "A", "a name that no stock before it has"),
    "price negative": (one(price="-0.01"), "stocks[1].price", "-0.01", PRICE),
    "price of three decimals": (one(price="1.999"), "stocks[1].price", "1.999", PRICE),
    "price NaN": (one(price="nan"), "stocks[1].price", "NaN", PRICE),
    "price too large": (one(price="92233720368547758.08"), "stocks[1].price", "92233720368547758.08", PRICE),
    "price a text": (one(price='"1.50"'), "stocks[1].price", "1.50", PRICE),
    "price true": (one(price="true"), "stocks[1].price", True, PRICE),
    "limit negative": (one(limit="-1"), "stocks[1].volume_limit", -1, LIMIT),
    "limit too large": (one(limit=str(2**63)), "stocks[1].volume_limit", 2**63, LIMIT),
    "limit a text": (one(limit='"10"'), "stocks[1].volume_limit", "10", LIMIT),
    "limit a fraction": (one(limit="10.0"), "stocks[1].volume_limit", Decimal("10.0"), LIMIT),
    "limit true": (one(limit="true"), "stocks[1].volume_limit", True, LIMIT),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, fault: str) -> None:
    """The line names the file and the place in it, the given value and the allowed ones, and nothing else."""
    text, place, given_, allowed = BAD[fault]
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as refused:
        load(path)
    there = "missing" if given_ is None else f"got {given_!r}"
    assert str(refused.value) == f"{path}: {place}: {there}, allowed: {allowed}"
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_too_many_stocks_are_refused(tmp_path: Path) -> None:
    """The count is named, not the stocks."""
    path = written(tmp_path, f"stocks = [{'1,' * (STOCKS_MAX + 1)}]")
    with pytest.raises(UsageError, match=rf": stocks: got {STOCKS_MAX + 1}, allowed: {re.escape(TABLES)}$"):
        load(path)


def test_what_is_no_toml_is_refused_with_its_place(tmp_path: Path) -> None:
    """The line or byte is named, and the file, in one line."""
    for text, words in (
        (b"[[stocks]]\nname = ", "end of document"),
        (b"a = 1\n\nb = = 2", "line 3"),
        (b"name = 'A'\nname = 'B'\n", "line 2"),
        (b"\xff\xfe", "byte 0"),
        (b'name = "\xe9"', "byte 8"),
    ):
        path = written(tmp_path, text)
        with pytest.raises(UsageError) as refused:
            load(path)
        message = str(refused.value)
        assert message.startswith(f"--catalog: got {str(path)!r}, allowed: a file in ")
        assert words in message
        assert "\n" not in message


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A missing file and a folder are named, with the system's reason."""
    for path, reason in ((tmp_path / "none.toml", "No such file"), (tmp_path, "Is a directory")):
        said = re.escape(f"--catalog: got {str(path)!r}, allowed: a readable file ({reason}")
        with pytest.raises(UsageError, match=f"^{said}"):
            load(path)


HOSTILE = {
    "price past any decimal": one(price="1e999999"),
    "price past any exponent": one(price="1e99999999999999999999"),
    "price of a tiny fraction": one(price="1e-999999999"),
    "price of 33 decimals": one(price="0.010000000000000000000000000000001"),
    "limit of 5,000 digits": one(limit="1" * 5000),
    "price of 5,000 hexadecimal digits": one(price="0x" + "f" * 5000),
    "name of 100,000 characters": one(name=f'"{"x" * 100_000}"'),
    "nested 10,000 deep": "a = " + "[" * 10_000,
    "a key of two lines": '"a\\nb" = 1\n' + GOOD,
    "a stock's key of two lines": GOOD + '"a\\nb" = 1\n',
}


@pytest.mark.parametrize("fault", HOSTILE)
def test_a_file_made_to_break_the_reader_is_refused_in_one_line(tmp_path: Path, fault: str) -> None:
    """Numbers, names and nesting beyond all bounds end as any bad file does, in a line that can be read."""
    with pytest.raises(UsageError) as refused:
        load(written(tmp_path, HOSTILE[fault]))
    message = str(refused.value)
    assert str(tmp_path) in message
    assert "\n" not in message
    assert len(message) < 1000


VALUES = st.sampled_from(
    ["1", "-1", "0.5", "1.239", "nan", "true", "'A'", "''", "[]", "{}", "[[]]", "2020-01-01", "{name = 'A'}", "1e40"]
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.just("[[stocks]]"),
            st.builds("{} = {}".format, st.sampled_from(["name", "price", "volume_limit", "stocks", "x"]), VALUES),
        ),
        max_size=8,
    ).map("\n".join)
    | st.text(max_size=30)
)
def test_any_file_is_stocks_or_one_line(tmp_path: Path, text: str) -> None:
    """No file ends in anything but stocks that are valid, or a refusal of one line."""
    path = written(tmp_path, text.encode("utf-8", "surrogatepass"))
    stocks: tuple[Stock, ...] = ()
    refusal = ""
    try:
        stocks = load(path)
    except UsageError as error:
        refusal = str(error)
    assert bool(stocks) != bool(refusal)
    assert "\n" not in refusal
    if stocks:
        assert len(tomllib.loads(path.read_text(encoding="utf-8"))["stocks"]) == len(stocks)
        assert all(0 < len(stock.name) <= 64 and 0 <= stock.price_cents <= INT64_MAX for stock in stocks)
