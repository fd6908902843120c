"""Sweeps of the study ``pools``: three servers by turns, all cells one at a time, and a stress test.

The document's 72 cells are two languages × six pools × three connections × GET and PUT; Python's static pool is a third
language. They are **cells**: a fresh server each, with a core of its own; and again with all cores free, for the claims
about its share of the processor. A **sweep** by turns asks the headline once more, of all languages side by side, with
an A/A pair, and of a debug build. Every load opens a connection for each request, as the original did. The load is our
C client for HTTP/1.1: ``ab`` was the limit in every cell of the original.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from experiments.design.arms import Arm, Comparison, Group, equally_loaded, twins
from experiments.design.setting import Setting, setting
from experiments.design.sweep import BLOCKS_MIN, Sweep, Windows
from experiments.kinds.stress import FinalState, StressKind, StressPlan
from experiments.kinds.table import TURNS_MIN, Cell, CellRatio, TablePlan
from experiments.peers import PYTHON
from experiments.studies.pools.original import REQUESTS
from experiments.studies.study import Scale

STUDY = PART = "pools"

HEADLINE = "headline"

PEERS = {"rust": "rust-entity", "go": "go-entity"}
"""Peer that a language needs; Python's server is ours."""

DEBUG = "rust-entity-debug"

LANGUAGES = ("rust", "go", "python")

BOTH = ("rust", "go")
"""Languages of the document."""

PAIRS = (BOTH, ("go", "python"), ("rust", "python"))
"""Languages whose ratios are asked for."""

VERBS = ("get", "put")

CONNECTIONS = (10, 100, 1000)

POOLS = (2, 4, 8, 16, 32, 64)
"""Pools of the original; ``quick`` has three of them."""

QUICK_POOLS = (2, 8, 64)

FEW, MANY = 2, 64
"""Smallest and largest pool, and 10 and 1000 connections: growth is judged between the two."""

POOL = 8
"""Threads of the sweep by turns."""

ONE, AT = 1, 100
"""Connections of the sweep by turns. Times are compared with one connection: with more, the load is the limit.
Processor time is compared with more connections, since it is the server's own."""

QUICK_REQUESTS, SMOKE_REQUESTS = 2000, 1000
"""Requests of a cell; more in a cell whose connections need more."""

QUICK_BLOCKS, PAPER_BLOCKS = 10, 12
"""Numbers of blocks: the first decides a family of 18, the second one of 36."""

WINDOW = Windows(warm_up_s=0.05, duration_s=0.1)
"""Short windows, and many in a block: a slow moment of the machine then meets both servers of a pair."""

KEYS, SMOKE_KEYS = 10_000, 200
"""Keys of each kind of the stress test."""

STRESS_CONNECTIONS = 1000
"""Connections of each kind of the stress test: three thousand at once."""

FIRST_READ, FIRST_NEW, FIRST_KNOWN = 10**6, 2 * 10**6, 3 * 10**6
"""First keys of the stress test; the store begins with 1 to 1000."""


def server(language: str, pool: int, connections: int, verb: str) -> Setting:
    """A language's server with its static pool, under a load. A peer's pool is its own."""
    executor = {"executor": "static-pool"} if language == PYTHON else {}
    return setting(
        service="entity",
        transport="http1",
        language=language,
        workers=pool,
        connections=connections,
        connection="per-request",
        mix=verb,
        client="c-http",
        **executor,
    )


def languages(scale: Scale) -> tuple[str, ...]:
    """Languages whose servers are here."""
    return tuple(each for each in LANGUAGES if each not in PEERS or PEERS[each] in scale.peers)


def pools(scale: Scale) -> Sweep:
    """Rust ÷ Go ÷ Python by turns, GET and PUT, 8 threads: times with 1 connection, processor time with 100; debug ÷
    release."""
    here = languages(scale)
    same, _, _ = twins(server(here[0], POOL, ONE, "get"), "same")
    groups: list[Group] = []
    comparisons: list[Comparison] = []
    for verb in VERBS:
        arms = {language: Arm(server(language, POOL, ONE, verb)) for language in here}
        own = list(arms.values())
        pairs = [pair for pair in PAIRS if set(pair) <= arms.keys()]
        for above, below in pairs:
            comparisons += _languages(verb, arms[above], arms[below])
        if "rust" in arms and DEBUG in scale.peers:
            debug = Arm(arms["rust"].setting.but(build="debug"))
            own.append(debug)
            title = f"{verb.upper()}, {POOL} threads: Rust in debug ÷ in release"
            comparisons += _both(f"debug_{verb}", title, debug, arms["rust"], ("build",))
        groups += [Group(tuple(own)), Group(tuple(map(_crowded, own)))]
    comparisons.append(same)
    loaded = equally_loaded(groups, comparisons)
    return Sweep(STUDY, PART, loaded, tuple(comparisons), scale.rounds, scale.looks, scale.seed, WINDOW)


def _languages(verb: str, above: Arm, below: Arm) -> Iterator[Comparison]:
    """Ratios of languages. Rust ÷ Go and Go ÷ Python are the headline; Rust ÷ Python follows from them."""
    one, other = (arm.setting.text("language") for arm in (above, below))
    title = f"{verb.upper()}, {POOL} threads: {one.capitalize()} ÷ {other.capitalize()}"
    executor = ("executor",) if "python" in (one, other) else ()  # a peer's pool is its own
    family = "further" if (one, other) == ("rust", "python") else HEADLINE
    yield from _both(f"{one}_{other}_{verb}", title, above, below, ("language", *executor), family)


def _both(
    name: str, title: str, above: Arm, below: Arm, differ: tuple[str, ...], family: str = HEADLINE
) -> Iterator[Comparison]:
    """The time of a request with one connection, and the server's processor time for one with many."""
    yield Comparison(name, f"{title}, {ONE} connection", above, below, differ, family=family)
    crowded = _crowded(above), _crowded(below)
    text = f"{title}, {AT} connections, processor time"
    yield Comparison(f"{name}_cpu", text, *crowded, differ, measure="cpu", family=family)


def _crowded(arm: Arm) -> Arm:
    """The same server under many connections."""
    return Arm(arm.setting.but(connections=AT), arm.copy)


def is_short(scale: Scale) -> bool:
    """True where there are too few blocks for any verdict."""
    return scale.looks[-1] < BLOCKS_MIN


class Table:
    """All cells of a scale, to be found by their levels."""

    def __init__(self, scale: Scale) -> None:
        requests = REQUESTS if scale.whole else SMOKE_REQUESTS if is_short(scale) else QUICK_REQUESTS
        ends = (CONNECTIONS[0], CONNECTIONS[-1])
        self.languages = languages(scale)
        self.connections = ends if is_short(scale) else CONNECTIONS
        self.pools = POOLS if scale.whole else (FEW, MANY) if is_short(scale) else QUICK_POOLS
        self.free_pools = self.pools if scale.whole else (FEW, MANY)
        self.free_connections = self.connections if scale.whole else ends
        self._cells: dict[tuple[str, int, int, str, bool], Cell] = {}
        for pinned, pool_sizes, connections in (
            (True, self.pools, self.connections),
            (False, self.free_pools, self.free_connections),
        ):
            for key in product(self.languages, pool_sizes, connections, VERBS):
                needed = TURNS_MIN * key[2]
                self._cells[*key, pinned] = Cell(server(*key), max(requests, needed), pinned)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Cells in the tables' order: pinned, then free."""
        return tuple(self._cells.values())

    def of(
        self,
        language: str,
        pools: Sequence[int] | None = None,
        connections: Sequence[int] | None = None,
        verbs: Sequence[str] = VERBS,
        pinned: bool = True,
    ) -> tuple[int, ...]:
        """Places of the cells of a language; all pools or connections unless told."""
        own_pools = pools or (self.pools if pinned else self.free_pools)
        own_connections = connections or (self.connections if pinned else self.free_connections)
        places = {key: place for place, key in enumerate(self._cells)}
        return tuple(places[language, *key, pinned] for key in product(own_pools, own_connections, verbs))


def cells(scale: Scale) -> TablePlan:
    """Every cell of tables 1 and 2, and the ratios asked of them."""
    table = Table(scale)
    blocks = PAPER_BLOCKS if scale.whole else 1 if is_short(scale) else QUICK_BLOCKS
    return TablePlan(STUDY, PART, table.cells, tuple(_ratios(table)), blocks, scale.seed)


def _ratios(table: Table) -> Iterator[CellRatio]:
    for one, other in PAIRS:
        if {one, other} <= set(table.languages):
            yield from _between_languages(table, one, other)
    if set(BOTH) <= set(table.languages):
        yield from _each_cell(table)
        yield from _crossing(table)
    for language in table.languages:
        yield from _within_language(table, language)


def _between_languages(table: Table, one: str, other: str) -> Iterator[CellRatio]:
    """Ratios over all cells together: of the time, the processor time and the memory."""
    for verb, quantity in product(VERBS, ("response_ms", "cpu_us")):
        name = f"{one}_{other}_{quantity}_{verb}"
        above, below = (table.of(each, verbs=(verb,)) for each in (one, other))
        yield CellRatio(name, f"{verb.upper()}: {_named(one, other)}", above, below, quantity, "languages")
    above, below = table.of(one), table.of(other)
    yield CellRatio(f"{one}_{other}_memory", _named(one, other), above, below, "memory_mib", "languages")


def _each_cell(table: Table) -> Iterator[CellRatio]:
    """Rust ÷ Go in every cell, for claims that say always."""
    for quantity in ("response_ms", "received_kb_s", "memory_mib"):
        for pool, connections, verb in product(table.pools, table.connections, VERBS):
            above, below = (table.of(each, (pool,), (connections,), (verb,)) for each in BOTH)
            name = f"each_{quantity}_{verb}_{pool}_{connections}"
            title = f"{verb.upper()}, {pool} threads, {connections:,} connections: Rust ÷ Go"
            yield CellRatio(name, title, above, below, quantity, f"each {quantity} of {verb}")


def _crossing(table: Table) -> Iterator[CellRatio]:
    """Rust ÷ Go by the share of the processor, with as many threads as cores and with far more; connecting at 1000."""
    for pool in (FEW, MANY):
        above, below = (table.of(each, (pool,), pinned=False) for each in BOTH)
        title = f"{pool} threads, all cores free: Rust ÷ Go"
        yield CellRatio(f"crossing_{pool}", title, above, below, "cpu_percent", "crossing")
    for quantity in ("connect_ms", "processing_ms"):
        above, below = (table.of(each, connections=CONNECTIONS[-1:]) for each in BOTH)
        yield CellRatio(
            f"last_{quantity}", f"{CONNECTIONS[-1]:,} connections: Rust ÷ Go", above, below, quantity, "last"
        )


def _within_language(table: Table, language: str) -> Iterator[CellRatio]:
    """Ratios for a larger pool, more connections, and a PUT in place of a GET."""
    named = language.capitalize()
    pools, ends = ((MANY,), (FEW,)), (CONNECTIONS[-1:], CONNECTIONS[:1])
    for quantity, pinned in (("cpu_percent", False), ("cpu_us", True), ("memory_mib", True), ("response_ms", True)):
        above, below = (table.of(language, pools=each, pinned=pinned) for each in pools)
        title = f"{named}: {MANY} threads ÷ {FEW}"
        yield CellRatio(f"pool_{quantity}_{language}", title, above, below, quantity, "pool")
    for quantity, pinned in (("cpu_percent", False), ("cpu_us", True), ("connect_ms", True), ("processing_ms", True)):
        above, below = (table.of(language, connections=each, pinned=pinned) for each in ends)
        title = f"{named}: {CONNECTIONS[-1]:,} connections ÷ {CONNECTIONS[0]}"
        yield CellRatio(f"connections_{quantity}_{language}", title, above, below, quantity, "connections")
    for quantity in ("cpu_us", "response_ms"):  # not memory: GET and PUT are asked of one process
        above, below = (table.of(language, verbs=(verb,)) for verb in ("put", "get"))
        yield CellRatio(f"put_get_{quantity}_{language}", f"{named}: PUT ÷ GET", above, below, quantity, "requests")


def _named(one: str, other: str) -> str:
    return f"{one.capitalize()} ÷ {other.capitalize()}"


def stress(scale: Scale) -> StressPlan:
    """40,000 requests of three kinds at once: reads, new keys, and two updates for each known key."""
    keys = SMOKE_KEYS if is_short(scale) else KEYS
    entity, at = '{"id":{id},"description":"entity {id}","value":0.5}', "/entities/{id}"
    update = '{"id":{id},"description":"update {turn} of {id}","value":{turn}.5}'
    before = StressKind("keys to read", f"PUT {at}", FIRST_READ, keys, body=entity)
    return StressPlan(
        STUDY,
        PART,
        servers=tuple(server(each, POOL, 1, "get") for each in languages(scale)),
        before=(before, replace(before, name="keys to update", first_id=FIRST_KNOWN)),
        kinds=(
            StressKind("PUT new data", f"PUT {at}", FIRST_NEW, keys, body=entity, expect='{"created":true}'),
            StressKind("GET data", f"GET {at}", FIRST_READ, keys, expect=entity),
            StressKind("PUT update data", f"PUT {at}", FIRST_KNOWN, keys, 2, update, '{"created":false}'),
        ),
        final=(
            FinalState("new", f"GET {at}", FIRST_NEW, keys, entity),
            FinalState("read", f"GET {at}", FIRST_READ, keys, entity),
            FinalState("updated", f"GET {at}", FIRST_KNOWN, keys, update, 2),
        ),
        connections=STRESS_CONNECTIONS,
        blocks=3 if scale.whole else 1,
    )
