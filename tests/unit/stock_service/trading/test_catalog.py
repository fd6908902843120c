"""Every catalog against the plainest model: a dictionary, a counter and a list, used by one thread."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stock_service.rpc.errors import InvalidRequest
from stock_service.trading import rules
from stock_service.trading.catalog import Catalog, MemoryCatalog
from stock_service.trading.locking import LOCKINGS
from stock_service.trading.model import Status, Stock
from stock_service.trading.once import Changed, Once
from tests.conformance.shared import Shared

ROOT = Path(__file__).resolve().parents[4]

STOCKS = (Stock("A", 100, 5), Stock("B", 200, 10**9))

Rule = Callable[[Stock, int], tuple[Stock, Status]]


def rule_on(rule: Rule, number: int, stock: Stock | None) -> tuple[Stock | None, Status]:
    """A rule as a step."""
    return rule(stock, number) if stock else rules.UNKNOWN


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["read", "trade", "update"]), st.sampled_from(["A", "B", "C", ""]), st.integers(1, 4)
        ),
        max_size=40,
    )
)
@pytest.mark.parametrize("name", [*LOCKINGS, "shared"])
def test_it_answers_as_a_dictionary_would(name: str, requests: list[tuple[str, str, int]]) -> None:
    """Any row of requests gets the answers of a dictionary of stocks and a counter of commits."""
    with Shared() as shared:
        make = shared.in_turns if name == "shared" else partial(in_memory, name)
        answers_as_a_dictionary_would(make(STOCKS, 10), requests)


def in_memory(name: str, stocks: Sequence[Stock], retry_window: int) -> Catalog:
    """A catalog in memory with a locking strategy of that name."""
    return MemoryCatalog(stocks, LOCKINGS[name], retry_window)


def answers_as_a_dictionary_would(catalog: Catalog, requests: list[tuple[str, str, int]]) -> None:
    """Compares the replies of a catalog of ``STOCKS`` with those of a dictionary."""
    model: dict[str, tuple[Stock, int]] = {stock.name: (stock, 0) for stock in STOCKS}
    commits = 0
    for kind, stock_name, number in requests:
        if kind == "read":
            assert catalog.read(stock_name) == model.get(stock_name)
            continue
        rule = rules.trade if kind == "trade" else rules.update
        changed = catalog.change(stock_name, partial(rule_on, rule, number))
        before = model[stock_name][0] if stock_name in model else None
        stock, status = rule_on(rule, number, before)
        if status is Status.OK:
            commits += 1
            assert stock is not None
            model[stock_name] = (stock, commits)
        assert changed == (status, 0 if stock is None else stock.volume, commits if status is Status.OK else 0)
    assert {stock.name: catalog.read(stock.name) for stock in STOCKS} == model


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1), st.booleans()), max_size=40), st.integers(1, 4))
@pytest.mark.parametrize("name", ["mutex", "shared"])
def test_it_remembers_exactly_its_window(name: str, uses: list[tuple[int, int, bool]], window: int) -> None:
    """Any row of uses of ids gets the replies of a list of the last first uses, without those that raised."""
    with Shared() as shared:
        make = shared.in_turns if name == "shared" else partial(in_memory, name)
        remembers_exactly_its_window(make(STOCKS, window), uses, window)


def remembers_exactly_its_window(catalog: Catalog, uses: list[tuple[int, int, bool]], window: int) -> None:
    """Compares a catalog with such a list."""
    known: dict[str, tuple[int, Changed]] = {}
    commits = 0
    for number, content, raises in uses:
        request_id = str(number)

        def step(stock: Stock | None, raises: bool = raises) -> tuple[Stock | None, Status]:
            if raises:
                raise ZeroDivisionError
            return rule_on(rules.trade, 1, stock)

        expected: Changed | type[Exception]
        if request_id in known:
            expected = known[request_id][1] if known[request_id][0] == content else InvalidRequest
        elif raises:
            expected = ZeroDivisionError
        else:
            commits += 1
            expected = (Status.OK, commits, commits)
            known[request_id] = (content, expected)
            if len(known) > window:
                del known[next(iter(known))]
        if isinstance(expected, tuple):
            assert catalog.change("B", step, Once(request_id, str(content))) == expected
        else:
            with pytest.raises(expected):
                catalog.change("B", step, Once(request_id, str(content)))


FILL = """
import psutil
from stock_service.trading.model import Status
from stock_service.trading.once import RETRY_WINDOW, Once, Remembered, key_of, record_of

remembered = Remembered(RETRY_WINDOW)
before = psutil.Process().memory_info().rss
for number in range(RETRY_WINDOW * 5 // 2):
    once = Once(f"{number:064d}", "1 1000000 GameStart of a long name")
    remembered.keep(key_of(once), record_of(once, (Status.OK, 10**9 + number, number)))
assert len(remembered) == RETRY_WINDOW
print(psutil.Process().memory_info().rss - before)
"""


@pytest.mark.slow
def test_what_is_remembered_takes_little_memory() -> None:
    """100,000 ids of 64 characters take at most 25 MiB of a process, with the memory of forgotten ids."""
    done = subprocess.run([sys.executable, "-c", FILL], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 25 * 2**20
