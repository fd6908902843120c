"""Check that a history is linearizable, by search. For each stock, the search looks for an order of the requests. The
order must agree with the real times of the requests, and must give the observed replies by the rules of trading.

The algorithm is Wing and Gong's ("Testing and Verifying Concurrent Objects", 1993), with Lowe's addition that tried
states are remembered ("Testing for Linearizability", 2017). The search builds an order step by step. The next request
may be any remaining request that was sent before the earliest return of all remaining requests. The search takes a
request if the sequential specification gives the reply that the client got. If no request can be taken, the search
undoes its last choice. If the same set of requests has led to the same state before, the search does not try this state
again.

Three rules make the search fast:

- A history is linearizable if the history of each stock is linearizable (Herlihy and Wing 1990). So the history of each
  stock is searched alone. All stocks share one sequence of commit numbers; this search checks only that the numbers
  rise. ``by_sequence.py`` checks that the sequence has no gaps.
- A request that changes nothing is taken as soon as possible: if the remaining requests have a legal order, they also
  have a legal order that begins with this request.
- Commit numbers only rise. So of the commits with a known number, only the commit with the lowest number may come next.

So in a history with known outcomes the search has no choices, and takes time in proportion to the history's length. A
request with an unknown outcome may have taken effect at any later moment, or never. The search tries the possible
moments.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from clients.load.history.operations import NEVER_NS, Lookup, Operation, Untold, is_commit
from clients.load.history.retries import one_for_each_id
from clients.load.history.sequential import refusal_of, sequentially
from stock_service.trading.model import LookupReply, Status, Stock

STATES_MAX = 2_000_000
"""Largest number of states that the search remembers for one stock: some 0.5 GB. The search does not decide a history
that needs more states."""


class Undecided(Exception):
    """Error of a search that would have to remember too many states, and therefore ends without a finding."""


class _State(NamedTuple):
    """A stock, and the number of its last commit. ``exact`` is False if the number is only a lower bound."""

    stock: Stock
    sequence: int
    """Number of the stock's last commit, or the lowest possible number."""
    exact: bool


def unexplained(
    stocks: Iterable[Stock], operations: Iterable[Operation], before: Mapping[str, int] | None = None
) -> list[str]:
    """A line for each fault: a false reply, or a stock whose requests have no legal order. The list is empty for a
    linearizable history. Raises Undecided.

    ``before``: as in ``History``.
    """
    started = {stock.name: stock for stock in stocks}
    one_each, found = one_for_each_id(operations)
    by_name: dict[str, list[Operation]] = {}
    for operation in one_each:
        by_name.setdefault(operation.request.name, []).append(operation)
    for name, history in by_name.items():
        stock = started.get(name)
        stateless, rest = _told_without_state(stock, history)
        found += stateless
        if stock is not None and not stateless:
            found += _Search(_State(stock, (before or {}).get(name, 0), True), rest).run()
    return found


def _told_without_state(stock: Stock | None, history: Sequence[Operation]) -> tuple[list[str], list[Operation]]:
    """Splits the requests to a stock. First result: faults of the replies to requests that every state of the stock
    refuses. Second result: the requests that the search must put in order. Requests without a known outcome that can
    change nothing are in neither result."""
    found, rest = [], []
    for operation in history:
        request, reply = operation.request, operation.reply
        refusal = Status.UNKNOWN_STOCK if stock is None else refusal_of(request)
        if isinstance(reply, Untold):
            if refusal is None and not isinstance(request, Lookup):
                rest.append(operation)
        elif refusal is None:
            rest.append(operation)
        elif reply != type(reply)(refusal):
            found.append(f"{request}: {reply}, expected {refusal.name}")
    return found, rest


@dataclass(slots=True)
class _Level:
    """A step of the search, to which the search can return. A step knows the request that was taken last, and the
    requests that were not yet tried as the next request."""

    place: int
    """Place of the request that was taken last; -1 at the start of the search."""
    state: _State
    highest: int
    """Highest place of a taken request; -1 at the start."""
    choices: Iterator[tuple[int, _State]]


class _Search:
    """Search of a legal order for one stock's requests. The place of a request is its number in the order of
    sending."""

    def __init__(self, start: _State, history: Sequence[Operation]) -> None:
        self._asked = sorted(history, key=lambda operation: operation.called_ns)
        count = len(self._asked)
        # a doubly linked list of the requests that are not taken yet; its ends are at the place ``count``
        self._next = [*range(1, count + 1), 0]
        self._previous = [count, *range(count)]
        known = [place for place in range(count) if is_commit(self._asked[place].reply)]
        self._commits = sorted(known, key=lambda place: self._asked[place].sequence)
        self._commits_taken = 0
        self._left = sum(operation.returned_ns < NEVER_NS for operation in self._asked)
        self._unsure = any(isinstance(operation.reply, Untold) for operation in self._asked)
        self._tried: set[tuple[int, tuple[int, ...], _State]] = set()
        self._stuck = (self._left + 1, "")
        self._start = start

    def run(self) -> list[str]:
        """Searches for a linearization: a legal sequence of the requests. Returns an empty list if a linearization
        exists. Else returns one line, which names the request at which the longest tried sequence ended. Raises
        Undecided."""
        levels = [_Level(-1, self._start, -1, iter(self._choices(self._start, -1)))]
        while self._left:
            level = levels[-1]
            choice = next(level.choices, None)
            if choice is not None:
                place, state = choice
                self._take(place)
                highest = max(level.highest, place)
                levels.append(_Level(place, state, highest, iter(self._choices(state, highest))))
                continue
            levels.pop()
            if not levels:
                left, told = self._stuck
                return [f"{told}, which no order explains; {left:,} of {len(self._asked):,} requests were left then"]
            self._put_back(level.place)
        return []

    def _choices(self, state: _State, highest: int) -> list[tuple[int, _State]]:
        """Requests that may be taken next, each with the stock's state after the request. Requests with known outcomes
        come first."""
        certain, unsure, passed = list[tuple[int, _State]](), list[tuple[int, _State]](), list[int]()
        end, deadline_ns, first_to_return = len(self._asked), NEVER_NS, -1
        place = self._next[end]
        while place != end and self._asked[place].called_ns <= deadline_ns:
            operation = self._asked[place]
            after = self._after(state, place)
            if after is state:
                return [(place, state)]
            if after is not None:
                (unsure if isinstance(operation.reply, Untold) else certain).append((place, after))
            if operation.returned_ns < deadline_ns:
                deadline_ns, first_to_return = operation.returned_ns, place
            if place < highest:
                passed.append(place)
            place = self._next[place]
        if not (certain or unsure) and 0 < self._left < self._stuck[0]:
            stuck = self._asked[first_to_return]
            self._stuck = (self._left, f"{stuck.request}: {stuck.reply}")
        return certain + unsure if self._is_new(highest, passed, state) else []

    def _is_new(self, highest: int, passed: Sequence[int], state: _State) -> bool:
        """True if the search reaches this state by these requests for the first time. In a history without unknown
        outcomes each step has one choice, so each step is new."""
        if not self._unsure:
            return True
        point = (highest, tuple(passed), state)
        if point in self._tried:
            return False
        if len(self._tried) == STATES_MAX:
            raise Undecided(f"more than {STATES_MAX:,} states about {state.stock.name}")
        self._tried.add(point)
        return True

    def _take(self, place: int) -> None:
        operation = self._asked[place]
        self._next[self._previous[place]] = self._next[place]
        self._previous[self._next[place]] = self._previous[place]
        self._left -= operation.returned_ns < NEVER_NS
        self._commits_taken += is_commit(operation.reply)

    def _put_back(self, place: int) -> None:
        operation = self._asked[place]
        self._next[self._previous[place]] = place
        self._previous[self._next[place]] = place
        self._left += operation.returned_ns < NEVER_NS
        self._commits_taken -= is_commit(operation.reply)

    def _after(self, state: _State, place: int) -> _State | None:
        """State after a request. If the request changes nothing, the result is the object ``state`` itself. None if the
        request cannot be taken next."""
        operation = self._asked[place]
        request, reply = operation.request, operation.reply
        stock, sequence, exact = state
        if isinstance(reply, Untold):
            after, _ = sequentially(stock, request, 0)
            if after is not stock:
                return _State(after, sequence + 1, exact=False)
            return state if operation.returned_ns < NEVER_NS else None
        after, expected = sequentially(stock, request, reply.sequence)
        if reply != expected:
            return None
        if isinstance(reply, LookupReply):
            if exact:
                return state if reply.sequence == sequence else None
            return _State(stock, reply.sequence, exact=True) if reply.sequence >= sequence else None
        if after is stock:
            return state
        its_turn = self._commits_taken < len(self._commits) and self._commits[self._commits_taken] == place
        return _State(after, reply.sequence, exact=True) if its_turn and reply.sequence > sequence else None
