"""The exchange: Lookup, Trade and Update on a catalog, with plain Python values. The stock service calls only the
exchange; the exchange calls rules and catalog.

The module uses no transport, no protobuf and no lock. The exchange is thread-safe. A method of the exchange blocks only
while the catalog blocks.
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


class Exchange:
    """Exchange that answers Lookup, Trade and Update from one catalog. Thread-safe."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.stocks = len(tuple(catalog.names()))
        """Number of the catalog's stocks."""
        self.version = catalog.read
        """Function that returns the current version of a stock; None for an unknown stock. ``looked_up`` makes a reply
        from the version. The function usually returns the same object until the stock changes.
        """

    def lookup(self, name: str) -> LookupReply:
        """Returns the price, the volume and the last commit's number of a stock, all of the same version."""
        return looked_up(self.version(name))

    def trade(self, name: str, quantity: int, side: int, request_id: str = "") -> TradeReply:
        """Adds a quantity to a stock's volume, or refuses the trade with a status.

        A trade with a ``request_id`` (1 to 64 characters) has one effect, even if a client sends the trade several
        times. Each copy of the trade gets the first reply. Raises InvalidRequest for an id that is too long, or was
        used for other content. ``side`` may be any integer: the status INVALID_SIDE refuses an integer that is no
        ``Side``.
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
            return TradeReply(refusal if self.version(name) else Status.UNKNOWN_STOCK)
        # the catalog applies a refusal like a trade, and so remembers the refusal
        status, _, _ = self._catalog.change(name, lambda stock: rules.refuse(stock, refusal), once)
        return TradeReply(status)

    def update(self, name: str, price_cents: int) -> UpdateReply:
        """Sets a stock's price, in cents, or refuses the update with a status."""
        refusal = rules.update_refusal(price_cents)
        if refusal is not None:
            return UpdateReply(refusal if self.version(name) else Status.UNKNOWN_STOCK)
        status, _, sequence = self._catalog.change(
            name, lambda stock: rules.update(stock, price_cents) if stock else rules.UNKNOWN
        )
        return UpdateReply(status, sequence)


def looked_up(version: Version | None) -> LookupReply:
    """Makes the reply to a Lookup from a stock's version, or from None for an unknown stock."""
    if version is None:
        return LookupReply(Status.UNKNOWN_STOCK)
    stock, sequence = version
    return LookupReply(rules.lookup_status(stock), stock.price_cents, stock.volume, sequence)
