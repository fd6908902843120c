"""Sweeps of the study ``sockets``: four socket APIs in C at the original's rates and sizes; runs that receivers report
on.

The APIs of a rate and size stand side by side, with the request-reply pattern on all of them. Every API has an A/A pair
in one cell, whose second server carries the loads of all cells too. In the profile ``paper`` a window is a second, one
sample of the original. Else it is a quarter of one, four a block: a pause of the machine then spoils one alone.
Afterwards fresh servers tell what they received: the original's timer beside the true times, and throughput.
"""

from experiments.design.arms import Arm, Comparison, Group, equally_loaded, twins
from experiments.design.setting import Setting, setting
from experiments.design.sweep import Sweep, Windows
from experiments.kinds.delivery import DeliveryCell, DeliveryPlan
from experiments.studies.sockets.original import GRAPHS, SIZES, THROUGHPUT_SAMPLES
from experiments.studies.study import Scale

HEADLINE, SUCCESSOR = "headline", "nng"

BASE, SUCCESSOR_OF = "berkeley", "nanomsg"
APIS = (BASE, "zeromq", SUCCESSOR_OF, "nng")
"""The document's three, and nanomsg's successor."""

NAMES = {"berkeley": "Berkeley sockets", "zeromq": "ZeroMQ", "nanomsg": "nanomsg", "nng": "NNG"}

PEERS = tuple(f"c-{api}" for api in APIS)

SAMPLE_S, WINDOW_S = 1.0, 0.25
"""Seconds of a window in ``paper``, and in other profiles."""

PATTERN_APIS = ("zeromq", "nanomsg")
"""APIs whose patterns the original confused. Eight servers are the most, and each API takes three."""

BINDINGS = ("zeromq", "nng")
"""Libraries with a binding for Python. Three servers of each, and two of Berkeley sockets, are eight."""

PATTERN_CALLS = 400
"""Calls of a window in a closed loop: some tenth of a second."""

LONG_ROUNDS = 60
"""Rounds from which on windows and receivers have as many seconds as the original had."""

TIMED_BLOCKS, THROUGHPUT_BLOCKS = 3, 8
"""Blocks of the timers and of throughput, in other profiles: the timers hardly vary; throughput is compared."""

THROUGHPUT_S = 2


def of(api: str, rate_hz: float | None, size: int, pattern: str = "request-reply") -> Setting:
    """An API at a rate (None: as fast as it can) and size."""
    return setting(
        service="echo",
        language="c",
        transport=api,
        client="peer",
        mix="echo",
        rate_hz=rate_hz,
        arrivals="constant",
        size=size,
        pattern=pattern,
    )


def apis(scale: Scale) -> tuple[str, ...]:
    """APIs that are built here."""
    return tuple(api for api in APIS if f"c-{api}" in scale.peers)


def cell_name(rate_hz: float, size: int) -> str:
    """Name of a cell, such as ``30_10``: messages a second, and KB."""
    return f"{rate_hz:g}_{size // 1000}"


def words(rate_hz: float, size: int) -> str:
    """Words for a cell: ``30/s of 10 KB``."""
    return f"{rate_hz:g}/s of {size // 1000} KB"


def ratio_name(above: str, below: str, cell: tuple[float, int]) -> str:
    """Name of the comparison of two APIs in a cell."""
    return f"{above}_{below}_{cell_name(*cell)}"


def sockets(scale: Scale) -> Sweep:
    """The main part: response time by API, rate and size. Raises ValueError where no API is built."""
    here = apis(scale)
    if not here:
        raise ValueError("no API is built")
    groups: list[Group] = []
    comparisons: list[Comparison] = []
    for place, cell in enumerate(GRAPHS):
        arms = {api: Arm(of(api, *cell)) for api in here}
        twin = here[place % len(here)]
        same, _, again = twins(arms[twin].setting, "same")
        groups.append(Group((*arms.values(), again)))
        comparisons += [*_ratios(arms, cell), same]
    small, large = (Arm(of(BASE, GRAPH_RATE_HZ, size)) for size in SIZES)
    groups.append(Group((small, large)))
    title = f"{NAMES[BASE]}, {GRAPH_RATE_HZ:g}/s: 100 KB ÷ 10 KB"
    comparisons.append(Comparison("size", title, large, small, ("size",)))
    loaded, turns = equally_loaded(groups, comparisons), Windows(duration_s=SAMPLE_S if _is_long(scale) else WINDOW_S)
    return Sweep("sockets", "sockets", loaded, tuple(comparisons), scale.rounds, scale.looks, scale.seed, turns)


def _is_long(scale: Scale) -> bool:
    return scale.rounds >= LONG_ROUNDS


GRAPH_RATE_HZ = 50.0
"""Rate at which the two sizes stand side by side."""


def _ratios(arms: dict[str, Arm], cell: tuple[float, int]) -> list[Comparison]:
    """Ratios of one rate and size: the libraries ÷ Berkeley; nanomsg ÷ ZeroMQ; NNG ÷ Berkeley and ÷ nanomsg."""
    asked = [("zeromq", BASE, HEADLINE), ("nanomsg", BASE, HEADLINE), ("nanomsg", "zeromq", "further")]
    asked += [("nng", BASE, SUCCESSOR), ("nng", SUCCESSOR_OF, SUCCESSOR)]
    return [
        Comparison(
            ratio_name(above, below, cell),
            f"{words(*cell)}: {NAMES[above]} ÷ {NAMES[below]}",
            arms[above],
            arms[below],
            ("transport",),
            family=family,
        )
        for above, below, family in asked
        if above in arms and below in arms
    ]


def patterns(scale: Scale) -> Sweep:
    """Pair beside request-reply, in a closed loop, where the two are other sockets."""
    groups: list[Group] = []
    comparisons: list[Comparison] = []
    for api in (api for api in PATTERN_APIS if api in apis(scale)):
        for size in SIZES:
            asking, pair = (Arm(of(api, None, size, pattern)) for pattern in ("request-reply", "pair"))
            same, _, again = twins(asking.setting, "same")
            groups.append(Group((asking, pair, again)))
            title = f"{NAMES[api]}, {size // 1000} KB, a closed loop: pair ÷ request-reply"
            name = f"pair_{api}_{size // 1000}"
            comparisons += [Comparison(name, title, pair, asking, ("pattern",), family=HEADLINE), same]
    loaded, turns = equally_loaded(groups, comparisons), Windows(calls=PATTERN_CALLS)
    rounds, looks = scale.rounds, scale.looks
    return Sweep("sockets", "socket_patterns", loaded, tuple(comparisons), rounds, looks, scale.seed, turns)


def python_of(api: str) -> Setting:
    """The same program in Python, in a closed loop."""
    return of(api, None, SIZES[0]).but(language="python")


def bindings(scale: Scale) -> Sweep:
    """Bindings for Python beside the same libraries in C, and beside Berkeley sockets in Python; in a closed loop."""
    python = {api: Arm(python_of(api)) for api in (BASE, *BINDINGS)}
    native = {api: Arm(of(api, None, SIZES[0])) for api in BINDINGS if api in apis(scale)}
    pairs = [twins(arm.setting, "same") for arm in python.values()]
    comparisons = [same for same, _, _ in pairs]
    for api in BINDINGS:
        if api in native:
            sides = python[api], native[api]
            title = f"{NAMES[api]}: Python ÷ C"
            comparisons.append(Comparison(f"binding_{api}", title, *sides, ("language",), family=HEADLINE))
        title = f"Python: {NAMES[api]} ÷ {NAMES[BASE]}"
        sides = python[api], python[BASE]
        comparisons.append(Comparison(f"python_{api}", title, *sides, ("transport",), family="python"))
    groups = [Group((*python.values(), *(again for _, _, again in pairs)))]
    if native:
        groups.append(Group((*(python[api] for api in native), *native.values())))
    rounds, looks = max(1, scale.rounds // 2), scale.looks[:1]  # a window starts a Python: a tenth of a second
    loaded, turns = equally_loaded(groups, comparisons), Windows(calls=PATTERN_CALLS)
    return Sweep("sockets", "socket_bindings", loaded, tuple(comparisons), rounds, looks, scale.seed, turns)


def received(scale: Scale) -> DeliveryPlan:
    """Runs that receivers report on: both their timers, at every rate and size; and throughput one way."""
    long = _is_long(scale)
    timed_s, timed_blocks = (scale.rounds, None) if long else (1, TIMED_BLOCKS)
    cells = [DeliveryCell(of(api, *cell), timed_s, timed_blocks) for api in apis(scale) for cell in GRAPHS]
    seconds = THROUGHPUT_SAMPLES if long else THROUGHPUT_S
    cells += [DeliveryCell(throughput_of(api), seconds) for api in apis(scale)]
    blocks = scale.looks[-1] if long else min(THROUGHPUT_BLOCKS, scale.looks[-1])
    return DeliveryPlan("sockets", "sockets", tuple(cells), blocks, scale.seed)


def throughput_of(api: str) -> Setting:
    """An API that sends 100 KB as fast as it can, and gets nothing back."""
    return of(api, None, SIZES[-1], "one-way")
