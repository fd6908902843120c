"""The comparisons of study ``stock``, declared before any data is seen, in families; and the cells that they compare.

Each is a ratio of mean latencies, cell above ÷ cell below, formed within a block and judged by ``stats``; Holm's
correction runs over its family, whole, what was not run included. The first family, ``answers``, is the four
questions: six comparisons, so eight blocks are the fewest that can show a difference. The others are what else the
report says a verdict of. What was not run in a folder of results is not judged, and is absent from what ``judge``
returns. Left out: words.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from experiments import stats
from experiments.results import Row

ERROR_SHARE_MAX = 0.001
"""A run with more errors than this share of its requests decides nothing."""

SEED = 4
"""Of the sign-flip test, which draws only beyond 16 blocks."""

_SERVER = {"grpc": "gRPC", "sockets": "sockets"}


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

    def holds(self, row: Row) -> bool:
        """Whether the row is of this cell."""
        asked = (
            (self.transport, row.transport),
            (self.workers, row.workers),
            (self.locking, row.locking),
            (self.dispatch, row.dispatch),
            (self.connection, row.connection),
            (self.updater, row.updater),
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
class Judged:
    """A comparison as the data decided it."""

    contrast: Contrast
    result: stats.Comparison
    load_limited: bool
    """In any run of either cell the load side was the limit."""
    unsound_blocks: int = 0
    """Blocks in which either cell had errors, or clients without a reply: with any of them nothing is decided."""


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
    }


def judge(rows: Sequence[Row]) -> dict[str, Judged]:
    """Every declared comparison that the rows have data for, by name."""
    by_cell: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        by_cell.setdefault((row.part, row.request, row.clients), []).append(row)

    def rows_of(contrast: Contrast) -> list[Row]:
        places = dict.fromkeys((cell.part, cell.request, cell.clients) for cell in (contrast.above, contrast.below))
        return [row for place in places for row in by_cell.get(place, ())]

    judged: dict[str, Judged] = {}
    for family in families(rows).values():
        logs = {contrast.name: block_log_ratios(rows_of(contrast), contrast) for contrast in family}
        present = [contrast for contrast in family if contrast.can_be_made and logs[contrast.name]]
        absent = len(family) - len(present)
        results = stats.compare({contrast.name: logs[contrast.name] for contrast in present}, SEED, absent)
        for contrast, result in zip(present, results, strict=True):
            own = [row for row in rows_of(contrast) if contrast.above.holds(row) or contrast.below.holds(row)]
            limited = any(row.load_limited for row in own)
            unsound = len({row.block for row in own if _unsound(row)})
            if unsound:
                result = replace(result, verdict=stats.Verdict.INCONCLUSIVE, blocks_needed=None)
            judged[contrast.name] = Judged(contrast, result, limited, unsound)
    return judged


def _unsound(row: Row) -> bool:
    """Whether its latency is not that of all its requests and clients."""
    failed = row.errors > ERROR_SHARE_MAX * (row.count + row.errors)
    return failed or row.starved_clients > 0 or row.latency_us_mean is None


def block_log_ratios(rows: Iterable[Row], contrast: Contrast) -> list[float]:
    """The comparison in every block that has both of its cells."""
    found = list(rows)
    above, below = latency_by_block(found, contrast.above), latency_by_block(found, contrast.below)
    if contrast.per_client:
        above = {block: value / contrast.above.clients for block, value in above.items()}
        below = {block: value / contrast.below.clients for block, value in below.items()}
    return stats.log_ratios(above, below)


def latency_by_block(rows: Iterable[Row], cell: Cell) -> dict[int, float]:
    """Mean latency in µs by block, where there was any reply."""
    return by_block(rows, cell, lambda row: row.latency_us_mean)


def by_block(rows: Iterable[Row], cell: Cell, measure: Callable[[Row], float | None]) -> dict[int, float]:
    """One measure of a cell by block; blocks that lack it are left out."""
    values = ((row.block, measure(row)) for row in rows if cell.holds(row))
    return {block: value for block, value in values if value is not None}


def _answers(at: Levels) -> tuple[Contrast, ...]:
    at_pool, past, far = (Cell("figure_5", "lookup", n) for n in (at.at_pool, at.past_pool, at.farthest))
    return (
        _sockets_to_grpc(at.few),
        _growth("figure_2", "lookup", at.few, at.most),
        _growth("figure_4", "lookup", at.few, at.most),
        _trade_to_lookup(at.few),
        Contrast("past_pool", f"Latency per client, {at.farthest} ÷ {at.at_pool} clients", far, at_pool, True, at.pool),
        Contrast(
            "pool_step", f"Latency per client, {at.past_pool} ÷ {at.at_pool} clients", past, at_pool, True, at.pool
        ),
    )


def _sockets_to_grpc(clients: int) -> Contrast:
    return Contrast(
        f"sockets_to_grpc_{clients}",
        f"Lookup, {clients_text(clients)}: sockets ÷ gRPC",
        Cell("figure_4", "lookup", clients),
        Cell("figure_2", "lookup", clients),
    )


def _trade_to_lookup(clients: int) -> Contrast:
    return Contrast(
        f"trade_to_lookup_{clients}",
        f"Trade ÷ Lookup on gRPC, {clients_text(clients)}",
        Cell("figure_3", "trade", clients),
        Cell("figure_2", "lookup", clients),
    )


def _growth(part: str, request: str, few: int, most: int) -> Contrast:
    server = "sockets" if part in ("figure_4", "figure_5") else "gRPC"
    return Contrast(
        f"growth_{part}_{request}",
        f"{part.replace('_', ' ').capitalize()}, {request.capitalize()} on {server}: {most} ÷ {clients_text(few)}",
        Cell(part, request, most),
        Cell(part, request, few),
    )


def _strategy_to_mutex(strategy: str, request: str, clients: int) -> Contrast:
    above = Cell("locks", request, clients, transport="sockets", locking=strategy)
    below = Cell("locks", request, clients, transport="sockets", locking="mutex")
    text = f"{request.capitalize()}, {clients_text(clients)}: {strategy} ÷ mutex"
    return Contrast(f"strategy_{strategy}_{request}", text, above, below)


def _pool_size(at: Levels) -> Contrast:
    part, clients = "pool_by_clients", at.farthest
    large = Cell(part, "lookup", clients, workers=2 * at.pool)
    text = f"Lookup on sockets, {clients_text(clients)}: pool of {at.pool} ÷ pool of {2 * at.pool}"
    return Contrast("pool_size", text, Cell(part, "lookup", clients, workers=at.pool), large)


def _held_threads(at: Levels) -> Contrast:
    above = Cell("dispatch", "lookup", at.at_pool, dispatch="connection")
    below = Cell("dispatch", "lookup", at.few, dispatch="connection")
    text = f"Lookup, a connection holds its thread: {at.at_pool} ÷ {clients_text(at.few)}"
    return Contrast("held_threads", text, above, below)


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
            ),
            Contrast(
                f"trade_to_lookup_sockets_{clients}",
                f"Trade ÷ Lookup on sockets, {clients_text(clients)}",
                trade,
                Cell(part, "lookup", clients, transport="sockets"),
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
        )
        for transport in _SERVER
        for request in ("lookup", "trade")
        for clients in _ends(rows, part)
    )


def _ends(rows: Sequence[Row], part: str) -> list[int]:
    """The fewest and the most clients of a part."""
    counts = {row.clients for row in rows if row.part == part}
    return sorted({min(counts), max(counts)}) if counts else []


def clients_text(clients: int) -> str:
    """``1 client``, ``5 clients``."""
    return "1 client" if clients == 1 else f"{clients} clients"
