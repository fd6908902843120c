"""Workload of a checked run (``--check``). Each request is drawn just before the send. The request and its reply are
stored in the history that the check reads.

Requests come in the proportions of the plan's mix. Trades differ in quantity and side. Half of the trades have a
request_id. ``SHARED_BY`` connections send the same trade with the same request_id, at about the same time. The server
must do this trade only once. Every reply is decoded. A request's stored begin and end are some microseconds before and
after the call. This difference never makes a correct history look wrong.

The history is bounded: all connections together store ``HISTORY_MAX`` requests. After a connection has stored its share
of ``HISTORY_MAX``, the connection sends only Lookups. These Lookups change no stock, and are not stored.
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
"""Largest number of requests that a run stores. These requests take 100 MB of memory. In a run with several
connections, at most some 66,000 request_ids are different: fewer than a catalog remembers (100,000). In a run with one
connection, no request_id is sent twice.
"""

SHARED_BY = 3
"""Number of connections that send a trade with the same request_id."""

_NONE_KNOWN: dict[bytes, int] = {}
"""Known replies (``workload.Request.known``) in a checked run. The dictionary is always empty, so that the sender gives
every reply to the check."""


class Asked:
    """A sent request and, later, the reply. The object is the ``check`` of a ``workload.Request``: the sender calls the
    object with the reply's bytes. Not thread-safe.
    """

    __slots__ = ("_called_ns", "_clock_ns", "_dropped", "_first", "_reply", "_request", "_returned_ns")

    def __init__(self, request: Request, first: int, clock_ns: Callable[[], int]) -> None:
        """Takes the present moment as the moment of the send: the caller must send the request at once. ``first`` is
        the offset of the request type's outcomes (``outcomes.py``)."""
        self._request = request
        self._first = first
        self._clock_ns = clock_ns
        self._reply: Reply | Untold = Untold.UNKNOWN
        self._returned_ns = NEVER_NS
        self._dropped = False
        self._called_ns = clock_ns()

    def __call__(self, payload: bytes) -> int:
        """Decodes and stores the reply, and returns the outcome. An invalid reply has the outcome INVALID_REPLY: the
        history then has the request without a reply."""
        returned_ns = self._clock_ns()
        try:
            self._reply = decoded(self._request, payload)
        except InternalFault:
            return self._first + INVALID_REPLY
        self._returned_ns = returned_ns
        return self._first + self._reply.status

    def failed(self, fault: Fault) -> None:
        """Notes that the request ended in a fault. After InvalidRequest, the history says that the server refused the
        trade. A request that ended in Overloaded had no effect, so the history leaves out the request. After any other
        fault, the request's effect stays unknown.
        """
        if isinstance(fault, InvalidRequest):  # here the only cause: another trade has used the request_id
            self._reply, self._returned_ns = Untold.REFUSED, self._clock_ns()
        self._dropped = isinstance(fault, Overloaded)

    def not_sent(self) -> None:
        """Keeps the request out of the history, since the request was never sent."""
        self._dropped = True

    def operation(self) -> Operation | None:
        """Makes the history's entry: the request, the times, and the reply if a reply came. Returns None if the request
        was never sent, or ended in Overloaded.
        """
        if self._dropped:
            return None
        return Operation(self._request, self._reply, self._called_ns, self._returned_ns)


def decoded(request: Request, payload: bytes) -> Reply:
    """Decodes the reply to ``request``. Raises InternalFault for an invalid reply."""
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
    """Workload of one client process in a checked run: draws requests, and stores the requests with their replies. Each
    connection's iterator may be used in a different thread."""

    def __init__(self, plan: LoadPlan, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        assert plan.check is not None
        self._plan = plan
        self._check: Check = plan.check
        self._clock_ns = clock_ns
        self._share = HISTORY_MAX // plan.connections
        self._asked: list[list[Asked]] = []

    def requests(self, client: int, connection: int) -> Iterator[workload.Request]:
        """Endless sequence of one connection's requests. A request counts as sent from the moment when the iterator
        yields the request. If the request is not sent, the caller must call ``request.check.not_sent``."""
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
        while True:  # a Lookup counts as a request of the mix's first type if the mix has no Lookups
            lookup = Lookup(rng.choice(plan.stocks))
            first = kinds.index("lookup") * TYPE_STEP if "lookup" in kinds else 0
            yield workload.Request(*encoded(lookup), _NONE_KNOWN, Asked(lookup, first, self._clock_ns), first)

    def operations(self) -> list[Operation]:
        """History of all connections so far. The history leaves out requests that certainly had no effect."""
        every = (one.operation() for asked in self._asked for one in asked)
        return [operation for operation in every if operation is not None]

    def _with_id(self, request_id: str, rng: random.Random) -> Trade:
        """Makes a trade with this request_id. All connections draw equal trades for one id, since the id determines
        stock, side and quantity. With the probability ``conflicts``, the quantity is different. If two trades with one
        id differ, the server must refuse the second trade.
        """
        drawn = crc32(request_id.encode())
        stock, quantity = self._plan.stocks[drawn % len(self._plan.stocks)], 1 + (drawn >> 16) % 5
        side = Side.BUY if drawn >> 31 else Side.SELL
        if rng.random() < self._check.conflicts:
            quantity += 5
        return Trade(stock, self._plan.quantity * quantity, side, request_id)


def _drawn(kind: str, stock: str, plan: LoadPlan, rng: random.Random) -> Request:
    """Draws a request of this kind for this stock. A drawn Trade has no request_id."""
    match kind:
        case "lookup":
            return Lookup(stock)
        case "trade":
            return Trade(stock, plan.quantity * rng.randint(1, 5), rng.choice((Side.BUY, Side.SELL)))
        case _:
            return Update(stock, rng.randint(1_00, 200_00))


def encoded(request: Request) -> tuple[str, bytes]:
    """Returns the path of the request's method, and the encoded request."""
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
