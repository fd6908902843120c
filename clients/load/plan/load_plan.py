"""Plan of a load run: a frozen value that is checked when the value is made. This file has every limit. The limits
bound a run: 512 processes, 4096 connections, an hour, and the memory for records (``records_max``).
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
"""Connection policy: one kept connection for all requests, or a new connection for each request."""

CONNECTION_POLICIES: tuple[ConnectionPolicy, ...] = ("kept-alive", "per-request")

ClientKind = Literal["lean", "library"]
"""Kind of client that speaks to the server. ``lean``: this project's client, directly on a socket, with little work for
each request. ``library``: the client of the transport's library, which users of the transport have (on gRPC:
grpcio)."""

CLIENT_KINDS: tuple[ClientKind, ...] = ("lean", "library")

Choice = Literal["uniform", "zipf"]
"""Distribution of the stocks in requests: uniform, or Zipf's (the k-th stock in proportion to 1 ÷ k^s)."""

CHOICES: tuple[Choice, ...] = ("uniform", "zipf")

RATE_HZ_MIN, RATE_HZ_MAX = 0.1, 1_000_000.0
"""Range of the requests due in a second."""

ZIPF_S_MIN, ZIPF_S_MAX = 0.01, 10.0
"""Range of the exponent s. With the largest exponent, the second stock has a thousandth of the first stock's
requests."""

WEIGHT_MIN, WEIGHT_MAX = 1e-6, 1e6
"""Range of weights in a mix. Larger weights would overflow the sum of the weights, and a type with a smaller weight
would never be drawn."""

REQUESTS = ("lookup", "trade", "update")
"""Request types of the stock service. A plan may add other request types."""

REFLECTING = ("grpc", "grpc_static", "grpc_aio")
"""Transports with servers that tell a method's message types (gRPC server reflection)."""

CLIENTS_MAX = 512
"""Largest number of client processes. Each takes about 10 MB."""

CONNECTIONS_MAX = 4096
"""Largest number of connections of all clients together: the number that a server here accepts by default."""

DURATION_S_MAX = 3600.0
"""Longest warm-up, and longest measured window, in seconds."""

STOCKS_MAX = 100_000
"""Largest number of stocks to choose from: the number that a catalog can have."""

REQUEST_TYPES_MAX = 8
"""Largest number of request types in a mix. An outcome is recorded as one byte, with three bits for the type."""

_RECORDS = 2**23
"""Number of records that all connections of a run hold together: at most 25 bytes each, 210 MB. With over 512
connections it grows, because each may hold ``_RECORDS_MIN``."""

_RECORDS_MIN = 2**14
"""Number of records that each connection may hold at least, however many connections there are: 410 kB."""


@dataclass(frozen=True, slots=True)
class RequestType:
    """A type of requests: its method, its payloads, and the check of a reply. A process gets the request type pickled.

    ``check`` is a function of a module: the function takes a reply's bytes and gives the number of the reply's
    ``Status``, or raises InternalFault. Each request's payload is chosen uniformly from ``payloads``.
    """

    name: str
    path: str
    payloads: tuple[bytes, ...]
    check: Callable[[bytes], int]


@dataclass(frozen=True, slots=True)
class Check:
    """Options of a run whose history is kept and checked."""

    prefix: str
    """Prefix of every request_id, unique among all runs on the server."""
    conflicts: float = 0.0
    """Share of the trades with an id that use the id of an earlier trade. The server must refuse these trades."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """A load. Without a rate, a closed loop: every connection sends a request, waits for the reply, and sends the next
    request. With a rate, an open loop: a schedule says when each request is due. The request is then sent, even if
    earlier requests are not yet answered.

    ``mix`` maps request types to weights: ``lookup``, ``trade``, ``update``, or the name of a type in
    ``request_types``. Raises UsageError, in the words of the command line, for a value outside the limits.
    """

    transport: str
    address: Address
    clients: int
    """Number of processes that send."""
    mix: Mapping[str, float]
    stocks: tuple[str, ...]
    warm_up_s: float
    """Duration of the warm-up. No latency includes requests of the warm-up."""
    duration_s: float
    """Duration of the measured window."""
    connections_per_client: int = 1
    connection: ConnectionPolicy = "kept-alive"
    """Connection policy. With ``per-request``, the response time includes connecting."""
    timeout_s: float = 5.0
    """Longest wait for a reply. A connection's first call may take until the run ends: a starved client is not an
    error."""
    seed: int = 0
    cpus: tuple[int, ...] | None = None
    """Cores that the client processes may use; None for any core."""
    quantity: int = 1
    """Number of shares in one trade."""
    request_types: tuple[RequestType, ...] = ()
    """Request types of other services than the stock service."""
    client: ClientKind = "lean"
    rate_hz: float | None = None
    """Requests due in a second from all clients together; None for a closed loop."""
    arrivals: Arrivals = "poisson"
    """Arrival process of an open loop."""
    choice: Choice = "uniform"
    zipf_s: float = 1.0
    """Exponent of ``zipf``."""
    keep_records: bool = False
    """True if the result keeps every request's raw times: 33 bytes a request."""
    credentials: ClientCredentials = NO_CREDENTIALS
    """The clients' credentials, and the authority that the clients trust."""
    real_time: bool = False
    """True if the client processes run at real-time priority. The system must permit this; see ``run/priority.py``."""
    check: Check | None = None
    """Options of the check of a history; None for an unchecked run. Only for the stock service in a closed loop; see
    ``checked_workload.py``."""

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
        """Connections of all clients together."""
        return self.clients * self.connections_per_client

    @property
    def loop(self) -> Literal["closed", "open"]:
        """Kind of the loop: ``closed`` or ``open``."""
        return "closed" if self.rate_hz is None else "open"

    @property
    def records_max(self) -> int:
        """Number of records at which a connection pauses, to fold the records into histograms."""
        return max(_RECORDS_MIN, _RECORDS // self.connections)


def _within(option: str, given: float, low: float, high: float) -> None:
    if not low <= given <= high:  # NaN is in no range
        raise UsageError(option, given, f"{low:g} to {high:g}")
