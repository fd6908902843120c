"""The replication card: every claim of the document, and whether our data bear it out.

CONFIRMED and CONTRADICTED come from verdicts, from ratios of what receivers counted, or from counting lines. What
needs a second machine, or is somebody's opinion, is NOT TESTABLE, as is what an API that is not built here would
decide. The graphs' claims are judged by response time at the client; the document's own timer mostly holds idle time.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments.design.sweep import BLOCKS_MIN
from experiments.judge.received import ReceivedRatio
from experiments.judge.stats import holm, ratio_interval, sign_flip_p
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.results.received import RECEIVED_FILE
from experiments.show.content import Claim, ClaimVerdict, Seen, Side, Theme
from experiments.show.numbers import ratio_words
from experiments.studies.sockets import lines
from experiments.studies.sockets.answers import ratio_told, throughput_ratios
from experiments.studies.sockets.faults import spreads
from experiments.studies.sockets.original import GRAPHS
from experiments.studies.sockets.sweeps import BASE, NAMES, of, ratio_name
from experiments.studies.sockets.wording import ABSENT, brief, over_cells, spread, spread_log_ratios, standing

Finding = tuple[ClaimVerdict, str]

Cell = tuple[float, int]

ALIKE = (0.8, 1.25)
"""Throughputs within these count as much alike, where the document gives no bound."""

MUCH_MORE = 1.5
"""How many times as far samples must spread to vary much more: half as far again, which a graph shows at a glance. The
document gives no bound."""

LEVEL = 0.05

GRAPH_1, GRAPH_2, GRAPH_3, GRAPH_4 = GRAPHS
"""Their rates and sizes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A claim, and how it is decided."""

    text: str
    finding: Callable[[Seen], Finding]
    theme: Theme | None = None
    side: Callable[[Seen], Side] | None = None
    """Where what was measured stands on the theme."""


def claims(seen: Seen) -> tuple[Claim, ...]:
    """Every claim, in the document's order."""
    return tuple(
        Claim(entry.text, *entry.finding(seen), entry.theme, side=None if entry.side is None else entry.side(seen))
        for entry in ENTRIES
    )


def _direction(judged: Sequence[Judged | None], wanted: Verdict) -> ClaimVerdict:
    """CONFIRMED where all are as wanted; CONTRADICTED where one is decided and is not."""
    if any(each is None for each in judged):
        return "NOT TESTABLE"
    verdicts = [each.verdict for each in judged if each is not None]
    if all(each is wanted for each in verdicts):
        return "CONFIRMED"
    return "CONTRADICTED" if any(each not in (wanted, Verdict.INCONCLUSIVE) for each in verdicts) else "INCONCLUSIVE"


def _asked(judgement: Judgement, cell: Cell, *pairs: tuple[str, str]) -> list[Judged | None]:
    return [judgement.judged.get(ratio_name(above, below, cell)) for above, below in pairs]


def _nanomsg_is_best(cell: Cell) -> Callable[[Seen], Finding]:
    def finding(seen: Seen) -> Finding:
        judged = _asked(seen.main, cell, ("nanomsg", BASE), ("nanomsg", "zeromq"))
        return _direction(judged, Verdict.FASTER), " ".join(map(brief, judged))

    return finding


def _layer(cell: Cell) -> Callable[[Seen], Side]:
    """Whether the bare sockets answer sooner than nanomsg over them. How ZeroMQ does says nothing of it."""

    def side(seen: Seen) -> Side:
        judged = seen.main.judged.get(ratio_name("nanomsg", BASE, cell))
        if judged is None or judged.verdict is Verdict.INCONCLUSIVE:
            return "open"
        return "for" if judged.verdict is Verdict.SLOWER else "against"

    return side


def _zeromq_spreads_most(cell: Cell) -> Callable[[Seen], Finding]:
    """Confirmed where its window means stand over 1.5 times as far from their median as both others', by blocks."""

    def finding(seen: Seen) -> Finding:
        others = [spread_log_ratios(seen.main, of("zeromq", *cell), of(api, *cell)) for api in (BASE, "nanomsg")]
        if any(len(each) < 2 for each in others):
            return "NOT TESTABLE", ABSENT
        told = [_deviation(seen.main, api, cell) for api in ("zeromq", BASE, "nanomsg")]
        intervals = [ratio_interval(each, 1 - LEVEL) for each in others]
        far = [
            f"ZeroMQ ÷ {NAMES[api]} {value} ({ends})"
            for api, (value, ends) in zip((BASE, "nanomsg"), map(ratio_words, intervals), strict=True)
        ]
        text = (
            f"Relative standard deviation of window means: {', '.join(told)}. How far they stand from their median, "
            f"on a logarithmic scale: {', '.join(far)}. Much more is here over {MUCH_MORE:g} times."
        )
        if seen.main.look is None:
            return "INCONCLUSIVE", f"{text} There is no verdict yet."
        p_values = holm([sign_flip_p([each - math.log(MUCH_MORE) for each in of_one]) for of_one in others])
        apart = [p < LEVEL and not at.low <= MUCH_MORE <= at.high for p, at in zip(p_values, intervals, strict=True)]
        wider = [at.value > MUCH_MORE for at in intervals]
        if all(apart) and all(wider):
            return "CONFIRMED", text
        if any(one and not more for one, more in zip(apart, wider, strict=True)):
            return "CONTRADICTED", text
        return "INCONCLUSIVE", f"{text} These blocks do not decide."

    return finding


def _deviation(judgement: Judgement, api: str, cell: Cell) -> str:
    seen = spread(judgement, of(api, *cell))
    return f"{NAMES[api]} {seen.deviation_us / seen.mean_us:.0%}" if seen else f"{NAMES[api]} unknown"


def _three_may_be_equal(seen: Seen) -> Finding:
    judged = _asked(seen.main, GRAPH_3, ("nanomsg", BASE), ("zeromq", BASE), ("nanomsg", "zeromq"))
    text = " ".join(map(brief, judged))
    found = [each for each in judged if each is not None]
    if len(found) < len(judged):
        return "NOT TESTABLE", text
    if all(each.verdict is Verdict.EQUIVALENT or each.by_less_than_5 for each in found):
        return "CONFIRMED", text
    differ = any(each.verdict in (Verdict.FASTER, Verdict.SLOWER) and not each.by_less_than_5 for each in found)
    return ("CONTRADICTED" if differ else "INCONCLUSIVE"), text


def _size_shows(seen: Seen) -> Finding:
    judged = seen.main.judged.get("size")
    return _direction([judged], Verdict.SLOWER), brief(judged)


def _carries(others: Sequence[str], least: float, most: float) -> Callable[[Seen], Finding]:
    """Confirmed where nanomsg's throughput ÷ each other's lies within these; contradicted where one's is outside."""

    def inside(each: ReceivedRatio) -> bool:
        apart = each.differs or least < 1 < most  # alike ones need not differ
        return apart and least < each.together.low and each.together.high < most

    def outside(each: ReceivedRatio) -> bool:
        return each.differs and (each.together.high < least or each.together.low > most)

    def finding(seen: Seen) -> Finding:
        asked = [
            each
            for each in throughput_ratios(seen)
            if each.above["transport"] == "nanomsg" and each.below["transport"] in others
        ]
        if len(asked) < len(others):
            return "NOT TESTABLE", f"An API that it compares is not built here, or there is no {RECEIVED_FILE}."
        text = " ".join(map(ratio_told, asked))
        if not seen.received_whole or any(each.ratio.n < BLOCKS_MIN for each in asked):
            return "INCONCLUSIVE", f"{text} Too few blocks, or not all of the plan: they decide nothing."
        if all(map(inside, asked)):
            return "CONFIRMED", text
        return ("CONTRADICTED" if any(map(outside, asked)) else "INCONCLUSIVE"), text

    return finding


_NANOMSG_CARRIES_MOST = _carries((BASE, "zeromq"), 1.0, math.inf)


def _crosses_zero(seen: Seen) -> Finding:
    """What makes its intervals cross is how they were computed, which no measurement of ours decides."""
    found = tuple(spreads(seen.main))
    if not found:
        return "NOT TESTABLE", ABSENT
    low = sum(each.low_us < 0 for each in found)
    return "NOT TESTABLE", (
        "An interval crosses zero where the standard deviation of single samples is taken for that of their mean. "
        f"Mean − 1.96 of them is under zero in {low} of our {len(found)} cells. "
        "Our intervals of the mean are taken on logarithms: they lie above zero in all."
    )


def _fewer_lines(api: str) -> Callable[[Seen], Finding]:
    """Confirmed where ZeroMQ takes at most half the lines of this one, as it does in the document."""

    def finding(_: Seen) -> Finding:
        other, own = (sum(lines.counted(each).values()) for each in (api, "zeromq"))
        text = f"Counted: {NAMES[api]} {other}, ZeroMQ {own}."
        return ("CONFIRMED" if 2 * own <= other else "CONTRADICTED"), text

    return finding


def _performance(seen: Seen) -> Finding:
    """Confirmed where ZeroMQ is slower than both others in every cell."""
    pairs = (("zeromq", BASE, Verdict.SLOWER), ("nanomsg", "zeromq", Verdict.FASTER))
    text = " ".join(standing(seen.main, above, below) for above, below, _ in pairs)
    verdicts: set[ClaimVerdict] = set()
    for above, below, wanted in pairs:
        found = over_cells(seen.main, above, below)
        verdicts.add(_direction(found, wanted) if len(found) == len(GRAPHS) else "NOT TESTABLE")
    order: tuple[ClaimVerdict, ...] = ("NOT TESTABLE", "CONTRADICTED", "INCONCLUSIVE", "CONFIRMED")
    return next(each for each in order if each in verdicts), text


def _nanomsg_overall(seen: Seen) -> Finding:
    """Contradicted where it is not the fastest in one cell."""
    verdicts = [_nanomsg_is_best(cell)(seen)[0] for cell in GRAPHS] + [_NANOMSG_CARRIES_MOST(seen)[0]]
    counts = ", ".join(f"{each} {verdicts.count(each)}" for each in dict.fromkeys(verdicts))
    text = f"Of the four graphs of response time and that of throughput: {counts}."
    order: tuple[ClaimVerdict, ...] = ("CONTRADICTED", "NOT TESTABLE", "INCONCLUSIVE", "CONFIRMED")
    return next(each for each in order if each in verdicts), text


def _not_testable(why: str) -> Callable[[Seen], Finding]:
    return lambda _: ("NOT TESTABLE", why)


ENTRIES = (
    Entry("10 and 100 KB are sizes that already show in the times (5).", _size_shows),
    Entry(
        "Graph 1 (30/s, 10 KB): nanomsg does best of the three.",
        _nanomsg_is_best(GRAPH_1),
        Theme.LAYER,
        _layer(GRAPH_1),
    ),
    Entry("Graph 1: ZeroMQ varies much more than the others.", _zeromq_spreads_most(GRAPH_1)),
    Entry(
        "Graph 2 (50/s, 10 KB): nanomsg again does best on average.",
        _nanomsg_is_best(GRAPH_2),
        Theme.LAYER,
        _layer(GRAPH_2),
    ),
    Entry(
        "Graph 3 (30/s, 100 KB): balanced, but nanomsg does best.",
        _nanomsg_is_best(GRAPH_3),
        Theme.LAYER,
        _layer(GRAPH_3),
    ),
    Entry("Graph 3: by the intervals the three may perform the same.", _three_may_be_equal),
    Entry("Graph 3: ZeroMQ varies significantly more.", _zeromq_spreads_most(GRAPH_3)),
    Entry(
        "Graph 4 (50/s, 100 KB): almost as before, nanomsg best.",
        _nanomsg_is_best(GRAPH_4),
        Theme.LAYER,
        _layer(GRAPH_4),
    ),
    Entry("Graph 5 (throughput, 100 KB): nanomsg carries the most.", _NANOMSG_CARRIES_MOST),
    Entry("Graph 5: nanomsg and Berkeley are much alike (here: within a quarter).", _carries((BASE,), *ALIKE)),
    Entry("Some intervals cross zero since times spread asymmetrically.", _crosses_zero),
    Entry("Berkeley takes 23 lines, ZeroMQ 9: far more code (table 2).", _fewer_lines("berkeley")),
    Entry("nanomsg takes 20 lines, ZeroMQ 9: far more code (table 2).", _fewer_lines("nanomsg")),
    Entry(
        "ZeroMQ is the easiest to program, Berkeley the hardest (table 2).",
        _not_testable("An opinion; lines of code are what can be counted."),
    ),
    Entry("Performance: Berkeley and nanomsg excellent, ZeroMQ reasonable (table 2).", _performance),
    Entry("nanomsg is the best in the scenarios of the experiments (6).", _nanomsg_overall),
    Entry(
        "It is so between two machines on a network.",
        _not_testable("All runs here are on one machine’s loopback: the peers refuse any other address."),
    ),
)
