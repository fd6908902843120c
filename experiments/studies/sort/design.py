"""The document's numbers and parameters, and the sweeps of the study: arms, groups and comparisons, and the cold runs.

An arm is one server under one load. The document's client makes N calls. For each N, 100 to 10,000, the document has a
slide "Resultados" with a figure. The slide has the mean round-trip times at the client in µs, without intervals. The
document's parameters are the table "Parâmetros". Times and parameters are context only, since they are of another
machine.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product

from experiments.design.arms import Arm, Comparison, Group, equally_loaded, twins
from experiments.design.setting import Setting, setting
from experiments.design.sweep import Slices, Sweep, Windows
from experiments.kinds.cold import ColdCell, ColdPlan
from experiments.show.figures.style import label
from experiments.studies.study import Scale

CALLS = (100, 1000, 10000)
"""Levels of the document's factor N: numbers of calls that the document's client makes in a loop."""

MEAN_US: Mapping[tuple[str, str, int], float] = {
    ("grpc", "merge", 100): 205.083,
    ("grpc", "quick", 100): 124.32,
    ("net-rpc", "merge", 100): 136.06,
    ("net-rpc", "quick", 100): 90.229,
    ("grpc", "merge", 1000): 79.98,
    ("grpc", "quick", 1000): 80.25,
    ("net-rpc", "merge", 1000): 33.208,
    ("net-rpc", "quick", 1000): 33.5,
    ("grpc", "merge", 10000): 51.417,
    ("grpc", "quick", 10000): 50.083,
    ("net-rpc", "merge", 10000): 31.625,
    ("net-rpc", "quick", 10000): 32.375,
}
"""Mean round-trip time in µs, by mechanism, algorithm and N (slides "Resultados", one for each N)."""

PARAMETERS: Mapping[str, str] = {
    "Hardware": "MacBook M2 Pro, 16 GB",
    "Operating system": "macOS (Sonoma 14.1.1)",
    "Programming language": "Go",
    "Network interfaces": "off",
    "Power supply": "the mains",
    "Running processes": "only those that the experiment needs",
}
"""The document's table of parameters, in the document's order."""


HEADLINE = "headline"

MERGE, QUICK = "merge", "quick"

ALGORITHMS = {MERGE: "merge sort", QUICK: "quicksort"}
"""Names of the algorithms for people, by the algorithms' names in settings."""

MECHANISMS = ("grpc", "net-rpc")

PEERS = tuple(f"go-sort-{each}" for each in MECHANISMS)
"""Names of Go's peers. The parts about Go need both peers."""

TRANSPORTS = ("grpc", "sockets")
"""Transports of the servers in Python. net/rpc exists in Go alone."""

LENGTHS = (100, 1000, 10000)
"""Numbers of elements in the array: the second reading of the original's N."""

WARM_CALLS = 500
"""Number of calls in a window. The number is small, so that two compared windows are near in time. A window's first
call does not count."""

LONG_CALLS = 200
"""Number of calls in a window with long arrays. Such a call takes up to 2 ms."""

RUNS = {100: 18, 1000: 3, 10000: 2}
"""Number of cold runs of a cell in a block, by N. Cells with few calls have more runs, since a mean of few calls varies
more."""

SAME_LENGTH = 1000
"""Number of elements in the array that the A/A pairs of ``sort_array_len`` sort."""


@cache
def go(mechanism: str, algorithm: str, array_len: int = 0) -> Setting:
    """Setting of a server in Go, loaded by Go's client. ``array_len`` is the array's length, or 0 for the textbook's
    array."""
    return setting(
        service="sort", language="go", transport=mechanism, client="peer", mix=algorithm, array_len=array_len
    )


@cache
def python(transport: str, algorithm: str, array_len: int = 0) -> Setting:
    """Setting of a server of this project, loaded by the transport's own client. ``array_len`` is the array's length,
    or 0 for the textbook's array."""
    return setting(service="sort", transport=transport, executor="static-pool", mix=algorithm, array_len=array_len)


def has_go(scale: Scale) -> bool:
    """True where both of Go's peers are built here."""
    return scale.peers >= set(PEERS)


def sort(scale: Scale) -> Sweep:
    """Sweep of the main part: both mechanisms in Go with both algorithms, and an A/A pair of each mechanism."""
    if not has_go(scale):
        return python_sort("sort", scale)
    same = [twins(go(each, MERGE), "same") for each in MECHANISMS]
    arms = [Arm(go(mechanism, algorithm)) for mechanism, algorithm in product(MECHANISMS, ALGORITHMS)]
    group = Group((*arms, *(again for _, _, again in same)))
    comparisons = [*_mechanisms(), *_algorithms(), *(comparison for comparison, _, _ in same)]
    groups = equally_loaded([group], comparisons)
    rounds, turns = max(1, 4 * scale.rounds // 3), Windows(calls=WARM_CALLS)
    return Sweep("sort", "sort", groups, tuple(comparisons), rounds, scale.looks, scale.seed, turns)


def array_len(scale: Scale) -> Sweep:
    """Sweep of random arrays of 100, 1000 and 10,000 numbers. The comparisons are gRPC ÷ net/rpc at each length, and
    10,000 numbers ÷ 1000 numbers.
    """
    if not has_go(scale):
        return python_array_len("sort_array_len", scale)
    groups = [
        Group(tuple(Arm(go(mechanism, algorithm, length)) for mechanism, length in product(MECHANISMS, LENGTHS)))
        for algorithm in ALGORITHMS
    ]
    same = [twins(go(each, MERGE, SAME_LENGTH), "same") for each in MECHANISMS]
    groups += [Group(tuple(arm for _, *pair in same for arm in pair))]
    comparisons = [comparison for length in LENGTHS for comparison in _mechanisms(length)]
    comparisons += [*_growth(), *(comparison for comparison, _, _ in same)]
    rounds, turns, loaded = max(1, scale.rounds // 5), Windows(calls=LONG_CALLS), equally_loaded(groups, comparisons)
    return Sweep("sort", "sort_array_len", loaded, tuple(comparisons), rounds, scale.looks, scale.seed, turns)


def cold(scale: Scale) -> tuple[ColdPlan, ...]:
    """Plan of the cold runs of the original's 12 cells (mechanism, algorithm, N). Empty where Go's peers are not
    built."""
    if not has_go(scale):
        return ()
    cells = tuple(
        ColdCell(go(mechanism, algorithm), calls, RUNS[calls])
        for mechanism, algorithm, calls in product(MECHANISMS, ALGORITHMS, CALLS)
    )
    return (ColdPlan("sort", "sort", cells, scale.looks[0], scale.seed),)


def _mechanisms(length: int = 0) -> Iterator[Comparison]:
    """Comparisons gRPC ÷ net/rpc for each algorithm. ``length`` is the array's length, or 0 for the textbook's
    array."""
    for algorithm, name in ALGORITHMS.items():
        above, below = (Arm(go(mechanism, algorithm, length)) for mechanism in MECHANISMS)
        what = f"{name}, {length:,} numbers" if length else name
        named = f"mechanism_{algorithm}_{length}" if length else f"mechanism_{algorithm}"
        yield Comparison(named, f"Go, {what}: gRPC ÷ net/rpc", above, below, ("transport",), family=HEADLINE)


def _algorithms() -> Iterator[Comparison]:
    """Comparisons merge sort ÷ quicksort on each mechanism."""
    for mechanism in MECHANISMS:
        above, below = (Arm(go(mechanism, algorithm)) for algorithm in ALGORITHMS)
        title = f"Go, {label(mechanism)}: merge sort ÷ quicksort"
        yield Comparison(f"algorithm_{mechanism.replace('-', '_')}", title, above, below, ("mix",), family=HEADLINE)


def _growth() -> Iterator[Comparison]:
    """Comparisons 10,000 numbers ÷ 1000 numbers, on each mechanism and with each algorithm."""
    for mechanism, algorithm in product(MECHANISMS, ALGORITHMS):
        above, below = (Arm(go(mechanism, algorithm, length)) for length in (LENGTHS[2], LENGTHS[1]))
        title = f"Go, {label(mechanism)}, {ALGORITHMS[algorithm]}: 10,000 ÷ 1,000 numbers"
        name = f"growth_{mechanism.replace('-', '_')}_{algorithm}"
        yield Comparison(name, title, above, below, ("array_len",), family="growth")


def python_sort(part: str, scale: Scale) -> Sweep:
    """Sweep of the transports in Python, in slices. The comparisons are sockets ÷ gRPC, and merge sort ÷ quicksort on
    each transport. Each transport has an A/A pair.
    """
    merges = {each: Arm(python(each, MERGE)) for each in TRANSPORTS}
    quicks = {each: Arm(python(each, QUICK)) for each in TRANSPORTS}
    groups = [Group((*merges.values(), *quicks.values()))]
    comparisons: list[Comparison] = []
    for transport in TRANSPORTS:
        same, first, again = twins(python(transport, MERGE), "same")
        groups.append(Group((first, quicks[transport], again), times=4))
        comparisons.append(same)
        title = f"Python, {label(transport)}: merge sort ÷ quicksort"
        above, below = merges[transport], quicks[transport]
        comparisons.append(Comparison(f"python_algorithm_{transport}", title, above, below, ("mix",), family=HEADLINE))
    for name, of in ((MERGE, merges), (QUICK, quicks)):
        title = f"Python, {ALGORITHMS[name]}: sockets ÷ gRPC"
        pair = of["sockets"], of["grpc"]
        comparisons.append(Comparison(f"python_transport_{name}", title, *pair, ("transport",), family=HEADLINE))
    loaded, turns = equally_loaded(groups, comparisons), Slices(block_s=scale.block_s)
    return Sweep("sort", part, loaded, tuple(comparisons), scale.rounds, scale.looks, scale.seed, turns)


def python_array_len(part: str, scale: Scale) -> Sweep:
    """Sweep of the transports in Python on longer arrays, for each algorithm. Each arm has one window in a block. The
    sweep has no comparison, and so no verdict."""
    groups = [
        Group(tuple(Arm(python(transport, *each)) for each in product(ALGORITHMS, LENGTHS))) for transport in TRANSPORTS
    ]
    return Sweep("sort", part, tuple(groups), (), 1, scale.looks, scale.seed, Windows(0.1, 0.4))
