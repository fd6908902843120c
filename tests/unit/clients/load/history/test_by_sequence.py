"""The checker of histories itself: it agrees with trying every order, and names each kind of fault."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.load.history.by_sequence import violations
from clients.load.history.operations import Lookup, Operation, Reply, Request, Trade, Untold, Update, contended
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex
from stock_service.trading.model import LookupReply, Side, Status, Stock, TradeReply, UpdateReply
from tests.races.history import answer

STOCKS = (Stock("A", 5, 3), Stock("B", 5, 100))
OK = Status.OK

REQUESTS: st.SearchStrategy[Request] = st.one_of(
    st.builds(Lookup, st.sampled_from(["A", "B", "C"])),
    st.builds(
        Trade,
        st.sampled_from(["A", "B", "C"]),
        st.integers(0, 3),
        st.sampled_from([1, 2, 3]),
        st.sampled_from(["", "x"]),
    ),
    st.builds(Update, st.sampled_from(["A", "B"]), st.integers(-1, 2)),
)


def same_id_same_content(requests: Sequence[Request]) -> list[Request]:
    """The requests, where every use of an id has the content of the first use."""
    first: dict[str, Trade] = {}
    return [
        first.setdefault(request.request_id, request) if isinstance(request, Trade) and request.request_id else request
        for request in requests
    ]


def legal_in_some_order(operations: Sequence[Operation]) -> bool:
    """True if some order that real time allows gives every reply, on a new exchange."""
    for order in itertools.permutations(operations):
        if any(later.returned_ns < earlier.called_ns for earlier, later in itertools.combinations(order, 2)):
            continue
        exchange = Exchange(MemoryCatalog(STOCKS, Mutex))
        if all(answer(exchange, operation.request) == operation.reply for operation in order):
            return True
    return False


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Up to five operations with the replies of one order, random times, and sometimes a wrong reply."""
    requests = same_id_same_content(draw(st.lists(REQUESTS, min_size=1, max_size=5)))
    exchange = Exchange(MemoryCatalog(STOCKS, Mutex))
    operations = []
    for number, request in enumerate(requests):
        called_ns = draw(st.integers(10 * number - 15, 10 * number))
        returned_ns = draw(st.integers(called_ns, 10 * number + 15))
        operations.append(Operation(request, answer(exchange, request), called_ns, returned_ns))
    if draw(st.booleans()):
        chosen = draw(st.integers(0, len(operations) - 1))
        reply = operations[chosen].reply
        assert not isinstance(reply, Untold)
        operations[chosen] = replace(operations[chosen], reply=draw(other_replies(reply)))
    return operations


def other_replies(reply: Reply) -> st.SearchStrategy[Reply]:
    """Replies with one number or the status changed."""
    numbers = st.integers(0, 4)
    changes: list[st.SearchStrategy[Reply]] = [
        st.builds(lambda sequence: reply._replace(sequence=sequence), numbers),
        st.builds(lambda status: reply._replace(status=status), st.sampled_from(Status)),
    ]
    if not isinstance(reply, UpdateReply):
        changes.append(st.builds(lambda volume: reply._replace(volume=volume), numbers))
    return st.one_of(changes)


@pytest.mark.slow
@settings(max_examples=300)
@given(histories())
def test_it_agrees_with_trying_every_order(history: list[Operation]) -> None:
    """The checker accepts a history exactly if some order of the operations gives the replies."""
    assert (not violations(STOCKS, history)) == legal_in_some_order(history)


def at(called_ns: int, returned_ns: int, request: Request, reply: Reply) -> Operation:
    """An operation."""
    return Operation(request, reply, called_ns, returned_ns)


FIRST = at(0, 9, Trade("B", 2), TradeReply(OK, 2, 1))
SECOND = at(10, 19, Trade("B", 3), TradeReply(OK, 5, 2))
RETRY = Trade("A", 4, Side.BUY, "x")

FAULTS: dict[str, tuple[str, list[Operation]]] = {
    "gap": ("commit 2 is missing", [FIRST, replace(SECOND, reply=TradeReply(OK, 5, 3))]),
    "number used twice": ("commit 2 is missing", [FIRST, replace(SECOND, reply=TradeReply(OK, 5, 1))]),
    "lost trade": ("expected TradeReply", [FIRST, replace(SECOND, reply=TradeReply(OK, 3, 2))]),
    "over the limit": ("expected TradeReply", [at(0, 9, Trade("A", 4), TradeReply(OK, 4, 1))]),
    "numbers against real time": ("had been seen before", [replace(FIRST, called_ns=20, returned_ns=29), SECOND]),
    "stale lookup": ("had been seen before", [FIRST, at(10, 19, Lookup("B"), LookupReply(OK, 5, 0, 0))]),
    "lookup of the future": (
        "had been seen before",
        [at(0, 4, Lookup("B"), LookupReply(OK, 5, 2, 1)), replace(FIRST, called_ns=5)],
    ),
    "lookups that go back": (
        "had been seen before",
        [
            replace(FIRST, returned_ns=99),
            at(1, 2, Lookup("B"), LookupReply(OK, 5, 2, 1)),
            at(3, 4, Lookup("B"), LookupReply(OK, 5, 0, 0)),
        ],
    ),
    "torn lookup": ("expected LookupReply", [FIRST, at(10, 19, Lookup("B"), LookupReply(OK, 5, 1, 1))]),
    "lookup of another's commit": ("none of that stock", [FIRST, at(10, 19, Lookup("A"), LookupReply(OK, 5, 0, 1))]),
    "refused with room": ("expected TradeReply", [at(0, 9, Trade("A", 3), TradeReply(Status.SUSPENDED, 0, 0))]),
    "refused at no such volume": ("never was", [at(0, 9, Trade("A", 4), TradeReply(Status.SUSPENDED, 1, 0))]),
    "two replies for an id": (
        "both",
        [at(0, 9, RETRY, TradeReply(Status.SUSPENDED)), at(10, 19, RETRY, TradeReply(Status.INVALID_SIDE))],
    ),
    "a fault that commits": ("can change nothing", [at(0, 9, Trade("A", 0), TradeReply(OK, 0, 1))]),
    "an update without a number": ("not committed", [at(0, 9, Update("A", 7), UpdateReply(OK, 0))]),
    "wrong refusal": ("expected", [at(0, 9, Update("C", -1), UpdateReply(Status.INVALID_PRICE))]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_named(fault: str) -> None:
    """Each kind of illegal history is refused with the name of its fault."""
    words, history = FAULTS[fault]
    found = violations(STOCKS, history)
    assert any(words in one for one in found), found


def test_contention_is_overlap_with_a_commit() -> None:
    """Overlapping Lookups are not contention, and neither are trades that follow one another."""
    lookups = [at(0, 9, Lookup("B"), LookupReply(OK, 5, 0, 0))] * 2
    assert contended(lookups) == 0
    assert contended([FIRST, SECOND]) == 0
    assert contended([FIRST, replace(SECOND, called_ns=5)]) == 1
    assert contended([FIRST, lookups[0], at(0, 9, Lookup("A"), LookupReply(OK, 5, 0, 0))]) == pytest.approx(2 / 3)
