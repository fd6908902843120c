"""Gates 2, 3, 9 and 10: whether a comparison's two arms differ in the declared factor, all of it, and nothing else.

A factor is what was set; ``HELD`` is what was also found on the wire and in the server, and must agree whatever the
factors' names say: two programs that call themselves the same do not thereby send the same bytes.
"""

from collections.abc import Iterable, Iterator

from experiments.gates.evidence import ComparisonEvidence, RunEvidence
from experiments.gates.predicates import Level
from experiments.gates.refusal import Refusal, Scope
from experiments.stats import blocks_min

HELD = ("request_bytes", "reply_bytes", "pattern", "tcp_nodelay", "keep_alive", "tls", "locking")
"""What was found of a run that must be alike in both arms, or follow from the declared factor."""

FOLLOWS: dict[str, frozenset[str]] = {
    "size": frozenset({"request_bytes", "reply_bytes"}),
    "array_len": frozenset({"request_bytes", "reply_bytes"}),
    "request": frozenset({"request_bytes", "reply_bytes"}),
    "mix": frozenset({"request_bytes", "reply_bytes", "request"}),
    "connection": frozenset({"keep_alive"}),
    "pattern": frozenset({"reply_bytes"}),
}
"""What may differ as well, because the declared factor makes it."""

SHOULD_CHANGE: dict[str, tuple[str, ...]] = {
    "size": ("request_bytes",),
    "array_len": ("request_bytes",),
    "pool": ("threads",),
    "workers": ("threads",),
    "clients": ("connections",),
    "connections": ("connections",),
    "connection": ("keep_alive",),
    "tcp_nodelay": ("tcp_nodelay",),
    "tls": ("tls",),
}
"""What a declared factor must be seen to change, and, where both are numbers, in the same direction."""

BYTES_MARGIN = 0.02
"""Mean bytes of messages with random content may differ by as much."""

FIRST_SHARE_MAX = 0.9
"""From this share of the blocks on, an arm that came first in them is confounded with the order: all of 6, 9 of 10, 11
of 12. A random order ends so once in 32 times with 6 blocks, once in 256 with 9; it explains no less for that."""


def differing(comparison: ComparisonEvidence) -> dict[str, tuple[str, str]]:
    """Every factor, and every found attribute of ``HELD``, that differs between the arms: the levels of each arm."""
    found: dict[str, tuple[str, str]] = {}
    for name in sorted({name for run in comparison.runs for name in run.factors}):
        above, below = (_levels(run.factors.get(name) for run in arm) for arm in (comparison.above, comparison.below))
        if above != below or len(above) > 1:
            found[name] = (_text(above), _text(below))
    for name in HELD:
        arms = [_levels(run.seen.get(name) for run in arm) - {None} for arm in (comparison.above, comparison.below)]
        if name not in found and all(arms) and not _alike(arms[0] | arms[1]):
            found[name] = (_text(arms[0]), _text(arms[1]))
    return found


def arms_differ_otherwise(comparison: ComparisonEvidence) -> Iterator[Refusal]:
    """Gate 2."""
    allowed = comparison.declared.union(*(FOLLOWS.get(factor, frozenset()) for factor in comparison.declared))
    others = {name: levels for name, levels in differing(comparison).items() if name not in allowed}
    if others:
        listed = "; ".join(f"{name}: {above} against {below}" for name, (above, below) in others.items())
        what = f"declared to differ in {_declared(comparison)}, the arms differ in {listed}"
        do = f"hold {', '.join(others)} equal, and repeat; or declare a comparison of all of it"
        yield Refusal(2, comparison.name, what, do, Scope.VERDICT)


def factor_changed_nothing(comparison: ComparisonEvidence) -> Iterator[Refusal]:
    """Gate 3."""
    differ = differing(comparison)
    for factor in sorted(comparison.declared):
        if factor not in differ:
            levels = _text(_levels(run.factors.get(factor) for run in comparison.runs))
            what = f"{factor} is declared to differ, and is {levels} in both arms"
            yield Refusal(3, comparison.name, what, "set it, and repeat", Scope.VERDICT)
            continue
        for seen in SHOULD_CHANGE.get(factor, ()):
            yield from _unchanged(comparison, factor, seen)


def _unchanged(comparison: ComparisonEvidence, factor: str, seen: str) -> Iterator[Refusal]:
    set_to = [_mean(run.factors.get(factor) for run in arm) for arm in (comparison.above, comparison.below)]
    found = [_mean(run.seen.get(seen) for run in arm) for arm in (comparison.above, comparison.below)]
    if found[0] is None or found[1] is None:
        return
    if set_to[0] is None or set_to[1] is None:  # a factor without numbers: any change will do
        moved = found[0] != found[1]
    else:
        moved = (set_to[0] - set_to[1]) * (found[0] - found[1]) > 0
    if not moved:
        arms = (comparison.above, comparison.below)
        levels = " against ".join(_text(_levels(run.factors.get(factor) for run in arm)) for arm in arms)
        what = f"{factor} was {levels}, and {seen.replace('_', ' ')} {found[0]:,.6g} against {found[1]:,.6g}"
        do = f"mend what {factor} does, or call it what it is"
        yield Refusal(3, comparison.name, what, do, Scope.VERDICT)


def too_few_blocks(comparison: ComparisonEvidence) -> Iterator[Refusal]:
    """Gate 9. A block counts where both arms have a run of it; runs of one server process are one start."""
    needed = blocks_min(comparison.family_size)
    blocks = len({run.block for run in comparison.above} & {run.block for run in comparison.below})
    blocks = min(blocks, len(comparison.log_ratios))
    if blocks < needed:
        what = f"{blocks} blocks, and a comparison that is one of a family of {comparison.family_size} needs {needed}"
        yield Refusal(9, comparison.name, what, f"run {needed} blocks", Scope.VERDICT)
    starts = min(len({run.process for run in arm}) for arm in (comparison.above, comparison.below))
    if starts < blocks:
        what = f"{blocks} blocks from {starts} process {'start' if starts == 1 else 'starts'} per arm"
        yield Refusal(9, comparison.name, what, "start a server process for every run", Scope.VERDICT)


def order_confounded(comparison: ComparisonEvidence) -> Iterator[Refusal]:
    """Gate 10."""
    above, below = _places(comparison.above), _places(comparison.below)
    shared = sorted(above.keys() & below.keys())
    if not shared:
        what = "no block has both arms: whatever changed from block to block is between them"
        yield Refusal(10, comparison.name, what, "run both arms in every block", Scope.VERDICT)
        return
    apart = [block for block in shared if above[block] != below[block]]  # two requests of one run come together
    first = sum(above[block] < below[block] for block in apart)
    most = max(first, len(apart) - first)
    if len(apart) > 1 and most / len(apart) >= FIRST_SHARE_MAX:
        arm = "above" if first == most else "below"
        what = f"the arm {arm} the line came first in {most} of {len(apart)} blocks"
        yield Refusal(10, comparison.name, what, "draw the order anew in each block, and repeat", Scope.VERDICT)


def _places(arm: Iterable[RunEvidence]) -> dict[int, int]:
    """The arm's place in each block: its first, if it has several runs there."""
    places: dict[int, int] = {}
    for run in arm:
        places[run.block] = min(run.order, places.get(run.block, run.order))
    return places


def _levels(values: Iterable[Level | None]) -> frozenset[Level | None]:
    return frozenset(values)


def _alike(values: frozenset[Level | None]) -> bool:
    """One level, or numbers (bytes) that are close."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(values):
        return len(values) == 1
    return max(numbers) <= (1 + BYTES_MARGIN) * min(numbers)


def _mean(values: Iterable[Level | None]) -> float | None:
    """Of numbers; True and False are 1 and 0. None where there is anything else, or nothing."""
    found = list(values)
    numbers = [float(value) for value in found if isinstance(value, int | float)]
    return sum(numbers) / len(numbers) if numbers and len(numbers) == len(found) else None


def _text(levels: Iterable[Level | None]) -> str:
    return ", ".join(sorted("none" if level is None else str(level) for level in levels)) or "none"


def _declared(comparison: ComparisonEvidence) -> str:
    return ", ".join(sorted(comparison.declared)) or "nothing"
