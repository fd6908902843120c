"""The replication card: every claim of the document, with the verdict of our data.

Three kinds of data make a claim CONFIRMED or CONTRADICTED: verdicts on response times, ratios of the numbers of
messages that receivers counted, and counted lines of code. A claim that needs a second machine, or states an opinion,
is NOT TESTABLE. A claim about an API that is not built here is NOT TESTABLE too. The document's own timer mostly counts
idle time. So response time at the client decides the claims on means in the graphs.
"""

import math
from collections.abc import Callable, Sequence
from statistics import stdev

from experiments.design.arms import Arm
from experiments.design.sweep import BLOCKS_MIN
from experiments.judge.delivery import DeliveryRatio
from experiments.judge.stats import holm, ratio_interval, sign_flip_p
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.results.observed import ALL
from experiments.show.content import Claim, ClaimVerdict, Entry, Finding, Seen, decided
from experiments.show.numbers import number, ratio_with_ends
from experiments.studies.sockets import design
from experiments.studies.sockets.answers import ratio_told, throughput_ratios
from experiments.studies.sockets.design import BASE, GRAPHS, MESSAGES, NAMES, of, ratio_name
from experiments.studies.sockets.figures import crossing
from experiments.studies.sockets.wording import (
    ABSENT,
    brief,
    delivered,
    over_cells,
    size_log_ratios,
    spread,
    spread_log_ratios,
    standing,
    timed,
    told_log_ratios,
)

Cell = tuple[float, int]

ALIKE = (0.8, 1.25)
"""Two APIs count as alike if the ratio of the APIs lies between these bounds. The document gives no bounds."""

MUCH_MORE = 1.5
"""Least ratio of the spreads of two APIs that counts as "varies much more". A reader of a graph sees such a ratio at a
glance. The document gives no bound."""

LEVEL = 0.05

_THREE = ("zeromq", BASE, "nanomsg")
"""The document's three APIs."""

GRAPH_1, GRAPH_2, GRAPH_3, GRAPH_4 = GRAPHS
"""Rate and size of each graph."""


def claims(seen: Seen) -> tuple[Claim, ...]:
    """Every claim, in the document's order."""
    return tuple(entry.claim(seen) for entry in ENTRIES)


def _direction(judged: Sequence[Judged | None], wanted: Verdict) -> ClaimVerdict:
    """Verdict on a claim about a direction, from comparisons. CONFIRMED where all comparisons have the wanted verdict.
    CONTRADICTED where a comparison has another decided verdict. NOT TESTABLE where a comparison is missing.
    """
    if any(each is None for each in judged):
        return "NOT TESTABLE"
    verdicts = [each.verdict for each in judged if each is not None]
    others = [each for each in verdicts if each is not wanted]
    return decided(not others, any(each is not Verdict.INCONCLUSIVE for each in others))


def _asked(judgement: Judgement, cell: Cell, *pairs: tuple[str, str]) -> list[Judged | None]:
    return [judgement.judged.get(ratio_name(above, below, cell)) for above, below in pairs]


def _nanomsg_is_best(cell: Cell) -> Callable[[Seen], Finding]:
    def finding(seen: Seen) -> Finding:
        judged = _asked(seen.main, cell, ("nanomsg", BASE), ("nanomsg", "zeromq"))
        text = f"{' '.join(map(brief, judged))} {_messages(seen.main, cell)}"
        return _direction(judged, Verdict.FASTER), text

    return finding


def _messages(judgement: Judgement, cell: Cell) -> str:
    """Sentence on the number of messages that each API sent at a rate and size, here and in the document."""
    arms, own = judgement.sweep.arms, [Arm(of(api, *cell)) for api in _THREE]
    counts = [
        sum(block.arms[arms.index(arm)].answered[ALL].times.count for block in judgement.blocks) if arm in arms else 0
        for arm in own
    ]
    return f"Messages an API: {min(counts):,} here, {MESSAGES[cell]:,} in the thesis."


def _zeromq_spreads_most(cell: Cell) -> Callable[[Seen], Finding]:
    """Function that judges the claim that ZeroMQ's times vary most at a rate and size (``cell``). The document measures
    the times by its timer at the receiver. The spread of an API in a block is the distance of the block's mean from the
    median over all blocks.

    The claim is CONFIRMED where the interval over blocks shows that ZeroMQ's spread is over 1.5 times the spread of
    each other API. The text also has the spread at the client.
    """

    def finding(seen: Seen) -> Finding:
        others = [
            told_log_ratios(delivered(seen).rows, of("zeromq", *cell), of(api, *cell)) for api in (BASE, "nanomsg")
        ]
        beside = _spread_at_the_client(seen.main, cell)
        if not all(others):
            return "NOT TESTABLE", f"The receivers reported no times of these APIs. {beside}"
        intervals = [ratio_interval(each, 1 - LEVEL) for each in others]
        runs = {api: timed(delivered(seen).rows, of(api, *cell)) for api in _THREE}
        told = [f"{NAMES[api]} {number(stdev(runs[api].values()))} µs" for api in _THREE]
        few = min(map(len, runs.values()))
        each_s = next(row.cell.seconds for row in delivered(seen).rows if row.cell.setting == of("zeromq", *cell))
        text = (
            f"Standard deviation of the thesis' timer, at the receiver: {', '.join(told)}, of {few} means over "
            f"{each_s} s for each API. The thesis had 3,600 means over one second. {beside}"
        )
        if few < BLOCKS_MIN or not delivered(seen).is_whole:
            return "INCONCLUSIVE", f"{text} These are too few samples for a verdict."
        p_values = holm([sign_flip_p([each - math.log(MUCH_MORE) for each in of_one]) for of_one in others])
        apart = [p < LEVEL and not at.low <= MUCH_MORE <= at.high for p, at in zip(p_values, intervals, strict=True)]
        wider = [at.value > MUCH_MORE for at in intervals]
        less = any(one and not more for one, more in zip(apart, wider, strict=True))
        return decided(all(apart) and all(wider), less), text

    return finding


def _spread_at_the_client(judgement: Judgement, cell: Cell) -> str:
    """Sentence on the spread of response times at the client, at a rate and size. This spread decides nothing, since
    the claim is about the timer at the receiver."""
    others = [spread_log_ratios(judgement, of("zeromq", *cell), of(api, *cell)) for api in (BASE, "nanomsg")]
    if any(len(each) < 2 for each in others):
        return ABSENT
    far = [
        f"ZeroMQ ÷ {NAMES[api]} {ratio_with_ends(ratio_interval(each, 1 - LEVEL))}"
        for api, each in zip((BASE, "nanomsg"), others, strict=True)
    ]
    spreads_ = {NAMES[api]: spread(judgement, of(api, *cell)) for api in _THREE}
    told = ", ".join(
        f"{name} {f'{at.deviation_us / at.mean_us:.0%}' if at else 'unknown'}" for name, at in spreads_.items()
    )
    return (
        f"By the response time at the client: relative standard deviation of window means {told}; distance of the "
        f"means from their median, on a logarithmic scale, {', '.join(far)}."
    )


def _three_may_be_equal(seen: Seen) -> Finding:
    judged = _asked(seen.main, GRAPH_3, ("nanomsg", BASE), ("zeromq", BASE), ("nanomsg", "zeromq"))
    text = f"{' '.join(map(brief, judged))} {_messages(seen.main, GRAPH_3)}"
    found = [each for each in judged if each is not None]
    if len(found) < len(judged):
        return "NOT TESTABLE", text
    alike = all(each.verdict is Verdict.EQUIVALENT or each.by_less_than_5 for each in found)
    differ = any(each.verdict in (Verdict.FASTER, Verdict.SLOWER) and not each.by_less_than_5 for each in found)
    return decided(alike, differ), text


def _size_shows(seen: Seen) -> Finding:
    """Finding on the effect of the message size, from a ratio of times: 100 KB ÷ 10 KB. A block has six log-ratios, for
    the document's three APIs at both rates. The value of a block is the mean of these log-ratios.
    """
    judgement, pooled = seen.main, size_log_ratios(seen.main, _THREE)
    if not pooled:
        return "NOT TESTABLE", ABSENT
    at = ratio_interval(pooled, judgement.confidence)
    text = f"100 KB ÷ 10 KB, three APIs at two rates together: {ratio_with_ends(at)}. One API alone: "
    text += brief(judgement.judged.get("size"))
    if judgement.look is None or sign_flip_p(pooled) >= judgement.sweep.level or at.low <= 1 <= at.high:
        return "INCONCLUSIVE", text
    return ("CONFIRMED" if at.low > 1 else "CONTRADICTED"), text


def _carries(others: Sequence[str], least: float, most: float) -> Callable[[Seen], Finding]:
    """Function that judges a claim on throughput, from nanomsg's throughput ÷ the throughput of each API in ``others``.
    CONFIRMED where every ratio lies between ``least`` and ``most``, CONTRADICTED where a ratio lies outside these
    bounds."""

    def inside(each: DeliveryRatio) -> bool:
        apart = each.differs or least < 1 < most  # bounds on both sides of 1: the two APIs need not differ
        return apart and least < each.together.low and each.together.high < most

    def outside(each: DeliveryRatio) -> bool:
        return each.differs and (each.together.high < least or each.together.low > most)

    def finding(seen: Seen) -> Finding:
        asked = [
            each
            for each in throughput_ratios(seen)
            if each.above["transport"] == "nanomsg" and each.below["transport"] in others
        ]
        if len(asked) < len(others):
            return "NOT TESTABLE", "One of the compared APIs is not built here, or its receivers reported nothing."
        text = " ".join(map(ratio_told, asked))
        if not delivered(seen).is_whole or any(each.ratio.n < BLOCKS_MIN for each in asked):
            return "INCONCLUSIVE", f"{text} There are too few blocks for a verdict, or blocks of the plan are missing."
        return decided(all(map(inside, asked)), any(map(outside, asked))), text

    return finding


_NANOMSG_CARRIES_MOST = _carries((BASE, "zeromq"), 1.0, math.inf)


def _crosses_zero(seen: Seen) -> Finding:
    """Finding NOT TESTABLE on the document's claim on intervals that cross zero. These intervals cross zero because the
    document computes them from single samples. So no measurement of ours can decide this claim.
    """
    found = crossing(seen.main)
    if found is None:
        return "NOT TESTABLE", ABSENT
    return "NOT TESTABLE", (
        "The document's intervals cross zero, since they use the standard deviation of single samples for the "
        f"standard deviation of the mean. {found} Our intervals of the mean are computed on logarithms, and lie above "
        "zero in all cells."
    )


def _fewer_lines(api: str) -> Callable[[Seen], Finding]:
    """Function that judges counted lines: CONFIRMED where ZeroMQ takes at most half as many lines as ``api``, as in the
    document."""

    def finding(_: Seen) -> Finding:
        other, own = (sum(design.counted(each).values()) for each in (api, "zeromq"))
        text = f"Counted: {NAMES[api]} {other}, ZeroMQ {own}."
        return ("CONFIRMED" if 2 * own <= other else "CONTRADICTED"), text

    return finding


def _performance(seen: Seen) -> Finding:
    """Finding on the document's ranking by performance, from response times. CONFIRMED where Berkeley sockets and
    nanomsg differ by less than a quarter, and ZeroMQ takes more time than both."""
    pairs = {("zeromq", BASE): Verdict.SLOWER, ("nanomsg", "zeromq"): Verdict.FASTER}
    text = " ".join(standing(seen.main, *pair) for pair in (("nanomsg", BASE), *pairs))
    verdicts: set[ClaimVerdict] = {_alike(over_cells(seen.main, "nanomsg", BASE))}
    for pair, wanted in pairs.items():
        found = over_cells(seen.main, *pair)
        verdicts.add(_direction(found, wanted) if len(found) == len(GRAPHS) else "NOT TESTABLE")
    order: tuple[ClaimVerdict, ...] = ("NOT TESTABLE", "CONTRADICTED", "INCONCLUSIVE", "CONFIRMED")
    verdict = next(each for each in order if each in verdicts)
    return verdict, f"{text} Excellent means here: Berkeley and nanomsg differ by less than a quarter."


def _alike(judged: Sequence[Judged]) -> ClaimVerdict:
    """Verdict on the claim that two APIs are alike. CONFIRMED where their ratio lies within ``ALIKE`` at every rate and
    size, CONTRADICTED where the ratio lies outside ``ALIKE`` at some rate and size."""
    if len(judged) < len(GRAPHS):
        return "NOT TESTABLE"
    if any(not each.rulings for each in judged):
        return "INCONCLUSIVE"
    low, high = ALIKE
    differing = [each for each in judged if each.verdict in (Verdict.FASTER, Verdict.SLOWER)]
    apart = any(each.typical.low > high or each.typical.high < low for each in differing)
    return decided(all(low < each.typical.low and each.typical.high < high for each in judged), apart)


def _nanomsg_overall(seen: Seen) -> Finding:
    """Finding on the claim that nanomsg is the best overall, from all five graphs. CONTRADICTED where another API beats
    nanomsg in a graph."""
    verdicts = [_nanomsg_is_best(cell)(seen)[0] for cell in GRAPHS] + [_NANOMSG_CARRIES_MOST(seen)[0]]
    counts = ", ".join(f"{each} {verdicts.count(each)}" for each in dict.fromkeys(verdicts))
    text = f"Verdicts on the four graphs of response time and the graph of throughput: {counts}."
    order: tuple[ClaimVerdict, ...] = ("CONTRADICTED", "NOT TESTABLE", "INCONCLUSIVE", "CONFIRMED")
    return next(each for each in order if each in verdicts), text


ENTRIES: tuple[Entry[Seen], ...] = (
    Entry("The times already differ between messages of 10 KB and of 100 KB (5).", _size_shows),
    Entry("Graph 1 (30/s, 10 KB): nanomsg does best of the three.", _nanomsg_is_best(GRAPH_1)),
    Entry("Graph 1: ZeroMQ varies much more than the others.", _zeromq_spreads_most(GRAPH_1)),
    Entry("Graph 2 (50/s, 10 KB): nanomsg again does best on average.", _nanomsg_is_best(GRAPH_2)),
    Entry("Graph 3 (30/s, 100 KB): balanced, but nanomsg does best.", _nanomsg_is_best(GRAPH_3)),
    Entry("Graph 3: by the intervals, the three APIs may have the same response time.", _three_may_be_equal),
    Entry("Graph 3: ZeroMQ varies significantly more.", _zeromq_spreads_most(GRAPH_3)),
    Entry("Graph 4 (50/s, 100 KB): almost as in graph 3, nanomsg does best.", _nanomsg_is_best(GRAPH_4)),
    Entry("Graph 5 (throughput, 100 KB): nanomsg carries the most.", _NANOMSG_CARRIES_MOST),
    Entry("Graph 5: nanomsg and Berkeley are much alike (here: within a quarter).", _carries((BASE,), *ALIKE)),
    Entry("Some intervals contain zero, since the times spread asymmetrically.", _crosses_zero),
    Entry("Berkeley takes 23 lines, ZeroMQ 9: far more code (table 2).", _fewer_lines("berkeley")),
    Entry("nanomsg takes 20 lines, ZeroMQ 9: far more code (table 2).", _fewer_lines("nanomsg")),
    Entry(
        "ZeroMQ is the easiest to program, Berkeley the hardest (table 2).",
        lambda _: ("NOT TESTABLE", "An opinion; lines of code are what can be counted."),
    ),
    Entry("Performance: Berkeley and nanomsg excellent, ZeroMQ reasonable (table 2).", _performance),
    Entry("nanomsg is the best in the scenarios of the experiments (6).", _nanomsg_overall),
    Entry(
        "nanomsg is also the best between two machines on a network.",
        lambda _: ("NOT TESTABLE", "All runs here are on one machine’s loopback: the peers refuse any other address."),
    ),
)
