"""Design of the study ``pools``: a sweep of three servers by turns, a table of cells one at a time, and a stress test.

A **cell** is a fresh server under one load. The document has 72 cells: two languages × six pools × three numbers of
connections × GET and PUT. Python, with our static pool, is a third language here. A pinned cell has a core each for
server and load. A free cell has all cores for both, for the claims about the share of the processor. In the profile
``paper`` each cell is measured pinned and free; other profiles have fewer free cells.

The **sweep** by turns has an A/A pair, and compares all languages side by side, and a debug build with a release build.
Every load opens a connection for each request, as the original did. The load program is our C client for HTTP/1.1,
since the original's load program ``ab`` was the limit in every cell.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from experiments.design.arms import Arm, Comparison, Group, equally_loaded, twins
from experiments.design.levels import Level
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
"""Names of the peers (programs in other languages), by language. The server in Python is part of this project."""

DEBUG = "rust-entity-debug"

LANGUAGES = ("rust", "go", "python")

BOTH = ("rust", "go")
"""Languages of the document."""

PAIRS = (BOTH, ("go", "python"), ("rust", "python"))
"""Pairs of languages that are compared. A ratio is the first language ÷ the second."""

QUANTITIES = {
    "response_ms": "time of a request",
    "cpu_us": "processor time a request",
    "cpu_percent": "share of the processor, all cores free",
    "memory_mib": "memory",
    "connect_ms": "connecting",
    "processing_ms": "processing",
    "received_kb_s": "bytes received a second",
}
"""Names of the cells' quantities in texts, by the quantities' names in recordings."""

VERBS = ("get", "put")

CONNECTIONS = (10, 100, 1000)

POOLS = (2, 4, 8, 16, 32, 64)
"""Numbers of threads in the pools of the original."""

QUICK_POOLS = (2, 8, 64)

FEW, MANY = 2, 64
"""Numbers of threads in the smallest and the largest pool. Growth with the pool is the value with ``MANY`` threads ÷
the value with ``FEW`` threads.
"""

POOL = 8
"""Number of threads of every server in the sweep by turns."""

ONE, AT = 1, 100
"""Numbers of connections in the sweep by turns: ``ONE`` for times, ``AT`` for processor time. Times need one
connection: with more connections the load is the limit. Processor time is measured in the server alone. So the load
does not distort it.
"""

QUICK_REQUESTS, SMOKE_REQUESTS = 2000, 1000
"""Least number of requests in a cell: ``SMOKE_REQUESTS`` in a short scale, ``QUICK_REQUESTS`` in the profile ``quick``.
A cell with many connections has more requests.
"""

QUICK_BLOCKS, PAPER_BLOCKS = 10, 12
"""Numbers of blocks of the table of cells. 10 blocks can decide a family of 18 ratios; 12 blocks can decide a family of
36."""

WINDOW = Windows(warm_up_s=0.05, duration_s=0.1)
"""Windows of the sweep by turns. There are many short windows, so a slow moment of the machine meets both servers of a
pair.
"""

KEYS, SMOKE_KEYS = 10_000, 200
"""Number of keys for each kind of request in the stress test; ``SMOKE_KEYS`` in a short scale."""

STRESS_CONNECTIONS = 1000
"""Number of connections for each kind of request in the stress test. All three kinds run at once."""

FIRST_READ, FIRST_NEW, FIRST_KNOWN = 10**6, 2 * 10**6, 3 * 10**6
"""First keys of the stress test's reads, new keys, and updates. A server begins with the keys 1 to 1000."""


def server(language: str, pool: int, connections: int, verb: str) -> Setting:
    """Setting of a language's server under a load. Python has our static pool; a peer has its own pool.

    ``pool``: number of threads. ``verb``: ``get`` or ``put``.
    """
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
    """Languages whose servers are built here."""
    return tuple(each for each in LANGUAGES if each not in PEERS or PEERS[each] in scale.peers)


def pools(scale: Scale) -> Sweep:
    """Sweep by turns of Rust, Go and Python, and of debug ÷ release, for GET and PUT, with 8 threads.

    The load is 1 connection for the comparisons of times, and 100 connections for the comparisons of processor times.
    """
    here, groups, comparisons = languages(scale), list[Group](), list[Comparison]()
    same, _, _ = twins(server(here[0], POOL, ONE, "get"), "same")
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
    """Comparisons of the pairs of languages. Rust ÷ Go and Go ÷ Python are headlines. Rust ÷ Python is no headline,
    since it follows from these two.
    """
    one, other = (arm.setting.text("language") for arm in (above, below))
    title = f"{verb.upper()}, {POOL} threads: {one.capitalize()} ÷ {other.capitalize()}"
    executor = ("executor",) if "python" in (one, other) else ()  # a peer has its own pool, and none of our executors
    family = "further" if (one, other) == ("rust", "python") else HEADLINE
    yield from _both(f"{one}_{other}_{verb}", title, above, below, ("language", *executor), family)


def _both(
    name: str, title: str, above: Arm, below: Arm, differ: tuple[str, ...], family: str = HEADLINE
) -> Iterator[Comparison]:
    """Comparisons of the time of a request (1 connection), and of the server's processor time (100 connections)."""
    yield Comparison(name, f"{title}, {ONE} connection", above, below, differ, family=family)
    crowded = _crowded(above), _crowded(below)
    text = f"{title}, {AT} connections, processor time"
    yield Comparison(f"{name}_cpu", text, *crowded, differ, measure="cpu", family=family)


def _crowded(arm: Arm) -> Arm:
    """Arm of the same server under 100 connections instead of 1."""
    return Arm(arm.setting.but(connections=AT), arm.copy)


def is_short(scale: Scale) -> bool:
    """True where the scale has too few blocks for a verdict."""
    return scale.looks[-1] < BLOCKS_MIN


def cells(scale: Scale) -> TablePlan:
    """Plan of the cells of tables 1 and 2 (pinned, then free), and of the ratios of cells."""
    requests = REQUESTS if scale.whole else SMOKE_REQUESTS if is_short(scale) else QUICK_REQUESTS
    ends = (CONNECTIONS[0], CONNECTIONS[-1])
    sizes = POOLS if scale.whole else (FEW, MANY) if is_short(scale) else QUICK_POOLS
    pinned = sizes, ends if is_short(scale) else CONNECTIONS
    free = pinned if scale.whole else ((FEW, MANY), ends)
    every = [
        Cell(server(language, pool, connections, verb), max(requests, TURNS_MIN * connections), is_pinned)
        for is_pinned, levels in ((True, pinned), (False, free))
        for language, pool, connections, verb in product(languages(scale), *levels, VERBS)
    ]
    blocks = PAPER_BLOCKS if scale.whole else 1 if is_short(scale) else QUICK_BLOCKS
    return TablePlan(STUDY, PART, tuple(every), tuple(_ratios(every, languages(scale))), blocks, scale.seed)


Cells = Sequence[Cell]


def _places(cells: Cells, pinned: bool = True, **levels: Level) -> tuple[int, ...]:
    """Indices in ``cells`` of the cells that have these levels. ``pinned``: True for pinned cells, False for free
    cells.
    """
    return tuple(
        place
        for place, each in enumerate(cells)
        if each.pinned == pinned and all(each.setting[name] == level for name, level in levels.items())
    )


def _both_languages(cells: Cells, pinned: bool = True, **levels: Level) -> Iterator[tuple[int, ...]]:
    """Indices of the cells with these levels, in two lists: first Rust's cells, then Go's cells."""
    return (_places(cells, pinned, language=each, **levels) for each in BOTH)


def _ratios(cells: Cells, here: Sequence[str]) -> Iterator[CellRatio]:
    for one, other in PAIRS:
        if {one, other} <= set(here):
            yield from _between_languages(cells, one, other)
    if set(BOTH) <= set(here):
        yield from _each_cell(cells)
        yield from _crossing(cells)
    for language in here:
        yield from _within_language(cells, language)


def _between_languages(cells: Cells, one: str, other: str) -> Iterator[CellRatio]:
    """Ratios of two languages over all pinned cells together: of the time and the processor time of a request for each
    verb, and of memory."""
    named = f"{one.capitalize()} ÷ {other.capitalize()}"
    for verb, quantity in product(VERBS, ("response_ms", "cpu_us")):
        above, below = (_places(cells, language=each, mix=verb) for each in (one, other))
        name, title = f"{one}_{other}_{quantity}_{verb}", f"{verb.upper()}: {named}"
        yield CellRatio(name, title, above, below, quantity, "languages")
    above, below = (_places(cells, language=each) for each in (one, other))
    yield CellRatio(f"{one}_{other}_memory", named, above, below, "memory_mib", "languages")


def _each_cell(cells: Cells) -> Iterator[CellRatio]:
    """Ratios Rust ÷ Go in every pinned cell, for claims about every case."""
    for quantity in ("response_ms", "received_kb_s", "memory_mib"):
        for place in _places(cells, language=BOTH[0]):
            of = cells[place].setting
            pool, connections, verb = of.whole("workers"), of.whole("connections"), of.text("mix")
            above, below = _both_languages(cells, workers=pool, connections=connections, mix=verb)
            name = f"each_{quantity}_{verb}_{pool}_{connections}"
            title = f"{verb.upper()}, {pool} threads, {connections:,} connections: Rust ÷ Go"
            yield CellRatio(name, title, above, below, quantity, f"each {quantity} of {verb}")


def _crossing(cells: Cells) -> Iterator[CellRatio]:
    """Ratios Rust ÷ Go of the share of the processor with 2 threads and with 64 threads. Also ratios of the times of
    connecting and processing, with 1000 connections."""
    for pool in (FEW, MANY):
        above, below = _both_languages(cells, pinned=False, workers=pool)
        title = f"{pool} threads, all cores free: Rust ÷ Go"
        yield CellRatio(f"crossing_{pool}", title, above, below, "cpu_percent", "crossing")
    for quantity in ("connect_ms", "processing_ms"):
        above, below = _both_languages(cells, connections=CONNECTIONS[-1])
        title = f"{CONNECTIONS[-1]:,} connections: Rust ÷ Go"
        yield CellRatio(f"last_{quantity}", title, above, below, quantity, "last")


def _within_language(cells: Cells, language: str) -> Iterator[CellRatio]:
    """Ratios within a language: the largest pool ÷ the smallest pool, the most connections ÷ the fewest connections,
    and PUT ÷ GET.
    """
    named, last, first = language.capitalize(), CONNECTIONS[-1], CONNECTIONS[0]
    of_pools, of_connections = f"{named}: {MANY} threads ÷ {FEW}", f"{named}: {last:,} connections ÷ {first}"
    for quantity, pinned in (("cpu_percent", False), ("cpu_us", True), ("memory_mib", True), ("response_ms", True)):
        above, below = (_places(cells, pinned, language=language, workers=each) for each in (MANY, FEW))
        yield CellRatio(f"pool_{quantity}_{language}", of_pools, above, below, quantity, "pool")
    for quantity, pinned in (("cpu_percent", False), ("cpu_us", True), ("connect_ms", True), ("processing_ms", True)):
        above, below = (_places(cells, pinned, language=language, connections=each) for each in (last, first))
        yield CellRatio(f"connections_{quantity}_{language}", of_connections, above, below, quantity, "connections")
    for quantity in ("cpu_us", "response_ms"):  # not memory: one process serves both GET and PUT
        above, below = (_places(cells, language=language, mix=verb) for verb in ("put", "get"))
        yield CellRatio(f"put_get_{quantity}_{language}", f"{named}: PUT ÷ GET", above, below, quantity, "requests")


def stress(scale: Scale) -> StressPlan:
    """Plan of the stress test. Each server gets 40,000 requests (800 in a short scale), of three kinds at once: reads,
    new keys, and two updates of each known key.
    """
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
