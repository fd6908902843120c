"""A client with the methods of ``trading.exchange.Exchange``: each method sends its request over a connection.

Every reply is checked (``clients/replies.py``). No request is sent again here: ``retrying.py`` does this.
"""

from clients import replies
from stock_service.rpc.errors import InvalidRequest
from stock_service.rpc.transports import Connection
from stock_service.trading.model import INT64_MAX, LookupReply, Status, TradeReply, UpdateReply
from stock_service.trading.service import LOOKUP, TRADE, UPDATE
from stock_service.v1 import stock_pb2

_INT32_MAX = 2**31 - 1


class RemoteExchange:
    """Lookup, Trade and Update over a connection, each within ``timeout_s``.

    Every method blocks until its reply has come. A method raises a Fault if no reply comes, and InternalFault for a
    reply that is not allowed. Only one thread at a time may use this object or the connection. The caller must close
    the connection.
    """

    def __init__(self, connection: Connection, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    def lookup(self, name: str) -> LookupReply:
        """A stock's price in cents, volume, and last commit, all read at one moment."""
        request = stock_pb2.LookupRequest(name=_text("name", name))
        reply = replies.lookup(self._connection.call(LOOKUP, request.SerializeToString(), self._timeout_s))
        return LookupReply(Status(reply.status), reply.price_cents, reply.volume, reply.sequence)

    def trade(self, name: str, quantity: int, side: int, request_id: str = "") -> TradeReply:
        """Trades a quantity of a stock. Gives the stock's new volume, or the reason of a refusal.

        If the message cannot hold the quantity or the side, the nearest value that fits is sent instead. The service
        refuses the nearest value in the same way.
        """
        request = stock_pb2.TradeRequest(
            name=_text("name", name),
            quantity=max(-INT64_MAX, min(quantity, INT64_MAX)),
            side=max(-_INT32_MAX, min(side, _INT32_MAX)),  # type: ignore[arg-type]  # refused by the service, not here
            request_id=_text("request_id", request_id),
        )
        reply = replies.trade(self._connection.call(TRADE, request.SerializeToString(), self._timeout_s))
        return TradeReply(Status(reply.status), reply.volume, reply.sequence)

    def update(self, name: str, price_cents: int) -> UpdateReply:
        """Sets a stock's price, in cents. Gives the number of the commit, or the reason of a refusal. Raises
        InvalidRequest for a price that the message cannot hold."""
        if price_cents > INT64_MAX:
            raise InvalidRequest(f"a price of {price_cents} cents, allowed: at most {INT64_MAX}")
        request = stock_pb2.UpdateRequest(name=_text("name", name), price_cents=max(-INT64_MAX, price_cents))
        reply = replies.update(self._connection.call(UPDATE, request.SerializeToString(), self._timeout_s))
        return UpdateReply(Status(reply.status), reply.sequence)


def _text(field: str, text: str) -> str:
    """Returns ``text``. Raises InvalidRequest if UTF-8 cannot encode the text (half of a surrogate pair)."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"{field} {text!r}, allowed: text that UTF-8 can carry") from error
    return text
