"""The document's numbers, the study's sweeps, the runs that receivers report on, and each API's lines of code.

Numbers and orders that the document states have their place; they are context only: other machines. Its graphs have no
numbers in its text; it says of each which API did best. So no mean of theirs can be drawn.

The APIs of a rate and size stand side by side, with the request-reply pattern on all of them. Every API has an A/A pair
in one cell, whose second server carries the loads of all cells too. In the profile ``paper`` a window is a second, one
sample of the original. Else it is a quarter of one, four a block: a pause of the machine then spoils one alone.
Afterwards fresh servers tell what they received: the original's timer beside the true times, and throughput.

Counted lines of code are those of the peers in C between ``step: NAME`` and ``end``, but for blank lines and comments.
They are the peers that the study measures, so they check every error, and hold no line that is for show.
"""

import re
from collections.abc import Mapping

from experiments import peers
from experiments.design.arms import Arm, Comparison, Group, equally_loaded, twins
from experiments.design.setting import Setting, setting
from experiments.design.sweep import Sweep, Windows
from experiments.kinds.delivery import DeliveryCell, DeliveryPlan
from experiments.studies.study import Scale

SIZES = (10_000, 100_000)
"""Table 1: bytes of a message (10 KB, 100 KB)."""

RATES = (30.0, 50.0)
"""Table 1: rates, in messages a second."""

THROUGHPUT_SAMPLES = 60
"""Samples, each the mean of a second, 4.1.5: a minute."""

GRAPHS: Mapping[tuple[float, int], int] = {(30.0, 10_000): 1, (50.0, 10_000): 2, (30.0, 100_000): 3, (50.0, 100_000): 4}
"""Response time, 5.1.1: the graph of each rate and size."""

MESSAGES: Mapping[tuple[float, int], int] = {cell: round(3600 * cell[0]) for cell in GRAPHS}
"""Section 5: messages of an API for each graph, sent in an hour."""

LINES: Mapping[str, int] = {"berkeley": 23, "zeromq": 9, "nanomsg": 20}
"""Lines of code to create, connect, send, receive and close: section 5.1.2, at table 2."""

TABLE_2: Mapping[str, tuple[str, str, str]] = {
    "berkeley": ("much", "little", "excellent"),
    "zeromq": ("little", "much", "reasonable"),
    "nanomsg": ("much", "medium", "excellent"),
}
"""Table 2: amount of code, ease of programming, performance."""


HEADLINE, SUCCESSOR = "headline", "nng"

BASE, SUCCESSOR_OF = "berkeley", "nanomsg"
APIS = (BASE, "zeromq", SUCCESSOR_OF, "nng")
"""The document's three APIs, and nanomsg's successor."""

NAMES = {"berkeley": "Berkeley sockets", "zeromq": "ZeroMQ", "nanomsg": "nanomsg", "nng": "NNG"}

PEERS = tuple(f"c-{api}" for api in APIS)

SAMPLE_S, WINDOW_S = 1.0, 0.25
"""Seconds of a window in ``paper``, and in other profiles."""

PATTERN_APIS = ("zeromq", "nanomsg")
"""APIs whose patterns the original confused. A sweep has at most eight servers, and each API takes three of them."""

BINDINGS = ("zeromq", "nng")
"""Libraries with a binding for Python. Three servers of each library and two of Berkeley sockets make eight."""

PATTERN_CALLS = 400
"""Calls of a window in a closed loop: some tenth of a second."""

LONG_ROUNDS = 60
"""Rounds from which on windows and receivers have as many seconds as the original had."""

TIMED_BLOCKS, THROUGHPUT_BLOCKS = 3, 8
"""Blocks of the timers and of throughput, in profiles other than ``paper``. The timers hardly vary; throughputs are
compared."""

THROUGHPUT_S = 2


def of(api: str, rate_hz: float | None, size: int, pattern: str = "request-reply") -> Setting:
    """Setting of an API at a rate (None: as fast as it can) and a size."""
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


STEPS = ("create", "connect", "send", "receive", "close")
"""The document's five operations."""


def counted(api: str) -> Mapping[str, int]:
    """Lines of each step of an API. Raises OSError, ValueError where a step has no end or is not there."""
    return steps((peers.PEERS[f"c-{api}"].folder / "sockets" / f"{api}.c").read_text(encoding="utf-8"))


def steps(source: str) -> Mapping[str, int]:
    """Lines of each step in a source. ValueError where one is missing, has no end, or stands there twice."""
    found: dict[str, int] = {}
    for name, body in re.findall(r"/\* step: (\w+) \*/\n(.*?)\n *(?=/\* (?:end|step: \w+) \*/)", source, re.DOTALL):
        if name in found:
            raise ValueError(f"step {name} stands there twice")
        found[name] = sum(1 for line in body.splitlines() if _is_code(line))
    if missing := set(STEPS) - found.keys():
        raise ValueError(f"no step {', '.join(sorted(missing))}")
    return {name: found[name] for name in STEPS}


def _is_code(line: str) -> bool:
    text = re.sub(r"/\*.*?\*/|//.*", "", line).strip()
    return bool(text)


def table() -> list[tuple[str, ...]]:
    """Table 2 with ours beside theirs: a line for each API."""
    lines = []
    for api in APIS:
        each = counted(api)
        amount, ease, performance = TABLE_2.get(api, ("–", "–", "–"))
        theirs = str(LINES[api]) if api in LINES else "–"
        own = (*(str(each[step]) for step in STEPS), str(sum(each.values())))
        lines.append((NAMES[api], *own, theirs, amount, ease, performance))
    return lines


HEAD = ("API", *STEPS, "all five, counted", "theirs", "their amount of code", "their ease", "their performance")
