"""Sweep of ``compare``: the pair of A and B, and one A/A pair for each transport.

Every round measures the pair of A and B once if the transports differ. If both sides have the same transport, the ratio
may be near 1, and every round measures the pair twice. An A/A pair has two server processes with the same setting,
under equal loads. For a server that is given by its address, the A/A pair has two equal loads on one process.

Both sides are measured in slices of 20 ms, or in windows. Windows are used if the load of a side needs windows, or if a
side takes 5 ms or more to answer. A window lasts twenty mean response times, but at least half a second and at most
three seconds.
"""

import re
import shutil
from dataclasses import replace

from experiments.design.arms import Arm, Comparison, Group, Kind, equally_loaded
from experiments.design.factors import PROTOCOLS, SLICED_MS_MAX
from experiments.design.levels import Level
from experiments.design.limits import BLOCKS_MAX
from experiments.design.setting import Setting, read, setting
from experiments.design.sweep import BLOCKS_MIN, Slices, Sweep, Turns, Windows, needs_windows
from experiments.measure.bench import running_at
from stock_service.rpc.errors import UsageError
from stock_service.rpc.option_types import meant

PART = "compare"

COMPARED = "headline"
"""Name of the comparison of A and B, and of its family."""

ROUNDS, WINDOW_ROUNDS = 30, 4
"""Numbers of rounds in a block: ``ROUNDS`` in slices, ``WINDOW_ROUNDS`` in windows."""

WINDOW_RESPONSES, WINDOW_S_MAX = 20, 3.0
"""Limits of a window's length: at least ``WINDOW_RESPONSES`` mean response times, but at most ``WINDOW_S_MAX`` seconds.
"""

LOOKS = (10, 14, 20)
"""Declared looks: numbers of blocks after which the sweep is judged."""


def side(words: str, transport: str, load: dict[str, Level]) -> Setting:
    """Parses the words of one side. ``load``: the load of both sides.

    Words that begin with a transport or with FACTOR=LEVEL are a setting. HOST:PORT is a server that runs already. All
    other words are a command. ``transport``: the transport of a command or of a server that runs already. Raises
    UsageError.
    """
    first = words.split()[0] if words.split() else ""
    if first in PROTOCOLS or re.fullmatch(r"[a-z_]+=\S*", first):
        return read(words, load)
    if (like := meant(first, PROTOCOLS)) and shutil.which(first) is None:
        raise UsageError("a server", words, f"a transport, HOST:PORT, or a command; there is no program {first}{like}")
    if not first:
        raise UsageError("a server", words, "a setting such as 'sockets workers=8', HOST:PORT, or a command")
    return setting(**(load | {"service": words, "transport": transport}))


def is_running(of: Setting) -> bool:
    """True if a side is a server that runs already. Raises UsageError for a port out of range."""
    return running_at(Arm(of).server) is not None


def sweep(
    a: Setting, b: Setting, looks: tuple[int, ...], seed: int, limit: float | None = None, response_s: float = 0.0
) -> Sweep:
    """Plan of the sweep that compares two sides. If ``limit``, a ratio B ÷ A, is given, the sweep ends before its last
    look only if ``limit`` lies outside the interval.

    ``response_s``: mean response time of the slower side in seconds, or 0 if no side was measured. Raises UsageError if
    both sides are one process, and if the blocks are too few to decide both A/A pairs.
    """
    if looks[0] == BLOCKS_MIN and a["transport"] != b["transport"]:  # two A/A pairs need one block more
        allowed = f"1 to {BLOCKS_MIN - 1} without a verdict, or {BLOCKS_MIN + 1} to {BLOCKS_MAX}, for two transports"
        raise UsageError("--blocks", str(looks[0]), allowed)
    if a == b and is_running(a):
        raise UsageError("a server", b.text("service"), "another address than A's")
    first, second = Arm(a), Arm(b, 1 if a == b else 0)
    same_transport = a["transport"] == b["transport"]
    differ = a.unlike(b)
    kind: Kind = "ratio" if differ else "same"
    comparisons = [Comparison(COMPARED, "B ÷ A", second, first, differ, kind, family="headline")]
    for arm in (first,) if same_transport else (first, second):
        again = Arm(arm.setting, 2)
        comparisons.append(Comparison(f"same {arm.name}", f"A/A: {arm.name}", again, arm, (), "same", family="same"))
    groups = equally_loaded([Group((first, second), times=2 if same_transport else 1)], comparisons)
    in_windows = needs_windows(a) or needs_windows(b) or response_s * 1000 >= SLICED_MS_MAX
    turns: Turns = _windows(response_s) if in_windows else Slices()
    rounds = WINDOW_ROUNDS if in_windows else ROUNDS
    return Sweep(PART, PART, groups, tuple(comparisons), rounds, looks, seed, turns, apart_from=limit)


def again(of: Sweep) -> Sweep:
    """Plan of a recorded sweep, computed again from the recorded sides and the recorded windows."""
    headline = next(each for each in of.comparisons if each.family == "headline")
    looks = of.looks if of.fixed else LOOKS
    made = sweep(headline.below.setting, headline.above.setting, looks, of.seed, of.apart_from)
    rounds = WINDOW_ROUNDS if isinstance(of.turns, Windows) else ROUNDS
    return replace(made, turns=of.turns, fixed=of.fixed, rounds=rounds)


def _windows(response_s: float) -> Windows:
    """Windows of twenty mean response times, within the limits of their length."""
    usual = Windows()
    return Windows(usual.warm_up_s, min(WINDOW_S_MAX, max(usual.duration_s, WINDOW_RESPONSES * response_s)))
