"""Every catalog against the plainest model: a dictionary, a counter and a list, used by one thread."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stock_service.rpc.errors import InvalidRequest
from stock_service.trading import rules
from stock_service.trading.catalog import Catalog, MemoryCatalog
from stock_service.trading.locking import LOCKINGS
from stock_service.trading.model import Status, Stock
from tests.conformance.shared import Shared

STOCKS = (Stock("A", 100, 5), Stock("B", 200, 10**9))

Rule = Callable[[Stock, int], tuple[Stock, Status]]


def rule_on(rule: Rule, number: int, stock: Stock) -> tuple[Stock, Status]:
    """A rule as a step."""
    return rule(stock, number)


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
    """Compares the answers of a catalog of ``STOCKS`` with those of a dictionary."""
    model: dict[str, tuple[Stock, int]] = {stock.name: (stock, 0) for stock in STOCKS}
    commits = 0
    for kind, stock_name, number in requests:
        if kind == "read":
            assert catalog.read(stock_name) == model.get(stock_name)
            continue
        rule = rules.trade if kind == "trade" else rules.update
        changed = catalog.change(stock_name, partial(rule_on, rule, number))
        if stock_name not in model:
            assert changed is None
            continue
        before = model[stock_name][0]
        stock, status = rule(before, number)
        if status is Status.OK:
            commits += 1
            model[stock_name] = (stock, commits)
        assert changed == (model[stock_name], status)
    assert {stock.name: catalog.read(stock.name) for stock in STOCKS} == model


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1), st.booleans()), max_size=40), st.integers(1, 4))
@pytest.mark.parametrize("name", ["mutex", "shared"])
def test_it_remembers_exactly_its_window(name: str, uses: list[tuple[int, int, bool]], window: int) -> None:
    """Any row of uses of ids gets the answers of a list of the last so many first uses; those that raised are out."""
    with Shared() as shared:
        make = shared.in_turns if name == "shared" else partial(in_memory, name)
        remembers_exactly_its_window(make(STOCKS, window), uses, window)


def remembers_exactly_its_window(catalog: Catalog, uses: list[tuple[int, int, bool]], window: int) -> None:
    """Compares a catalog with such a list."""
    known: dict[str, tuple[int, str]] = {}
    for turn, (number, content, raises) in enumerate(uses):
        request_id = str(number)

        def answer(turn: int = turn, raises: bool = raises) -> str:
            if raises:
                raise ZeroDivisionError
            return f"reply {turn}"

        expected: str | type[Exception]
        if request_id in known:
            expected = known[request_id][1] if known[request_id][0] == content else InvalidRequest
        else:
            expected = ZeroDivisionError if raises else f"reply {turn}"
            known[request_id] = (content, f"reply {turn}")
            if len(known) > window:
                del known[next(iter(known))]
            if raises:
                del known[request_id]
        if isinstance(expected, str):
            assert catalog.once(request_id, content, answer) == expected
        else:
            with pytest.raises(expected):
                catalog.once(request_id, content, answer)
