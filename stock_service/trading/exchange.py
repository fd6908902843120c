"""The exchange: the one door into the core. Lookup, Trade and Update on a catalog, in plain values.

Knows no transport, no protobuf and no lock. Every method may be called from any thread; none blocks for longer than the
catalog does.
"""

from stock_service.rpc.errors import InvalidRequest
from stock_service.trading import rules
from stock_service.trading.catalog import Catalog, Version
from stock_service.trading.model import (
    REQUEST_ID_LENGTH_MAX,
    LookupReply,
    Status,
    TradeReply,
    UpdateReply,
)
from stock_service.trading.once import Once

KEPT_MAX = 1024
"""A catalog of so many stocks or fewer has the last reply to a Lookup of each kept. Those of more stocks would take as
much time to find in memory as they save."""

_UNKNOWN_LOOKUP = LookupReply(Status.UNKNOWN_STOCK)
_UNKNOWN_TRADE = TradeReply(Status.UNKNOWN_STOCK)
_UNKNOWN_UPDATE = UpdateReply(Status.UNKNOWN_STOCK)


class Exchange:
    """Answers requests about the stocks of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.keeps = len(tuple(catalog.names())) <= KEPT_MAX
        """Whether replies are kept for stocks that do not change; see ``KEPT_MAX``."""
        self._replies: dict[str, tuple[Version, LookupReply]] = {}  # to the last version that was looked up

    def lookup(self, name: str) -> LookupReply:
        """A stock's price in cents, its volume and its last commit: one consistent set.

        As long as the stock stands as it is, it is mostly the very same object, where the exchange ``keeps``.
        """
        version = self._catalog.read(name)
        if version is None:
            return _UNKNOWN_LOOKUP
        known = self._replies.get(name)
        if known is not None and known[0] is version:
            return known[1]
        stock, sequence = version
        reply = LookupReply(rules.lookup_status(stock), stock.price_cents, stock.volume, sequence)
        if self.keeps:
            self._replies[name] = version, reply
        return reply

    def trade(self, name: str, quantity: int, side: int, request_id: str = "") -> TradeReply:
        """Adds a quantity to a stock's volume, or says why not.

        With a ``request_id`` (1 to 64 characters) the same trade sent again has one effect and gets the original reply.
        Raises InvalidRequest for an id that is too long or was used for other content. ``side`` is any integer:
        what is no ``Side`` is refused with INVALID_SIDE.
        """
        once = None
        if request_id:
            if len(request_id) > REQUEST_ID_LENGTH_MAX:
                allowed = f"allowed: 1 to {REQUEST_ID_LENGTH_MAX}, or none at all"
                raise InvalidRequest(f"request_id has {len(request_id)} characters, {allowed}")
            once = Once(request_id, f"{side} {quantity} {name}")
        refusal = rules.trade_refusal(quantity, side)
        if refusal is None:
            return TradeReply(
                *self._catalog.change(
                    name, lambda stock: rules.trade(stock, quantity) if stock else rules.UNKNOWN, once
                )
            )
        if once is None:
            return _UNKNOWN_TRADE if self._catalog.read(name) is None else TradeReply(refusal)
        # through the catalog as any trade, so that it is remembered as one
        status, _, _ = self._catalog.change(name, lambda stock: rules.refuse(stock, refusal), once)
        return TradeReply(status)

    def update(self, name: str, price_cents: int) -> UpdateReply:
        """Sets a stock's price, in cents, or says why not."""
        refusal = rules.update_refusal(price_cents)
        if refusal is not None:
            return _UNKNOWN_UPDATE if self._catalog.read(name) is None else UpdateReply(refusal)
        status, _, sequence = self._catalog.change(
            name, lambda stock: rules.update(stock, price_cents) if stock else rules.UNKNOWN
        )
        return UpdateReply(status, sequence)
