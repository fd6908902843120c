"""The comparisons of study ``stock``, declared before any data is seen, in families; and the cells that they compare.

Each is a ratio of mean latencies, cell above ÷ cell below, at the numbers of clients that were run. The first family,
``answers``, is the four questions: six comparisons, so eight blocks are the fewest that can show a difference. The
others are what else the report says a verdict of. Left out: judging them, which is ``comparisons``; words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.results import Row

_SERVER = {"grpc": "gRPC", "sockets": "sockets"}

CLIENTS, TRANSPORT, REQUEST = frozenset({"clients"}), frozenset({"transport"}), frozenset({"mix", "request"})
"""What the usual comparisons declare to differ."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting and request type; what is None is not asked for."""

    part: str
    request: str
    clients: int
    transport: str | None = None
    workers: int | None = None
    locking: str | None = None
    dispatch: str | None = None
    connection: str | None = None
    updater: bool | None = None
    client: str | None = None

    def holds(self, row: Row) -> bool:
        """Whether the row is of this cell."""
        asked = (
            (self.transport, row.transport),
            (self.workers, row.workers),
            (self.locking, row.locking),
            (self.dispatch, row.dispatch),
            (self.connection, row.connection),
            (self.updater, row.updater),
            (self.client, row.client),
        )
        same = (row.part, row.request, row.clients) == (self.part, self.request, self.clients)
        return same and all(wanted is None or wanted == found for wanted, found in asked)


@dataclass(frozen=True, slots=True)
class Contrast:
    """A declared comparison."""

    name: str
    text: str
    """What is above ÷ what is below, for tables."""
    above: Cell
    below: Cell
    factors: frozenset[str] = frozenset()
    """What is declared to differ between the two; gates refuse what else does."""
    per_client: bool = False
    """Latency ÷ clients on both sides: 1 is growth in proportion to the clients."""
    across: int | None = None
    """The number of threads that the clients must be within below, and past above; None: any."""

    @property
    def can_be_made(self) -> bool:
        """Whether the numbers of clients that were run allow it: two cells, on the sides that they should be on."""
        crosses = self.across is None or self.below.clients <= self.across < self.above.clients
        return crosses and self.above != self.below


@dataclass(frozen=True, slots=True)
class Levels:
    """The numbers of clients that the comparisons are made at, from the data."""

    few: int
    most: int
    between: tuple[int, ...]
    """In figures 1 to 4, ascending, the fewest and most included."""
    pool: int
    """Threads of the small pool, in figure 5."""
    at_pool: int
    """The most clients in figure 5 that the pool holds."""
    past_pool: int
    """The next."""
    farthest: int
    """The most clients in figure 5."""


def levels(rows: Sequence[Row]) -> Levels:
    """The levels found; where a part was not run, the original's."""
    counts = sorted({row.clients for row in rows if row.part in ("figure_2", "figure_4")}) or [1, 2, 3, 4, 5]
    fifth = [row for row in rows if row.part == "figure_5"]
    pool = min((row.workers for row in fifth), default=5)
    beyond = sorted({row.clients for row in fifth}) or list(range(1, 11))
    return Levels(
        few=counts[0],
        most=counts[-1],
        between=tuple(counts),
        pool=pool,
        at_pool=max((n for n in beyond if n <= pool), default=beyond[0]),
        past_pool=min((n for n in beyond if n > pool), default=beyond[-1]),
        farthest=beyond[-1],
    )


def families(rows: Sequence[Row]) -> dict[str, tuple[Contrast, ...]]:
    """Every family, declared for the numbers of clients that were run."""
    at = levels(rows)
    others = at.between[1:]
    most = max((row.clients for row in rows if row.part == "locks"), default=at.most)
    strategies = sorted({row.locking for row in rows if row.part == "locks"} - {"mutex"})
    return {
        "answers": _answers(at),
        "by_clients": tuple(_sockets_to_grpc(n) for n in others) + tuple(_trade_to_lookup(n) for n in others),
        "growth": (
            _growth("figure_1", "lookup", at.few, at.most),
            _growth("figure_1", "trade", at.few, at.most),
            _growth("figure_3", "trade", at.few, at.most),
            _growth("figure_5", "lookup", at.few, at.farthest),
        ),
        "locks": tuple(
            _strategy_to_mutex(strategy, request, most) for strategy in strategies for request in ("lookup", "trade")
        ),
        "pool": (_pool_size(at),),
        "dispatch": (_held_threads(at),),
        "socket_trade": _socket_trade(rows),
        "connection_policy": _connection_policy(rows),
        "updater": _updater(rows),
        "client_kind": _client_kind(rows),
    }


def _answers(at: Levels) -> tuple[Contrast, ...]:
    at_pool, past, far = (Cell("figure_5", "lookup", n) for n in (at.at_pool, at.past_pool, at.farthest))
    return (
        _sockets_to_grpc(at.few),
        _growth("figure_2", "lookup", at.few, at.most),
        _growth("figure_4", "lookup", at.few, at.most),
        _trade_to_lookup(at.few),
        Contrast(
            "past_pool",
            f"Latency per client, {at.farthest} ÷ {at.at_pool} clients",
            far,
            at_pool,
            CLIENTS,
            True,
            at.pool,
        ),
        Contrast(
            "pool_step",
            f"Latency per client, {at.past_pool} ÷ {at.at_pool} clients",
            past,
            at_pool,
            CLIENTS,
            True,
            at.pool,
        ),
    )


def _sockets_to_grpc(clients: int) -> Contrast:
    return Contrast(
        f"sockets_to_grpc_{clients}",
        f"Lookup, {clients_text(clients)}: sockets ÷ gRPC",
        Cell("figure_4", "lookup", clients),
        Cell("figure_2", "lookup", clients),
        TRANSPORT,
    )


def _trade_to_lookup(clients: int) -> Contrast:
    return Contrast(
        f"trade_to_lookup_{clients}",
        f"Trade ÷ Lookup on gRPC, {clients_text(clients)}",
        Cell("figure_3", "trade", clients),
        Cell("figure_2", "lookup", clients),
        REQUEST,
    )


def _growth(part: str, request: str, few: int, most: int) -> Contrast:
    server = "sockets" if part in ("figure_4", "figure_5") else "gRPC"
    return Contrast(
        f"growth_{part}_{request}",
        f"{part.replace('_', ' ').capitalize()}, {request.capitalize()} on {server}: {most} ÷ {clients_text(few)}",
        Cell(part, request, most),
        Cell(part, request, few),
        CLIENTS,
    )


def _strategy_to_mutex(strategy: str, request: str, clients: int) -> Contrast:
    above = Cell("locks", request, clients, transport="sockets", locking=strategy)
    below = Cell("locks", request, clients, transport="sockets", locking="mutex")
    text = f"{request.capitalize()}, {clients_text(clients)}: {strategy} ÷ mutex"
    return Contrast(f"strategy_{strategy}_{request}", text, above, below, frozenset({"locking"}))


def _pool_size(at: Levels) -> Contrast:
    part, clients = "pool_by_clients", at.farthest
    large = Cell(part, "lookup", clients, workers=2 * at.pool)
    text = f"Lookup on sockets, {clients_text(clients)}: pool of {at.pool} ÷ pool of {2 * at.pool}"
    return Contrast("pool_size", text, Cell(part, "lookup", clients, workers=at.pool), large, frozenset({"workers"}))


def _held_threads(at: Levels) -> Contrast:
    above = Cell("dispatch", "lookup", at.at_pool, dispatch="connection")
    below = Cell("dispatch", "lookup", at.few, dispatch="connection")
    text = f"Lookup, a connection holds its thread: {at.at_pool} ÷ {clients_text(at.few)}"
    return Contrast("held_threads", text, above, below, CLIENTS)


def _socket_trade(rows: Sequence[Row]) -> tuple[Contrast, ...]:
    part = "socket_trade"
    return tuple(
        contrast
        for clients in _ends(rows, part)
        for trade in (Cell(part, "trade", clients, transport="sockets"),)
        for contrast in (
            Contrast(
                f"trade_sockets_to_grpc_{clients}",
                f"Trade, {clients_text(clients)}: sockets ÷ gRPC",
                trade,
                Cell(part, "trade", clients, transport="grpc"),
                TRANSPORT,
            ),
            Contrast(
                f"trade_to_lookup_sockets_{clients}",
                f"Trade ÷ Lookup on sockets, {clients_text(clients)}",
                trade,
                Cell(part, "lookup", clients, transport="sockets"),
                REQUEST,
            ),
        )
    )


def _connection_policy(rows: Sequence[Row]) -> tuple[Contrast, ...]:
    part = "connection_policy"
    return tuple(
        Contrast(
            f"reconnecting_{transport}_{clients}",
            f"Lookup on {_SERVER[transport]}, {clients_text(clients)}: a connection per request ÷ kept",
            Cell(part, "lookup", clients, transport=transport, connection="per-request"),
            Cell(part, "lookup", clients, transport=transport, connection="kept-alive"),
            frozenset({"connection"}),
        )
        for transport in _SERVER
        for clients in _ends(rows, part)
    )


def _updater(rows: Sequence[Row]) -> tuple[Contrast, ...]:
    part = "updater"
    return tuple(
        Contrast(
            f"updater_{transport}_{request}_{clients}",
            f"{request.capitalize()} on {_SERVER[transport]}, {clients_text(clients)}: with a price updater ÷ without",
            Cell(part, request, clients, transport=transport, updater=True),
            Cell(part, request, clients, transport=transport, updater=False),
            frozenset({"updater"}),
        )
        for transport in _SERVER
        for request in ("lookup", "trade")
        for clients in _ends(rows, part)
    )


def _client_kind(rows: Sequence[Row]) -> tuple[Contrast, ...]:
    part, counts = "client_kind", _ends(rows, "client_kind")
    own = tuple(
        Contrast(
            f"library_to_lean_{transport}_{clients}",
            f"Lookup on {_SERVER[transport]}, {clients_text(clients)}: its own client ÷ the lean one",
            Cell(part, "lookup", clients, transport=transport, client="library"),
            Cell(part, "lookup", clients, transport=transport, client="lean"),
            frozenset({"client"}),
        )
        for transport in _SERVER
        for clients in counts
    )
    lean = tuple(
        Contrast(
            f"lean_sockets_to_grpc_{clients}",
            f"Lookup by the lean client, {clients_text(clients)}: sockets ÷ gRPC",
            Cell(part, "lookup", clients, transport="sockets", client="lean"),
            Cell(part, "lookup", clients, transport="grpc", client="lean"),
            TRANSPORT,
        )
        for clients in counts
    )
    return own + lean


def _ends(rows: Sequence[Row], part: str) -> list[int]:
    """The fewest and the most clients of a part."""
    counts = {row.clients for row in rows if row.part == part}
    return sorted({min(counts), max(counts)}) if counts else []


def clients_text(clients: int) -> str:
    """``1 client``, ``5 clients``."""
    return "1 client" if clients == 1 else f"{clients} clients"
