"""The search for an order of a stock's requests."""

import random

import pytest

from clients.load.history import search
from clients.load.history.operations import NEVER_NS, Lookup, Operation, Trade, Untold
from clients.load.history.search import Undecided, unexplained
from stock_service.trading.model import LookupReply, Status, Stock, TradeReply
from tests.races.every_order import STOCK, drawn, explained

OK = Status.OK

LARGE = Stock("A", 5, 1000)


@pytest.mark.slow
def test_it_agrees_with_trying_every_order(rng: random.Random) -> None:
    """The search accepts a history exactly if some order of the operations explains the replies. Both kinds of history
    are drawn."""
    said = set()
    for _ in range(400):
        history = drawn(rng)
        said.add(legal := explained(history))
        assert (not unexplained([STOCK], history)) == legal, history
    assert said == {True, False}


def lost(quantity: int, called_ns: int = 0) -> Operation:
    """A trade without a reply."""
    return Operation(Trade("A", quantity), Untold.UNKNOWN, called_ns, NEVER_NS)


def test_a_lost_trade_may_have_been_done_at_any_time_or_never() -> None:
    """A lost trade explains a volume long after the send, but no volume before the send, and not twice."""
    seen = Operation(Lookup("A"), LookupReply(OK, 5, 7, 3), 100, 110)
    assert unexplained([LARGE], [lost(7)]) == []
    assert unexplained([LARGE], [lost(7), seen]) == []
    assert unexplained([LARGE], [lost(7, called_ns=120), seen])
    doubled = Operation(Lookup("A"), LookupReply(OK, 5, 14, 3), 100, 110)
    assert unexplained([LARGE], [lost(7), doubled])
    assert unexplained([LARGE], [lost(7), lost(7), doubled]) == []


def test_what_no_order_explains_is_named() -> None:
    """A line names the request without a place, and the number of remaining requests."""
    traded = Operation(Trade("A", 2), TradeReply(OK, 2, 1), 0, 9)
    stale = Operation(Lookup("A"), LookupReply(OK, 5, 0, 0), 10, 19)
    (said,) = unexplained([LARGE], [traded, stale])
    assert "Lookup(name='A')" in said
    assert "1 of 2 requests were left" in said


def test_every_stock_is_searched_and_unknown_ones_too() -> None:
    """Each wrong stock has a line."""
    unknown = Operation(Lookup("C"), LookupReply(OK, 5, 0, 0), 0, 1)
    stale = Operation(Lookup("A"), LookupReply(OK, 6, 0, 0), 0, 1)
    assert len(unexplained([LARGE], [unknown, stale])) == 2


def test_a_search_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search gives up on many lost trades of different quantities, of which only some add up to the seen volume."""
    monkeypatch.setattr(search, "STATES_MAX", 1000)
    every = [lost(1 + power) for power in range(12)]
    seen = Operation(Lookup("A"), LookupReply(OK, 6, 511, 12), 100, 110)
    with pytest.raises(Undecided, match="1,000 states about A"):
        unexplained([LARGE], [*every, seen])
