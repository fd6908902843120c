"""The uses of a request id as one operation."""

from dataclasses import replace

import pytest

from clients.load.history.operations import NEVER_NS, Lookup, Operation, Trade, Untold
from clients.load.history.retries import one_for_each_id
from stock_service.trading.model import Side, Status, TradeReply

DONE = TradeReply(Status.OK, 2, 1)
BUY = Trade("A", 2, Side.BUY, "x")
OTHER = replace(BUY, quantity=3)
PLAIN = replace(BUY, request_id="")

FIRST = Operation(BUY, DONE, 10, 40)
UNHEARD = Operation(BUY, Untold.UNKNOWN, 5, NEVER_NS)


def test_all_uses_count_as_one_that_was_sent_first_and_told_first() -> None:
    """All uses of an id become one operation. It lies between the first send and the first reply."""
    merged = one_for_each_id([FIRST, Operation(BUY, DONE, 12, 30), UNHEARD])
    assert merged == ([Operation(PLAIN, DONE, 5, 30)], [])


def test_who_was_refused_knows_that_the_other_trade_was_done() -> None:
    """A second trade with the id is refused. The refusal shows that the first trade was done, even if its reply was
    lost."""
    refused = Operation(OTHER, Untold.REFUSED, 20, 25)
    assert one_for_each_id([FIRST, refused]) == ([Operation(PLAIN, DONE, 10, 25)], [])
    assert one_for_each_id([UNHEARD, refused]) == ([Operation(PLAIN, Untold.UNKNOWN, 5, 25)], [])


def test_a_lost_use_for_another_trade_had_no_effect() -> None:
    """One trade with the id was answered. So a different trade with the id was never done."""
    assert one_for_each_id([FIRST, replace(UNHEARD, request=OTHER)]) == ([Operation(PLAIN, DONE, 10, 40)], [])


def test_several_trades_of_which_nothing_was_heard_may_each_have_been_done() -> None:
    """Several trades of an id without replies all stay, since each may have been done."""
    asked, found = one_for_each_id([UNHEARD, replace(UNHEARD, request=OTHER)])
    assert (len(asked), found) == (2, [])


@pytest.mark.parametrize(
    ("words", "operations"),
    [
        ("one id, and both", [FIRST, replace(FIRST, reply=TradeReply(Status.OK, 4, 2))]),
        ("one id, and both", [FIRST, replace(FIRST, request=OTHER)]),
        ("there is none", [Operation(BUY, Untold.REFUSED, 1, 2)]),
        ("there is none", [FIRST, Operation(BUY, Untold.REFUSED, 50, 60)]),
        ("before the trade was sent", [FIRST, Operation(OTHER, Untold.REFUSED, 1, 2)]),
        ("has not", [Operation(Lookup("A"), Untold.REFUSED, 1, 2)]),
    ],
)
def test_what_no_catalog_says_is_found(words: str, operations: list[Operation]) -> None:
    """Impossible replies are found: two replies to one id; a refusal that no trade explains; a refusal before the trade
    that explains it was sent."""
    _, found = one_for_each_id(operations)
    assert any(words in one for one in found), found
