"""Verdicts on a history, and the JSON of a history."""

import json
from dataclasses import replace

from clients.load.history.as_json import to_json
from clients.load.history.operations import NEVER_NS, History, Lookup, Operation, Trade, Untold
from clients.load.history.verdict import judged, limit_told
from stock_service.trading.model import INT64_MAX, LookupReply, Side, Status, Stock, TradeReply

OK = Status.OK
STOCK = Stock("A", 5, 100, 3)

TRADED = Operation(Trade("A", 2), TradeReply(OK, 5, 8), 0, 20)
SEEN = Operation(Lookup("A"), LookupReply(OK, 5, 5, 8), 10, 30)
HISTORY = History((STOCK,), {"A": 4}, (TRADED, SEEN))
"""The catalog has other stocks, whose commits are 5 to 7."""


def test_a_wrong_one_is_not() -> None:
    """A stale Lookup is found. So is a stale Lookup that only the commit numbers of several stocks show."""
    stale = Operation(Lookup("A"), LookupReply(OK, 5, 3, 4), 25, 30)
    assert judged(replace(HISTORY, operations=(TRADED, SEEN, stale))).finding == "not linearizable"
    doubled = Operation(Trade("B", 1), TradeReply(OK, 1, 8), 0, 20)
    of_two = History((STOCK, Stock("B", 5, 100)), {"A": 4}, (TRADED, SEEN, doubled))
    assert judged(of_two).finding == "not linearizable"


def test_one_without_overlap_is_vacuous() -> None:
    """A history of requests that followed one another shows nothing. Where two overlapped, both judges accept it."""
    assert judged(HISTORY).finding == "linearizable"
    later = replace(SEEN, called_ns=21)
    found = judged(replace(HISTORY, operations=(TRADED, later)))
    assert (found.finding, found.contended) == ("vacuous", 0.0)


def test_retries_of_one_trade_are_no_conflict() -> None:
    """Retries of one trade are one request, without a conflict."""
    uses = [Operation(Trade("A", 2, request_id="x"), TradeReply(OK, 5, 8), start, start + 20) for start in range(3)]
    found = judged(replace(HISTORY, operations=uses))
    assert (found.finding, found.contended, found.requests) == ("vacuous", 0.0, 3)


def test_one_of_which_little_was_told_is_vacuous() -> None:
    """A few answered requests that overlapped show nothing about many requests without a reply."""
    lost = [Operation(Trade("A", 7), Untold.UNKNOWN, 40, NEVER_NS)] * 5
    found = judged(replace(HISTORY, operations=(TRADED, SEEN, *lost)))
    assert (found.finding, found.contended, found.unknown) == ("vacuous", 2 / 7, 5)


def test_an_unknown_outcome_leaves_it_to_the_search() -> None:
    """A lost trade has a commit number that no reply tells. The search alone judges such a history."""
    lost = replace(TRADED, reply=Untold.UNKNOWN, returned_ns=NEVER_NS)
    beside = Operation(Trade("A", 7), TradeReply(OK, 12, 9), 0, 20)
    during = Operation(Lookup("A"), LookupReply(OK, 5, 5, 8), 0, 20)
    found = judged(replace(HISTORY, operations=(lost, during, beside)))
    assert (found.finding, found.unknown) == ("linearizable", 1)


def test_a_limit_is_what_the_refusals_leave() -> None:
    """The limit is the volume at which a stock is suspended. Without this volume, the limit is the largest value that
    refuses every refused trade."""
    assert limit_told("A", [TRADED, SEEN]) == INT64_MAX
    refused = Operation(Trade("A", 10), TradeReply(Status.SUSPENDED, 95), 0, 1)
    assert limit_told("A", [TRADED, refused]) == 104
    suspended = Operation(Lookup("A"), LookupReply(Status.SUSPENDED, 5, 99, 9), 0, 1)
    assert limit_told("A", [refused, suspended]) == 99


def test_json_has_all_of_it() -> None:
    """The JSON has each stock's first state, and every request with its outcome."""
    lost = Operation(Trade("A", 2, Side.SELL, "x"), Untold.UNKNOWN, 7, NEVER_NS)
    document = json.loads(to_json(replace(HISTORY, operations=(SEEN, lost))))
    assert document["stocks"] == [{"name": "A", "price_cents": 5, "volume_limit": 100, "volume": 3, "sequence": 4}]
    seen, unheard = document["operations"]
    assert seen == {
        "kind": "lookup",
        "request": {"name": "A"},
        "called_ns": 10,
        "returned_ns": 30,
        "end": "told",
        "reply": {"status": 1, "price_cents": 5, "volume": 5, "sequence": 8},
    }
    assert unheard["request"] == {"name": "A", "quantity": 2, "side": 2, "request_id": "x"}
    assert (unheard["end"], unheard["returned_ns"]) == ("unknown", None)
