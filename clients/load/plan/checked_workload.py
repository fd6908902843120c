"""Workload of a checked run (``--check``): each request is drawn, sent and kept once, with the reply.

Requests come in the proportions of the plan's mix. Trades differ in quantity and side. Half of the trades have a
request_id. ``SHARED_BY`` connections use each request_id for one trade, at about one time. Every reply is decoded. The
kept times are a few microseconds wider than the call. A wider time never makes a correct history look wrong.

Bounded: all connections together keep ``HISTORY_MAX`` requests. After its share of these requests, a connection sends
only Lookups. These Lookups change no stock and are not kept.
"""

import random
import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from zlib import crc32

from clients import replies
from clients.load.history.operations import NEVER_NS, Lookup, Operation, Reply, Request, Trade, Untold, Update
from clients.load.plan import workload
from clients.load.plan.load_plan import Check, LoadPlan
from clients.load.plan.outcomes import INVALID_REPLY, TYPE_STEP
from stock_service.rpc.errors import Fault, InternalFault, InvalidRequest, Overloaded
from stock_service.trading.model import LookupReply, Side, Status, TradeReply, UpdateReply
from stock_service.trading.service import LOOKUP, TRADE, UPDATE
from stock_service.v1 import stock_pb2

HISTORY_MAX = 2**18
"""Most requests that a run keeps: 100 MB. At most half of the requests have ids, and a catalog remembers 100,000
ids."""

SHARED_BY = 3
"""Number of connections that share a request_id."""

_NONE_KNOWN: dict[bytes, int] = {}
"""Dictionary of known replies that stays empty, so that every reply is checked."""


class Asked:
    """A request under way, and later its reply. The load client calls this object as the function that checks a reply.
    For one thread."""

    __slots__ = ("_called_ns", "_clock_ns", "_dropped", "_first", "_reply", "_request", "_returned_ns")

    def __init__(self, request: Request, first: int, clock_ns: Callable[[], int]) -> None:
        """``first`` is the number of the request type's first outcome. The request counts as sent from now on."""
        self._request = request
        self._first = first
        self._clock_ns = clock_ns
        self._reply: Reply | Untold = Untold.UNKNOWN
        self._returned_ns = NEVER_NS
        self._dropped = False
        self._called_ns = clock_ns()

    def __call__(self, payload: bytes) -> int:
        """Outcome of a reply. An invalid reply has the outcome INVALID_REPLY and is not kept."""
        returned_ns = self._clock_ns()
        try:
            self._reply = decoded(self._request, payload)
        except InternalFault:
            return self._first + INVALID_REPLY
        self._returned_ns = returned_ns
        return self._first + self._reply.status

    def failed(self, fault: Fault) -> None:
        """Ends the request with a fault. Some faults tell that the request had no effect."""
        if isinstance(fault, InvalidRequest):  # a second use of an id: no other request here has this fault
            self._reply, self._returned_ns = Untold.REFUSED, self._clock_ns()
        self._dropped = isinstance(fault, Overloaded)

    def not_sent(self) -> None:
        """Drops a request that was never sent."""
        self._dropped = True

    def operation(self) -> Operation | None:
        """The operation, with the reply if a reply came. None for an operation that certainly took no effect."""
        if self._dropped:
            return None
        return Operation(self._request, self._reply, self._called_ns, self._returned_ns)


def decoded(request: Request, payload: bytes) -> Reply:
    """Decodes a reply to the request. Raises InternalFault for a reply that the request cannot have."""
    match request:
        case Lookup():
            looked_up = replies.lookup(payload)
            return LookupReply(Status(looked_up.status), looked_up.price_cents, looked_up.volume, looked_up.sequence)
        case Trade():
            traded = replies.trade(payload)
            return TradeReply(Status(traded.status), traded.volume, traded.sequence)
        case Update():
            updated = replies.update(payload)
            return UpdateReply(Status(updated.status), updated.sequence)


class CheckedWorkload:
    """Requests of one client process, with the replies. Each connection's iterator may be used in a different
    thread."""

    def __init__(self, plan: LoadPlan, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        assert plan.check is not None
        self._plan = plan
        self._check: Check = plan.check
        self._clock_ns = clock_ns
        self._share = HISTORY_MAX // plan.connections
        self._asked: list[list[Asked]] = []

    def requests(self, client: int, connection: int) -> Iterator[workload.Request]:
        """The endless sequence of one connection. Every yielded request counts as sent."""
        plan, asked = self._plan, list[Asked]()
        self._asked.append(asked)
        rng = random.Random(f"{plan.seed}/{client}/{connection}")
        exponent = plan.zipf_s if plan.choice == "zipf" else 0.0
        popularity = list(accumulate((place + 1) ** -exponent for place in range(len(plan.stocks))))
        kinds, weights = [*plan.mix], list(accumulate(plan.mix.values()))
        group, uses = (client * plan.connections_per_client + connection) // SHARED_BY, 0
        while len(asked) < self._share:
            (kind,) = rng.choices(kinds, cum_weights=weights)
            (stock,) = rng.choices(plan.stocks, cum_weights=popularity)
            if kind == "trade" and rng.random() < 0.5:
                uses += 1
                request: Request = self._with_id(f"{self._check.prefix}-{group}-{uses}", rng)
            else:
                request = _drawn(kind, stock, plan, rng)
            path, payload = encoded(request)
            first = kinds.index(kind) * TYPE_STEP
            asked.append(one := Asked(request, first, self._clock_ns))
            yield workload.Request(path, payload, _NONE_KNOWN, one, first)
        while True:  # without Lookups in the mix, counts as the mix's first type
            lookup = Lookup(rng.choice(plan.stocks))
            first = kinds.index("lookup") * TYPE_STEP if "lookup" in kinds else 0
            yield workload.Request(*encoded(lookup), _NONE_KNOWN, Asked(lookup, first, self._clock_ns), first)

    def operations(self) -> list[Operation]:
        """All operations that were sent so far, with their replies."""
        every = (one.operation() for asked in self._asked for one in asked)
        return [operation for operation in every if operation is not None]

    def _with_id(self, request_id: str, rng: random.Random) -> Trade:
        """The trade that belongs to an id. With the probability ``conflicts``, a different trade with the same id,
        which the server must refuse."""
        drawn = crc32(request_id.encode())
        stock, quantity = self._plan.stocks[drawn % len(self._plan.stocks)], 1 + (drawn >> 16) % 5
        side = Side.BUY if drawn >> 31 else Side.SELL
        if rng.random() < self._check.conflicts:
            quantity += 5
        return Trade(stock, self._plan.quantity * quantity, side, request_id)


def _drawn(kind: str, stock: str, plan: LoadPlan, rng: random.Random) -> Request:
    match kind:
        case "lookup":
            return Lookup(stock)
        case "trade":
            return Trade(stock, plan.quantity * rng.randint(1, 5), rng.choice((Side.BUY, Side.SELL)))
        case _:
            return Update(stock, rng.randint(1_00, 200_00))


def encoded(request: Request) -> tuple[str, bytes]:
    """Path and encoded message of a request."""
    match request:
        case Lookup(name):
            return LOOKUP, stock_pb2.LookupRequest(name=name).SerializeToString()
        case Trade(name, quantity, side, request_id):
            message = stock_pb2.TradeRequest(
                name=name,
                quantity=quantity,
                side=side,  # type: ignore[arg-type]  # the numbers of Side are the wire's
                request_id=request_id,
            )
            return TRADE, message.SerializeToString()
        case Update(name, price_cents):
            return UPDATE, stock_pb2.UpdateRequest(name=name, price_cents=price_cents).SerializeToString()
