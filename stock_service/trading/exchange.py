"""The exchange: the one door into the core. Lookup, Trade and Update on a catalog, in plain values.

Knows no transport, no protobuf and no lock. Every method may be called from any thread; none blocks for longer than the
catalog does.
"""

from hashlib import sha256

from stock_service.rpc.errors import InvalidRequest
from stock_service.trading import rules
from stock_service.trading.catalog import Catalog
from stock_service.trading.model import (
    NAME_LENGTH_MAX,
    REQUEST_ID_LENGTH_MAX,
    LookupReply,
    Status,
    TradeReply,
    UpdateReply,
)

_UNKNOWN_LOOKUP = LookupReply(Status.UNKNOWN_STOCK)
_UNKNOWN_TRADE = TradeReply(Status.UNKNOWN_STOCK)
_UNKNOWN_UPDATE = UpdateReply(Status.UNKNOWN_STOCK)


class Exchange:
    """Answers requests about the stocks of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def lookup(self, name: str) -> LookupReply:
        """A stock's price in cents, its volume and its last commit: one consistent set."""
        version = self._catalog.read(name)
        if version is None:
            return _UNKNOWN_LOOKUP
        stock, sequence = version
        return LookupReply(rules.lookup_status(stock), stock.price_cents, stock.volume, sequence)

    def trade(self, name: str, quantity: int, side: int, request_id: str = "") -> TradeReply:
        """Adds a quantity to a stock's volume, or says why not.

        With a ``request_id`` (1 to 64 characters) the same trade sent again has one effect and gets the original reply.
        Raises InvalidRequest for an id that is too long or was used for other content. ``side`` is any integer:
        what is no ``Side`` is refused with INVALID_SIDE.
        """
        if not request_id:
            return self._trade(name, quantity, side)
        if len(request_id) > REQUEST_ID_LENGTH_MAX:
            raise InvalidRequest(
                f"request_id has {len(request_id)} characters, allowed: 1 to {REQUEST_ID_LENGTH_MAX}, or none at all"
            )
        # what is remembered of a name that no stock can have is as short as a name that one has
        told = name if len(name) <= NAME_LENGTH_MAX else sha256(name.encode("utf-8", "surrogatepass")).digest()
        content = (told, quantity, side)
        return self._catalog.once(request_id, content, lambda: self._trade(name, quantity, side))

    def _trade(self, name: str, quantity: int, side: int) -> TradeReply:
        refusal = rules.trade_refusal(quantity, side)
        if refusal is not None:
            return _UNKNOWN_TRADE if self._catalog.read(name) is None else TradeReply(refusal)
        changed = self._catalog.change(name, lambda stock: rules.trade(stock, quantity))
        if changed is None:
            return _UNKNOWN_TRADE
        (stock, sequence), status = changed
        return TradeReply(status, stock.volume, sequence if status is Status.OK else 0)

    def update(self, name: str, price_cents: int) -> UpdateReply:
        """Sets a stock's price, in cents, or says why not."""
        refusal = rules.update_refusal(price_cents)
        if refusal is not None:
            return _UNKNOWN_UPDATE if self._catalog.read(name) is None else UpdateReply(refusal)
        changed = self._catalog.change(name, lambda stock: rules.update(stock, price_cents))
        if changed is None:
            return _UNKNOWN_UPDATE
        (_, sequence), status = changed
        return UpdateReply(status, sequence)
