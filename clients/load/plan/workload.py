"""Workload: a seeded, endless sequence of requests for each connection, encoded before the run begins.

Each connection repeats 4096 requests, which are drawn at random from the mix. The stock of each request is drawn
uniformly, or by Zipf's law (Zipf 1949). By Zipf's law, the probability of the k-th stock is in proportion to 1 ÷ k^s.
By chance, the share of a request type among a connection's requests differs from the type's weight by some 2 percentage
points at most. The requests of a connection depend only on the plan, the client's number and the connection's number.

Every reply is checked. Each request type remembers up to ``REMEMBERED_MAX`` different valid replies. If a reply's bytes
are remembered, the check costs only one lookup in a dictionary.
"""

import random
from collections.abc import Callable, Iterator
from itertools import accumulate, cycle, product
from typing import NamedTuple

from clients import replies
from clients.load.plan.load_plan import LoadPlan, RequestType
from clients.load.plan.outcomes import INVALID_REPLY, TYPE_STEP
from stock_service.rpc.errors import InternalFault
from stock_service.trading.service import LOOKUP, TRADE, UPDATE
from stock_service.v1 import stock_pb2

CYCLE = 4096
"""Number of requests that a connection draws once, and then repeats."""

REMEMBERED_MAX = 1024
"""Largest number of valid replies that a request type remembers. These replies take a tenth of a megabyte."""

PRICES_PER_STOCK = 4
"""Number of Updates, with random prices, that are drawn for each stock."""


class Request(NamedTuple):
    """A request ready to be sent. The class is a tuple, since the hot loop unpacks every request."""

    path: str
    payload: bytes
    known: dict[bytes, int]
    """Outcomes of the remembered valid replies, by the reply's bytes."""
    check: Callable[[bytes], int]
    """Function that takes a reply's bytes and returns the outcome. The function may add a valid reply to ``known``. The
    function raises no Fault."""
    first: int
    """Offset of the request type's outcomes (``outcomes.py``)."""


class Workload:
    """Workload of one client process. Each connection's iterator may be used in a different thread."""

    def __init__(self, plan: LoadPlan) -> None:
        self._seed = plan.seed
        self.population: list[Request] = []
        """All requests to draw from: one for each payload of each request type in the mix."""
        weights: list[float] = []
        own = {request_type.name: request_type for request_type in plan.request_types}
        for place, (name, weight) in enumerate(plan.mix.items()):
            chosen = own.get(name) or _stock_request(name, plan)
            known: dict[bytes, int] = {}
            first = place * TYPE_STEP
            check = _checker(chosen.check, known, first)
            self.population += [Request(chosen.path, payload, known, check, first) for payload in chosen.payloads]
            weights += _shares(weight, len(chosen.payloads), 0 if name in own else len(plan.stocks), plan)
        self._cumulated = list(accumulate(weights))

    def requests(self, client: int, connection: int) -> Iterator[Request]:
        """Endless sequence of one connection's requests. ``connection`` is the connection's number in the client."""
        return cycle([self.population[place] for place in self.drawn(client, connection)])

    def drawn(self, client: int, connection: int) -> list[int]:
        """Draws the ``CYCLE`` requests that one connection repeats, as indices of ``population``. Takes about a
        millisecond."""
        rng = random.Random(f"{self._seed}/{client}/{connection}")
        return rng.choices(range(len(self.population)), cum_weights=self._cumulated, k=CYCLE)


def _shares(weight: float, payloads: int, stocks: int, plan: LoadPlan) -> list[float]:
    """Divides the weight of a request type among the type's payloads. The payloads are in the order of the stocks, and
    every stock has equally many payloads. If ``stocks`` is 0, every payload counts as a stock of its own.
    """
    ranked = stocks or payloads
    exponent = plan.zipf_s if plan.choice == "zipf" else 0.0
    popularity = [(place + 1) ** -exponent for place in range(ranked)]
    each = payloads // ranked
    share = weight / (sum(popularity) * each)
    return [share * of for of in popularity for _ in range(each)]


def remember(known: dict[bytes, int], reply: bytes, outcome: int) -> None:
    """Keeps the outcome of a valid reply in ``known``. If ``known`` is full, forgets all other replies first.
    Thread-safe."""
    if len(known) >= REMEMBERED_MAX:
        known.clear()
    known[reply] = outcome


def _checker(check: Callable[[bytes], int], known: dict[bytes, int], first: int) -> Callable[[bytes], int]:
    """Makes a ``Request.check`` from the ``check`` of a request type."""

    def checked(reply: bytes) -> int:
        try:
            outcome = first + check(reply)
        except InternalFault:
            return first + INVALID_REPLY
        remember(known, reply, outcome)
        return outcome

    return checked


def _stock_request(name: str, plan: LoadPlan) -> RequestType:
    """Makes a request type of the stock service, with payloads for every stock of the plan."""
    messages: list[stock_pb2.LookupRequest] | list[stock_pb2.TradeRequest] | list[stock_pb2.UpdateRequest]
    match name:
        case "lookup":
            path, check = LOOKUP, _lookup_status
            messages = [stock_pb2.LookupRequest(name=stock) for stock in plan.stocks]
        case "trade":
            path, check = TRADE, _trade_status
            sides = (stock_pb2.SIDE_BUY, stock_pb2.SIDE_SELL)
            messages = [
                stock_pb2.TradeRequest(name=stock, quantity=plan.quantity, side=side)
                for stock, side in product(plan.stocks, sides)
            ]
        case _:
            path, check = UPDATE, _update_status
            rng = random.Random(plan.seed)
            messages = [
                stock_pb2.UpdateRequest(name=stock, price_cents=rng.randint(1_00, 200_00))
                for stock in plan.stocks
                for _ in range(PRICES_PER_STOCK)
            ]
    return RequestType(name, path, tuple(message.SerializeToString() for message in messages), check)


def _lookup_status(payload: bytes) -> int:
    return replies.lookup(payload).status


def _trade_status(payload: bytes) -> int:
    return replies.trade(payload).status


def _update_status(payload: bytes) -> int:
    return replies.update(payload).status
