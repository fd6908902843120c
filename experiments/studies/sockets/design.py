"""The document's numbers, the study's sweeps, the runs that receivers report on, and each API's lines of code.

The docstring of each number of the document begins with the number's place in the document. The numbers are context
only, since they were measured on other machines. The text of the document only names the best API of each graph, and
has no numbers for the graphs. So the document's means cannot be drawn.

An arm is one API under one load. A cell is a rate and a size. All APIs of a cell are measured side by side, with the
request-reply pattern. Every API has an A/A pair in one cell. The second server of the pair carries the loads of all
cells, like the first. In the profile ``paper`` a window lasts a second, like a sample of the original. In other
profiles a window lasts a quarter of a second. Then a pause of the machine spoils only a short window. After the sweep,
fresh servers report their own measurements: the time by the original's timer, the true times, and the throughput.

The counted lines of code are the lines of the peers in C between ``step: NAME`` and ``end``, without blank lines and
comments. The study also measures these peers. So each peer checks every error, and the counted lines include the
checks.
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
"""Table 1: sizes of a message, in bytes (10 KB, 100 KB)."""

RATES = (30.0, 50.0)
"""Table 1: rates, in messages a second."""

THROUGHPUT_SAMPLES = 60
"""Section 4.1.5: number of samples of throughput. A sample is the mean over a second."""

GRAPHS: Mapping[tuple[float, int], int] = {(30.0, 10_000): 1, (50.0, 10_000): 2, (30.0, 100_000): 3, (50.0, 100_000): 4}
"""Section 5.1.1, response time: number of the graph, by rate and size."""

MESSAGES: Mapping[tuple[float, int], int] = {cell: round(3600 * cell[0]) for cell in GRAPHS}
"""Section 5: number of messages that each API sent in an hour, by rate and size."""

LINES: Mapping[str, int] = {"berkeley": 23, "zeromq": 9, "nanomsg": 20}
"""Section 5.1.2, at table 2: number of lines of code to create, connect, send, receive and close, by API."""

TABLE_2: Mapping[str, tuple[str, str, str]] = {
    "berkeley": ("much", "little", "excellent"),
    "zeromq": ("little", "much", "reasonable"),
    "nanomsg": ("much", "medium", "excellent"),
}
"""Table 2: amount of code, ease of programming, and performance of each API."""


HEADLINE, SUCCESSOR = "headline", "nng"

BASE, SUCCESSOR_OF = "berkeley", "nanomsg"
APIS = (BASE, "zeromq", SUCCESSOR_OF, "nng")
"""The document's three APIs, and nanomsg's successor."""

NAMES = {"berkeley": "Berkeley sockets", "zeromq": "ZeroMQ", "nanomsg": "nanomsg", "nng": "NNG"}

PEERS = tuple(f"c-{api}" for api in APIS)

SAMPLE_S, WINDOW_S = 1.0, 0.25
"""Duration of a window, in seconds: ``SAMPLE_S`` in the profile ``paper``, ``WINDOW_S`` in other profiles."""

PATTERN_APIS = ("zeromq", "nanomsg")
"""APIs that the original measured with different patterns. A sweep has at most eight servers, and each API takes three
servers."""

BINDINGS = ("zeromq", "nng")
"""Libraries with a binding for Python. Three servers of each library and two servers of Berkeley sockets make eight."""

PATTERN_CALLS = 400
"""Number of calls in a window of a closed loop. These calls take about 0.1 s."""

LONG_ROUNDS = 60
"""Least number of rounds of a long run. As in the original, a long run has windows of ``SAMPLE_S``, and
``THROUGHPUT_SAMPLES`` seconds of throughput in a block."""

TIMED_BLOCKS, THROUGHPUT_BLOCKS = 3, 8
"""Largest numbers of blocks, except in the profile ``paper``. ``TIMED_BLOCKS``: for the receivers' timers, which hardly
vary. ``THROUGHPUT_BLOCKS``: for throughput.
"""

THROUGHPUT_S = 2


def of(api: str, rate_hz: float | None, size: int, pattern: str = "request-reply") -> Setting:
    """Setting of an API at a rate in messages a second, and a size in bytes. Without a rate the client sends as fast as
    it can."""
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
    """APIs whose peers are built here."""
    return tuple(api for api in APIS if f"c-{api}" in scale.peers)


def words(rate_hz: float, size: int) -> str:
    """Words for a rate and size, such as ``30/s of 10 KB``."""
    return f"{rate_hz:g}/s of {size // 1000} KB"


def ratio_name(above: str, below: str, cell: tuple[float, int]) -> str:
    """Name of the comparison of two APIs in a cell, such as ``nng_berkeley_30_10`` for 30 messages/s of 10 KB."""
    rate_hz, size = cell
    return f"{above}_{below}_{rate_hz:g}_{size // 1000}"


def sockets(scale: Scale) -> Sweep:
    """Sweep of the main part: response time by API, rate and size. Raises ValueError where no API is built."""
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
"""Rate, in messages a second, at which the two sizes are measured side by side."""


def _ratios(arms: dict[str, Arm], cell: tuple[float, int]) -> list[Comparison]:
    """Comparisons at one rate and size, as ratios: ZeroMQ, nanomsg and NNG, each ÷ Berkeley sockets; nanomsg ÷ ZeroMQ;
    NNG ÷ nanomsg."""
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
    """Sweep that compares the pattern pair with the pattern request-reply, in a closed loop. The sweep has the APIs of
    ``PATTERN_APIS`` that are built."""
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


def bindings(scale: Scale) -> Sweep:
    """Sweep that compares each library in Python with the same library in C and with Berkeley sockets in Python, in a
    closed loop."""
    python = {api: Arm(of(api, None, SIZES[0]).but(language="python")) for api in (BASE, *BINDINGS)}
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
    rounds, looks = max(1, scale.rounds // 2), scale.looks[:1]  # each window starts a Python program for 0.1 s
    loaded, turns = equally_loaded(groups, comparisons), Windows(calls=PATTERN_CALLS)
    return Sweep("sockets", "socket_bindings", loaded, tuple(comparisons), rounds, looks, scale.seed, turns)


def received(scale: Scale) -> DeliveryPlan:
    """Plan of the runs that receivers report on. Some runs measure the times by the original's timer and the true
    times, at every rate and size. Other runs measure the throughput of messages without replies."""
    long = _is_long(scale)
    timed_s, timed_blocks = (scale.rounds, None) if long else (1, TIMED_BLOCKS)
    cells = [DeliveryCell(of(api, *cell), timed_s, timed_blocks) for api in apis(scale) for cell in GRAPHS]
    seconds = THROUGHPUT_SAMPLES if long else THROUGHPUT_S
    cells += [DeliveryCell(throughput_of(api), seconds) for api in apis(scale)]
    blocks = scale.looks[-1] if long else min(THROUGHPUT_BLOCKS, scale.looks[-1])
    return DeliveryPlan("sockets", "sockets", tuple(cells), blocks, scale.seed)


def throughput_of(api: str) -> Setting:
    """Setting of an API whose client sends messages of 100 KB as fast as it can, without replies."""
    return of(api, None, SIZES[-1], "one-way")


STEPS = ("create", "connect", "send", "receive", "close")
"""The document's five operations. Each operation is a step of an API's program."""


def counted(api: str) -> Mapping[str, int]:
    """Number of counted lines of each step of an API's program in C. Raises OSError where the program cannot be read;
    ValueError where a step is missing or has no end."""
    return steps((peers.PEERS[f"c-{api}"].folder / "sockets" / f"{api}.c").read_text(encoding="utf-8"))


def steps(source: str) -> Mapping[str, int]:
    """Number of counted lines of each step in a source text. Raises ValueError where a step is missing, has no end, or
    occurs twice."""
    found: dict[str, int] = {}
    for name, body in re.findall(r"/\* step: (\w+) \*/\n(.*?)\n *(?=/\* (?:end|step: \w+) \*/)", source, re.DOTALL):
        if name in found:
            raise ValueError(f"step {name} stands there twice")
        found[name] = sum(bool(re.sub(r"/\*.*?\*/|//.*", "", line).strip()) for line in body.splitlines())
    if missing := set(STEPS) - found.keys():
        raise ValueError(f"no step {', '.join(sorted(missing))}")
    return {name: found[name] for name in STEPS}


def table() -> list[tuple[str, ...]]:
    """Lines of table 2, one for each API: our counts of code lines, and the document's entries."""
    lines = []
    for api in APIS:
        each = counted(api)
        amount, ease, performance = TABLE_2.get(api, ("–", "–", "–"))
        theirs = str(LINES[api]) if api in LINES else "–"
        own = (*(str(each[step]) for step in STEPS), str(sum(each.values())))
        lines.append((NAMES[api], *own, theirs, amount, ease, performance))
    return lines


HEAD = ("API", *STEPS, "all five, counted", "theirs", "their amount of code", "their ease", "their performance")
