"""Retries: an exchange that sends a request again after a transient fault. A program must ask for retries. The number
of retries is bounded and counted.

No other module sends a request again, and no measurement does. The table shows the faults after which a request is sent
again:

    Lookup    UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED
    Trade     the same faults: all tries of a Trade have one request_id (given or made here), and so one effect
    Update    RESOURCE_EXHAUSTED, and UNAVAILABLE if the server has said that it did not begin the request

An Update is sent again only if its first try had no effect. Otherwise the second try might undo a later update of
another client. If the connect fails, every request is sent again.

Before each retry the exchange waits: exponential backoff with jitter. The longest wait doubles with every retry, up to
``WAIT_MAX_S``. A random share shortens each wait, so clients whose requests failed together do not retry together.
After some faults a late reply to the failed request may still arrive on the connection. After such a fault the next try
uses a new connection.
"""

import random
import time
import uuid
from collections.abc import Callable
from typing import TypeVar

from clients.remote_exchange import RemoteExchange
from stock_service.rpc.errors import DeadlineExceeded, Fault, NotBegun, Overloaded, Unavailable
from stock_service.rpc.transports import Connection
from stock_service.trading.model import LookupReply, TradeReply, UpdateReply

Reply = TypeVar("Reply")

FIRST_WAIT_S = 0.05
"""Longest wait before the first retry, in seconds: the time of some hundred requests."""

WAIT_MAX_S = 2.0
"""Longest wait before each later retry, in seconds. The restart of a server takes less time."""

RETRIES_MAX = 100

_PASSING = (Unavailable, DeadlineExceeded, Overloaded)


class RetryingExchange:
    """The methods of ``RemoteExchange``, with up to ``retries`` retries for each request. After the last retry a method
    raises the last fault.

    ``retried`` counts the retries. A method blocks for all tries, each of ``timeout_s`` at most, and for the waits
    between the tries. Only one thread at a time may use this object. The caller must close this exchange.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        timeout_s: float,
        retries: int,
        *,
        rng: random.Random | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """``connect`` makes a connection, or raises a Fault. The first request calls ``connect``."""
        self.retried = 0
        self._connect = connect
        self._timeout_s = timeout_s
        self._retries = retries
        self._rng = rng or random.Random()
        self._sleep = sleep
        self._connection: Connection | None = None

    def lookup(self, name: str) -> LookupReply:
        """Sends a Lookup; see ``RemoteExchange.lookup``."""
        return self._sent(lambda exchange: exchange.lookup(name), _PASSING)

    def trade(self, name: str, quantity: int, side: int, request_id: str = "") -> TradeReply:
        """Sends a trade; see ``RemoteExchange.trade``. A trade without an id gets a unique id, unless ``retries`` is 0.
        The service does trades with one id only once, so all tries together have one effect."""
        own_id = request_id or (uuid.uuid4().hex if self._retries else "")
        return self._sent(lambda exchange: exchange.trade(name, quantity, side, own_id), _PASSING)

    def update(self, name: str, price_cents: int) -> UpdateReply:
        """Sends an Update; see ``RemoteExchange.update``."""
        return self._sent(lambda exchange: exchange.update(name, price_cents), (Overloaded, NotBegun))

    def close(self) -> None:
        """Closes the connection. A second call has no effect. A later request makes a new connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _sent(self, send: Callable[[RemoteExchange], Reply], passing: tuple[type[Fault], ...]) -> Reply:
        """Sends a request. After a fault of the types ``passing``, or after a failed connect, sends the request again.
        Raises a fault of another type at once. Raises the fault of the last try."""
        for tried in range(self._retries + 1):
            connecting = self._connection is None
            try:
                if self._connection is None:
                    self._connection = self._connect()
                connecting = False
                return send(RemoteExchange(self._connection, self._timeout_s))
            except Fault as fault:
                if not isinstance(fault, Overloaded):
                    self.close()
                may_pass = isinstance(fault, passing) or (connecting and isinstance(fault, _PASSING))
                if not may_pass or tried == self._retries:
                    raise
            self.retried += 1
            self._sleep(min(WAIT_MAX_S, FIRST_WAIT_S * 2**tried) * self._rng.uniform(0.5, 1.0))
        raise AssertionError
