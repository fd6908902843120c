"""Exchanges with a bug planted in each, which no lock mends: in replies, memory, numbers or refusals.

``RightExchange`` is a right one under one lock. Each bug changes one of its parts, and does harm every time.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from threading import Lock

from stock_service.rpc.errors import InvalidRequest, Overloaded
from stock_service.trading import rules
from stock_service.trading.catalog import Version
from stock_service.trading.model import LookupReply, Status, Stock, TradeReply, UpdateReply
from tests.races.interleaving import Handoff

EVERY = 7
"""Of this number of requests of a kind, one meets the bug."""

Content = tuple[str, int, int]


class RightExchange:
    """Lookup, Trade and Update as they should be, one at a time."""

    stocks = 1 << 30
    """Number of stocks with which the service keeps no response of a Lookup. A kept response would hide the bug."""

    def __init__(self, stocks: Iterable[Stock], handoff: Handoff) -> None:
        self.table = {stock.name: stock for stock in stocks}
        self.sequences = dict.fromkeys(self.table, 0)
        self.remembered: dict[str, tuple[Content, TradeReply]] = {}
        self.handoff = handoff
        self.lock = Lock()  # guards all of these
        self.commits = 0
        self.requests = 0

    def version(self, name: str) -> Version | None:
        """A stock as a Lookup shows it, for the service."""
        reply = self.lookup(name)
        if reply.status is Status.UNKNOWN_STOCK:
            return None
        stock = replace(self.table[name], price_cents=reply.price_cents, volume=reply.volume)
        return stock, reply.sequence

    def lookup(self, name: str) -> LookupReply:
        with self.lock:
            return self.seen(name)

    def trade(self, name: str, quantity: int, side: int, request_id: str = "") -> TradeReply:
        with self.lock:
            if not request_id:
                return self.traded(name, quantity, side)
            content = (name, quantity, side)
            if request_id not in self.remembered:
                self.remembered[request_id] = (content, self.traded(name, quantity, side))
            return self.again(request_id, content)

    def update(self, name: str, price_cents: int) -> UpdateReply:
        with self.lock:
            stock = self.table[name]
            return UpdateReply(Status.OK, self.commit(Stock(name, price_cents, stock.volume_limit, stock.volume)))

    def seen(self, name: str) -> LookupReply:
        """The reply to a Lookup."""
        stock = self.table[name]
        return LookupReply(rules.lookup_status(stock), stock.price_cents, stock.volume, self.sequences[name])

    def traded(self, name: str, quantity: int, side: int) -> TradeReply:
        """Trades, and says how that ended."""
        stock, status = rules.trade(self.table[name], quantity)
        return TradeReply(status, stock.volume, self.commit(stock) if status is Status.OK else 0)

    def again(self, request_id: str, content: Content) -> TradeReply:
        """The reply to a use of an id that is remembered."""
        known, reply = self.remembered[request_id]
        if known != content:
            raise InvalidRequest(f"{request_id} was used for another trade")
        return reply

    def commit(self, stock: Stock) -> int:
        """Stores a stock; the number of the commit."""
        self.commits += 1
        self.table[stock.name], self.sequences[stock.name] = stock, self.commits
        return self.commits

    def unlucky(self) -> bool:
        """Tell whether this request meets the bug."""
        self.requests += 1
        return self.requests % EVERY == 0


class UpdateLost(RightExchange):
    """A new price is numbered and acknowledged, and not stored."""

    def update(self, name: str, price_cents: int) -> UpdateReply:
        with self.lock:
            return UpdateReply(Status.OK, self.commit(self.table[name]))


class TradeDoubled(RightExchange):
    """A trade is sent on twice, as by a client that retries in silence; the second reply is told."""

    def traded(self, name: str, quantity: int, side: int) -> TradeReply:
        if self.unlucky():
            super().traded(name, quantity, side)
        return super().traded(name, quantity, side)


class DirtyRead(RightExchange):
    """Other threads see a trade that is then refused for lack of room."""

    def trade(self, name: str, quantity: int, side: int, request_id: str = "") -> TradeReply:
        with self.lock:
            before = self.table[name]
            after = Stock(name, before.price_cents, before.volume_limit, before.volume + quantity)
            refused = after.volume > after.volume_limit
            if refused:
                self.table[name] = after
        if refused:
            self.handoff.wait(f"read {name}")
            with self.lock:
                self.table[name] = before
        return super().trade(name, quantity, side, request_id)

    def lookup(self, name: str) -> LookupReply:
        reply = super().lookup(name)
        self.handoff.tell(f"read {name}")
        return reply


class RefusedForAnIdAndDone(RightExchange):
    """Another trade with a known id is refused, and done nevertheless."""

    def again(self, request_id: str, content: Content) -> TradeReply:
        if self.remembered[request_id][0] != content:
            self.traded(*content)
        return super().again(request_id, content)


class RefusedBeforeTheFirstUseIsDone(RightExchange):
    """Another trade with an id is refused while the first use still runs, so that its client may see the old volume."""

    def trade(self, name: str, quantity: int, side: int, request_id: str = "") -> TradeReply:
        content = (name, quantity, side)
        with self.lock:
            running = request_id and self.running(request_id, content)
        if running:
            self.handoff.wait(f"read {name}")
        return super().trade(name, quantity, side, request_id)

    def running(self, request_id: str, content: Content) -> bool:
        """Tell whether this is the first use of an id."""
        if self.first_uses.setdefault(request_id, content) != content:
            raise InvalidRequest(f"{request_id} was used for another trade")
        return request_id not in self.remembered

    def __init__(self, stocks: Iterable[Stock], handoff: Handoff) -> None:
        super().__init__(stocks, handoff)
        self.first_uses: dict[str, Content] = {}

    def lookup(self, name: str) -> LookupReply:
        reply = super().lookup(name)
        self.handoff.tell(f"read {name}")
        return reply


class OverloadedAndDone(RightExchange):
    """A trade is refused for overload, which promises that it had no effect, and done."""

    def trade(self, name: str, quantity: int, side: int, request_id: str = "") -> TradeReply:
        reply = super().trade(name, quantity, side, request_id)
        if self.unlucky() and reply.sequence:
            raise Overloaded("no room, it says")
        return reply


class ReplyOfAnother(RightExchange):
    """A Lookup gets the reply of the Lookup before it, also of another stock."""

    last = LookupReply(Status.UNKNOWN_STOCK)

    def seen(self, name: str) -> LookupReply:
        right = super().seen(name)
        told, self.last = self.last if self.unlucky() else right, right
        return told


class LaggingReplica(RightExchange):
    """Lookups are answered by a copy that is brought up to date now and then."""

    def __init__(self, stocks: Iterable[Stock], handoff: Handoff) -> None:
        super().__init__(stocks, handoff)
        self.copy: dict[str, LookupReply] = {}

    def seen(self, name: str) -> LookupReply:
        if name not in self.copy or self.unlucky():
            self.copy[name] = super().seen(name)
        return self.copy[name]


class StickySuspension(RightExchange):
    """A stock that refused a trade for lack of room refuses smaller trades, too."""

    def __init__(self, stocks: Iterable[Stock], handoff: Handoff) -> None:
        super().__init__(stocks, handoff)
        self.refusing: set[str] = set()

    def traded(self, name: str, quantity: int, side: int) -> TradeReply:
        if name in self.refusing:
            return TradeReply(Status.SUSPENDED, self.table[name].volume)
        reply = super().traded(name, quantity, side)
        if reply.status is Status.SUSPENDED:
            self.refusing.add(name)
        return reply


class LimitOffByOne(RightExchange):
    """The volume may pass the limit by one."""

    def traded(self, name: str, quantity: int, side: int) -> TradeReply:
        stock = self.table[name]
        volume = stock.volume + quantity
        if volume == stock.volume_limit + 1:
            return TradeReply(
                Status.OK, volume, self.commit(Stock(name, stock.price_cents, stock.volume_limit, volume))
            )
        return super().traded(name, quantity, side)


class NumbersOfEachStock(RightExchange):
    """Every stock counts its own commits."""

    def commit(self, stock: Stock) -> int:
        self.table[stock.name] = stock
        self.sequences[stock.name] += 1
        return self.sequences[stock.name]


class NumberSkipped(RightExchange):
    """Now and then a number is left out."""

    def commit(self, stock: Stock) -> int:
        self.commits += self.unlucky()
        return super().commit(stock)


class IdsWithoutContent(RightExchange):
    """Another trade with a known id gets the first trade's reply."""

    def again(self, request_id: str, content: Content) -> TradeReply:
        return self.remembered[request_id][1]


class RetryToldTheVolumeOfNow(RightExchange):
    """A retry has no second effect, and is told the volume that stands by then."""

    def again(self, request_id: str, content: Content) -> TradeReply:
        reply = super().again(request_id, content)
        if reply.status is not Status.OK:
            return reply
        return TradeReply(reply.status, self.table[content[0]].volume, reply.sequence)


PLANTED_EXCHANGES: dict[str, Callable[[Iterable[Stock], Handoff], RightExchange]] = {
    "update acknowledged and lost": UpdateLost,
    "trade doubled": TradeDoubled,
    "dirty read": DirtyRead,
    "refused for an id, and done": RefusedForAnIdAndDone,
    "refused for an id before its first use": RefusedBeforeTheFirstUseIsDone,
    "refused for overload, and done": OverloadedAndDone,
    "reply of another's request": ReplyOfAnother,
    "lookup at a lagging replica": LaggingReplica,
    "suspension that sticks": StickySuspension,
    "limit off by one": LimitOffByOne,
    "numbers of each stock": NumbersOfEachStock,
    "number skipped": NumberSkipped,
    "ids without content": IdsWithoutContent,
    "retry told the volume of now": RetryToldTheVolumeOfNow,
}
"""Every planted bug by its name."""
