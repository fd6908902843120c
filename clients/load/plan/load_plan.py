"""Plan of a load run: a frozen value, whose constructor refuses values outside the limits of this file. The limits
bound a run to 512 processes, 4096 connections, an hour of warm-up, and an hour of measuring. ``records_max`` bounds the
memory for records.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from clients.connecting import TIMEOUT_S_MAX
from clients.load.plan.schedule import ARRIVALS, Arrivals
from stock_service.rpc.errors import UsageError
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials
from stock_service.rpc.transports import TRANSPORTS, Address
from stock_service.trading.model import QUANTITY_MAX

ConnectionPolicy = Literal["kept-alive", "per-request"]
"""Policy for connections. ``kept-alive``: a connection is kept, and carries many requests. ``per-request``: each
request has a new connection."""

CONNECTION_POLICIES: tuple[ConnectionPolicy, ...] = ("kept-alive", "per-request")

ClientKind = Literal["lean", "library"]
"""Kind of client. ``lean``: this project's own client, which uses a socket directly, and does little work for each
request. ``library``: the client in the transport's library (on gRPC: grpcio), as in most programs."""

CLIENT_KINDS: tuple[ClientKind, ...] = ("lean", "library")

Choice = Literal["uniform", "zipf"]
"""Distribution of the requests over the stocks. ``uniform``: all stocks are equally likely. ``zipf``: the probability
of the k-th stock is in proportion to 1 ÷ k^s, where s is ``zipf_s``."""

CHOICES: tuple[Choice, ...] = ("uniform", "zipf")

RATE_HZ_MIN, RATE_HZ_MAX = 0.1, 1_000_000.0
"""Range of ``rate_hz``, in requests a second."""

ZIPF_S_MIN, ZIPF_S_MAX = 0.01, 10.0
"""Range of ``zipf_s``. If ``zipf_s`` is 10, the second stock gets a thousandth of the first stock's requests."""

WEIGHT_MIN, WEIGHT_MAX = 1e-6, 1e6
"""Range of weights in a mix. The sum of much larger weights would overflow. A request type with a much smaller weight
would never be drawn.
"""

REQUESTS = ("lookup", "trade", "update")
"""Names of the stock service's request types. A plan may add other request types (``LoadPlan.request_types``)."""

REFLECTING = ("grpc", "grpc_static", "grpc_aio")
"""Transports whose servers tell a client the message types of a method, by gRPC server reflection."""

CLIENTS_MAX = 512
"""Largest number of client processes. Each process takes about 10 MB."""

CONNECTIONS_MAX = 4096
"""Largest number of connections of all clients together. By default, this project's servers accept this number of
connections.
"""

DURATION_S_MAX = 3600.0
"""Longest warm-up, and longest measured window, in seconds."""

STOCKS_MAX = 100_000
"""Largest number of stocks in a plan, and in a catalog."""

REQUEST_TYPES_MAX = 8
"""Largest number of request types in a mix. An outcome is one byte, and three bits of this byte are for the type."""

_RECORDS = 2**23
"""Largest number of records that a run with up to 512 connections holds in memory. Each connection may hold an equal
share of these records. A record takes at most 25 bytes, so all records take 210 MB."""

_RECORDS_MIN = 2**14
"""Smallest number of records that each connection may hold. In a run with more than 512 connections, an equal share of
``_RECORDS`` would be smaller. For one connection, this number of records takes 410 kB. For 4096 connections, the
records take 1.7 GB.
"""


@dataclass(frozen=True, slots=True)
class RequestType:
    """Type of request: the path of a method, the payloads to send, and the check of a reply. The mix of a plan has the
    type's ``name``. Each client process gets a pickled copy of the request type.

    ``check`` takes a reply's bytes, and returns the number of the reply's ``Status``. For an invalid reply, ``check``
    raises InternalFault. ``check`` must be a function of a module, or an object that can be pickled. The payload of
    each request is drawn from ``payloads``, as a stock is drawn from the plan's stocks (see ``Choice``).
    """

    name: str
    path: str
    payloads: tuple[bytes, ...]
    check: Callable[[bytes], int]


@dataclass(frozen=True, slots=True)
class Check:
    """Settings of a checked run (``--check``). The run stores its history, which is checked after the run."""

    prefix: str
    """Prefix of every request_id. No other run on the server may use this prefix."""
    conflicts: float = 0.0
    """Share of conflicting trades, among the trades with a request_id. A conflicting trade has another quantity than
    other trades with its id. If two trades with one id differ, the server must refuse the second trade.
    """


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Plan of a load. Without ``rate_hz``, the load is a closed loop: every connection sends a request, waits for the
    reply, and sends the next request. With ``rate_hz``, the load is an open loop: a schedule sets the moment when each
    request is due. The schedule does not wait for replies.

    ``mix`` maps the name of each request type to the type's weight. A name is ``lookup``, ``trade``, ``update``, or the
    name of a type in ``request_types``. The constructor raises UsageError for a value outside the limits; the error
    names the option of the command line.
    """

    transport: str
    address: Address
    clients: int
    """Number of client processes."""
    mix: Mapping[str, float]
    stocks: tuple[str, ...]
    warm_up_s: float
    """Duration of the warm-up in seconds. Requests of the warm-up do not count in latencies."""
    duration_s: float
    """Duration of the measured window in seconds."""
    connections_per_client: int = 1
    connection: ConnectionPolicy = "kept-alive"
    """Policy for connections. With ``per-request``, the response time includes connecting."""
    timeout_s: float = 5.0
    """Longest wait for a reply, in seconds. A connection's first call may wait longer, until the run ends. A client
    whose first call gets no reply is *starved*. Starvation is not an error.
    """
    seed: int = 0
    cpus: tuple[int, ...] | None = None
    """Cores that the client processes may use; None for any core."""
    quantity: int = 1
    """Number of shares in one trade."""
    request_types: tuple[RequestType, ...] = ()
    """Request types of services other than the stock service. If a type's name is also in ``REQUESTS``, the plan uses
    this type instead of the stock service's type.
    """
    client: ClientKind = "lean"
    rate_hz: float | None = None
    """Rate of an open loop: number of requests that are due in a second, for all clients together. None for a closed
    loop."""
    arrivals: Arrivals = "poisson"
    """Arrival process of an open loop."""
    choice: Choice = "uniform"
    zipf_s: float = 1.0
    """Exponent s of the choice ``zipf``."""
    keep_records: bool = False
    """True if the result keeps the raw times of every request. They take 30 bytes for each request."""
    credentials: ClientCredentials = NO_CREDENTIALS
    """Credentials of the clients, with the certificate authority that the clients trust."""
    real_time: bool = False
    """True if the client processes run at real-time priority. The system must permit this; see ``run/priority.py``."""
    check: Check | None = None
    """Settings of a checked run; None for a run without a check. A checked run must be a closed loop of the stock
    service's requests (``checked_workload.py``)."""

    def __post_init__(self) -> None:
        if self.transport not in TRANSPORTS:
            raise UsageError("--transport", self.transport, " or ".join(sorted(TRANSPORTS)))
        _within("--clients", self.clients, 1, CLIENTS_MAX)
        _within("--connections-per-client", self.connections_per_client, 1, CONNECTIONS_MAX)
        if self.connections > CONNECTIONS_MAX:
            allowed = f"at most {CONNECTIONS_MAX} connections of all clients together"
            raise UsageError("--connections-per-client", self.connections_per_client, allowed)
        if self.connection not in CONNECTION_POLICIES:
            raise UsageError("--connection", self.connection, " or ".join(CONNECTION_POLICIES))
        _within("--warm-up-s", self.warm_up_s, 0, DURATION_S_MAX)
        _within("--duration-s", self.duration_s, 0.01, DURATION_S_MAX)
        _within("--timeout-s", self.timeout_s, 0.001, TIMEOUT_S_MAX)
        _within("--quantity", self.quantity, 1, QUANTITY_MAX)
        if not 1 <= len(self.stocks) <= STOCKS_MAX:
            raise UsageError("--stocks", f"{len(self.stocks)} stocks", f"1 to {STOCKS_MAX}")
        if self.client not in CLIENT_KINDS:
            raise UsageError("--client", self.client, " or ".join(CLIENT_KINDS))
        if self.rate_hz is not None:
            _within("--rate-hz", self.rate_hz, RATE_HZ_MIN, RATE_HZ_MAX)
        if self.arrivals not in ARRIVALS:
            raise UsageError("--arrivals", self.arrivals, " or ".join(ARRIVALS))
        if self.choice not in CHOICES:
            raise UsageError("--choice", self.choice, " or ".join(CHOICES))
        _within("--zipf-s", self.zipf_s, ZIPF_S_MIN, ZIPF_S_MAX)
        if self.check is not None and (self.rate_hz is not None or self.request_types):
            raise UsageError("--check", "an open loop or --call", "a closed loop of the stock service's requests")
        self._check_mix()

    def _check_mix(self) -> None:
        known = {*REQUESTS, *(request_type.name for request_type in self.request_types)}
        if not self.mix or len(self.mix) > REQUEST_TYPES_MAX or not self.mix.keys() <= known:
            allowed = f"1 to {REQUEST_TYPES_MAX} of {', '.join(sorted(known))}"
            raise UsageError("--mix", ",".join(self.mix), allowed)
        for name, weight in self.mix.items():
            if not WEIGHT_MIN <= weight <= WEIGHT_MAX:
                allowed = f"weights from {WEIGHT_MIN:g} to {WEIGHT_MAX:g}, such as lookup=0.5,trade=0.5"
                raise UsageError("--mix", f"{name}={weight:g}", allowed)

    @property
    def connections(self) -> int:
        """Number of connections of all clients together."""
        return self.clients * self.connections_per_client

    @property
    def loop(self) -> Literal["closed", "open"]:
        """Kind of loop: ``open`` for a plan with ``rate_hz``."""
        return "closed" if self.rate_hz is None else "open"

    @property
    def records_max(self) -> int:
        """Largest number of records for each connection. When a connection has this number of records, the client
        process pauses the sending, and adds the records to histograms.
        """
        return max(_RECORDS_MIN, _RECORDS // self.connections)


def _within(option: str, given: float, low: float, high: float) -> None:
    """Raises UsageError if the value of an option is outside its range. The range includes both ends."""
    if not low <= given <= high:  # NaN is in no range
        raise UsageError(option, given, f"{low:g} to {high:g}")
