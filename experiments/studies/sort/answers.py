"""Measurements of the study by name, and the answers to the study's questions with these measurements.

Measurements are comparisons and points of the sweeps, and ratios and costs from cold runs. A cold run is a fresh client
that makes N calls on a fresh connection. The original connected before its loop on net/rpc, and inside its first timed
call on gRPC. So the mean of a cold run has two readings: with the time of connecting, and without this time. In the
original a mean on gRPC includes the time of connecting, and a mean on net/rpc does not include this time. A cell is a
mechanism, an algorithm and an N. A ratio is computed from the means of two cells in one block; the interval of the
ratio is over the blocks. The functions are pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import geometric_mean

from experiments.design.setting import Setting
from experiments.judge.cold import ColdJudged, OneOff, cell_interval, one_off, paid_once
from experiments.judge.points import Point, points
from experiments.judge.stats import Estimate, geometric_interval
from experiments.judge.verdicts import Judged, Judgement
from experiments.kinds.cold import ColdRow
from experiments.results.observed import ALL
from experiments.show.content import Answer, Seen
from experiments.show.figures.style import label
from experiments.show.numbers import number, ratio_with_ends, value_words
from experiments.show.sentences import listed, ratio_sentence, to_decide
from experiments.studies.sort.design import ALGORITHMS, CALLS, LENGTHS, MEAN_US, MECHANISMS, MERGE, TRANSPORTS, go

NO_GO = "Go's servers were not measured here: `make peers` builds them."

CONFIDENCE = 0.99
"""Confidence level of the ratios of cold runs. The level is high, since several ratios of the same runs decide claims.
The intervals of means and fits have 95 %, as elsewhere."""


@dataclass(frozen=True, slots=True)
class Paid:
    """One-off cost of a cold run on a mechanism with an algorithm: from a fit, and measured directly."""

    fit: OneOff
    """Fit mean(N) = a + b ÷ N. Here a is the cost of a call, and b is the one-off cost of a run."""
    seen_us: Estimate
    """One-off cost of a run in µs, measured directly instead of fitted."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of a part: its sweeps, and the rows of its cold runs."""

    parts: Mapping[str, Judgement]
    """Judgements of the part's sweep and of the sweeps that were measured after this sweep, by the parts' names."""
    judged: Mapping[str, Judged]
    """Comparisons of all sweeps, by name. A comparison without a value is left out."""
    points: Mapping[Setting, Point]
    """Points of all sweeps, by setting. The second server of an A/A pair has no point."""
    cold: tuple[ColdRow, ...]
    """Rows of the cold runs."""
    cold_whole: bool
    """True where all planned blocks of the cold runs were measured."""

    @property
    def has_go(self) -> bool:
        """True where servers in Go were measured."""
        return any(arm.setting["language"] == "go" for each in self.parts.values() for arm in each.sweep.arms)

    def found(self, *names: str) -> tuple[Judged, ...]:
        """Comparisons with these names that have a value."""
        return tuple(self.judged[name] for name in names if name in self.judged)

    def told(self, name: str, above: str, below: str) -> str:
        """Sentence on a comparison; the verdict decides the words. ``above`` and ``below``: words for
        the two arms in the sentence."""
        judged = self.judged.get(name)
        return f"Not known: {above}, compared with {below}." if judged is None else ratio_sentence(judged, above, below)

    def brief(self, *names: str) -> str:
        """Text that lists comparisons: title, numbers and verdict of each comparison that has a value. Where no
        comparison has a value, the text gives the reason.
        """
        return (
            " ".join(map(listed, self.found(*names))) or "No two neighbouring windows of this comparison have replies."
        )

    def mean(self, mechanism: str, algorithm: str, calls: int, with_connect: bool) -> Estimate | None:
        """Mean time of a call in a cell over the blocks, in µs. None where the cell was not measured. ``with_connect``:
        True where the mean includes the time of connecting."""
        of = go(mechanism, algorithm)
        cell = next((row.cell for row in self.cold if row.cell.setting == of and row.cell.calls == calls), None)
        return None if cell is None else cell_interval(self.cold, cell, _column(with_connect))

    def paid(self, mechanism: str, algorithm: str, with_connect: bool) -> Paid | None:
        """One-off cost of a mechanism with an algorithm: from the fit a + b ÷ N, and measured directly. None where too
        little was measured. ``with_connect``: True where the means include the time of connecting."""
        of = go(mechanism, algorithm)
        fit, seen_us = one_off(self.cold, of, with_connect), paid_once(self.cold, of, with_connect)
        return None if fit is None or seen_us is None else Paid(fit, seen_us)

    def algorithms_ratio(self, mechanism: str, calls: int) -> Estimate | None:
        """Ratio of means, merge sort ÷ quicksort, in cold runs of ``calls`` calls. The means include connecting where
        the original's times do. Each run has its own connection."""
        column = _column(as_original(mechanism))
        return _ratio(*(self._by_block(go(mechanism, each), calls, column) for each in ALGORITHMS))

    def mechanisms_ratio(self, algorithm: str, calls: int, connecting: bool) -> Estimate | None:
        """Ratio of means, gRPC ÷ net/rpc, in cold runs of ``calls`` calls. ``connecting``: True where gRPC's mean
        includes connecting, as in the original. The mean on net/rpc never includes connecting.
        """
        above, below = (go(mechanism, algorithm) for mechanism in MECHANISMS)
        return _ratio(self._by_block(above, calls, _column(connecting)), self._by_block(below, calls, _column(False)))

    def calls_ratio(self, mechanism: str, algorithm: str, few: int, many: int) -> Estimate | None:
        """Ratio: mean time of a call in runs of ``few`` calls ÷ mean time of a call in runs of ``many`` calls. The
        means include connecting where the original's times do.
        """
        column = _column(as_original(mechanism))
        return _ratio(*(self._by_block(go(mechanism, algorithm), calls, column) for calls in (few, many)))

    def first_over_rest(self, mechanism: str, algorithm: str) -> Estimate | None:
        """Ratio of the first call's time to the mean time of the other calls of a run, without the time of connecting.
        The value of a block is the geometric mean over all runs."""
        by_block: dict[int, list[float]] = {}
        for row in self.cold:
            if row.cell.setting == go(mechanism, algorithm) and row.rest_us_mean and row.first_call_us:
                by_block.setdefault(row.block, []).append(row.first_call_us / row.rest_us_mean)
        return geometric_interval(map(geometric_mean, by_block.values()), CONFIDENCE)

    def first_pays(self, mechanism: str) -> Estimate | None:
        """Ratio: mean time of a connection's first 100 calls ÷ mean time of its next 900 calls. The value of a block is
        the geometric mean over both algorithms.

        The ratio shows the disadvantage of the algorithm that runs first on a connection. The time of the 900 calls is
        the time of a run of 1,000 calls − the time of a run of 100 calls, in one block.
        """
        few, more, _ = CALLS
        column, by_block = _column(as_original(mechanism)), dict[int, list[float]]()
        for algorithm in ALGORITHMS:
            first, all_ = (self._by_block(go(mechanism, algorithm), calls, column) for calls in (few, more))
            for block in sorted(first.keys() & all_.keys()):
                later_us = (more * all_[block] - few * first[block]) / (more - few)
                if later_us > 0:
                    by_block.setdefault(block, []).append(first[block] / later_us)
        return geometric_interval(map(geometric_mean, by_block.values()), CONFIDENCE)

    def _by_block(self, of: Setting, calls: int, column: str) -> dict[int, float]:
        """Values of a column of ``ColdRow`` for a cell, by the number of the block."""
        own = (row for row in self.cold if row.cell.setting == of and row.cell.calls == calls)
        return {row.block: getattr(row, column) for row in own}


def measured(seen: Seen) -> Measured:
    """Measurements of a part and of the parts measured after it."""
    parts = {seen.main.sweep.part: seen.main, **seen.after}
    judged = {name: each for judgement in parts.values() for name, each in judgement.judged.items()}
    cold = seen.of(ColdJudged) or ColdJudged()
    found = (each for judgement in parts.values() for each in points(judgement.sweep, judgement.blocks).items())
    of_all = {arm.setting: point for (arm, request), point in found if request == ALL and not arm.copy}
    return Measured(parts, judged, of_all, tuple(cold.rows), cold.is_whole)


def as_original(mechanism: str) -> bool:
    """True where the original's times on this mechanism include connecting."""
    return mechanism == "grpc"


def _column(with_connect: bool) -> str:
    """Name of the column of ``ColdRow`` that has the mean, with connecting or without connecting."""
    return "with_connect_us" if with_connect else "mean_us"


def _ratio(above: Mapping[int, float], below: Mapping[int, float]) -> Estimate | None:
    """Ratio of two means, above ÷ below, over the blocks that have both means. None without such a block."""
    return geometric_interval((above[at] / below[at] for at in sorted(above.keys() & below.keys())), CONFIDENCE)


BESIDE = (
    "mean time of a warm call at the client: one client with one connection, in a closed loop. Both sides have Go's "
    "own client. The ratio is that of typical pairs of neighbouring windows."
)

NOT_HERE = "This was not measured in this run."

NLOGN = 40 / 3
"""Ratio of 10,000 log 10,000 to 1,000 log 1,000. The time of a sort grows by this factor from 1,000 to 10,000 numbers.
"""


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers to all five questions."""
    found = measured(seen)
    return _mechanism(found), _algorithm(found), _falling(found), _array_len(found), _python(found)


def array_len(seen: Seen) -> tuple[Answer, ...]:
    """Answer of the part ``sort_array_len``, on arrays of different lengths."""
    return (_array_len(measured(seen)),)


def python(seen: Seen) -> tuple[Answer, ...]:
    """Answer of the part ``sort_python``, on sockets ÷ gRPC in Python."""
    return (_python(measured(seen)),)


def _mechanism(found: Measured) -> Answer:
    asked = {f"mechanism_{each}": (f"in Go, {name} on gRPC", "net/rpc") for each, name in ALGORITHMS.items()}
    not_concluded = (
        "That gRPC wastes the time: gRPC has deadlines, metadata, streams and flow control, and net/rpc has none of "
        "these. net/rpc is frozen: Go adds no features to it.",
        "That the ratio holds for many clients, or across a network: there the wire takes a larger part.",
    )
    return _of_go(found, "Does Go's net/rpc answer sooner than gRPC?", asked, not_concluded)


def _algorithm(found: Measured) -> Answer:
    on = {"grpc": "gRPC", "net_rpc": "net/rpc"}
    asked = {f"algorithm_{each}": (f"on {name}, merge sort", "quicksort") for each, name in on.items()}
    not_concluded = ("Which algorithm is faster: seven numbers are no test of a sort.",)
    details = ("Both mechanisms run the same sorting code, so the sort causes no difference between them.",)
    question = "Does it matter which algorithm sorts the seven numbers?"
    return _of_go(found, question, asked, not_concluded, details)


def _of_go(
    found: Measured,
    question: str,
    asked: Mapping[str, tuple[str, str]],
    not_concluded: tuple[str, ...],
    details: tuple[str, ...] = (),
) -> Answer:
    """Answer from comparisons of servers in Go. ``asked``: texts for both arms of each comparison, by the comparison's
    name."""
    said = " ".join(found.told(name, *sides) for name, sides in asked.items())
    return Answer(
        question=question,
        sentence=said if found.has_go else NO_GO,
        deciding=found.found(*asked),
        details=details,
        estimand=BESIDE,
        not_concluded=not_concluded,
        figure="answers",
        to_decide=to_decide(found.parts["sort"], tuple(asked)) if found.has_go else None,
    )


def _falling(found: Measured) -> Answer:
    said = list(_fits(found))
    return Answer(
        question="Why does the document's mean fall as its N grows?",
        sentence=" ".join((FALLING, *needed(found), *said[:2])) if said else NOT_HERE if found.has_go else NO_GO,
        deciding=(),
        details=tuple(said[2:]),
        estimand=(
            "mean(N) = a + b ÷ N by least squares on each block's means; intervals are of 95 % over blocks, each with "
            "fresh servers. Every run is a fresh client process; the order of all runs is random."
        ),
        not_concluded=(
            "That longer inputs take less time: every call sorts the same seven numbers.",
            "That the first call alone is slow: the next calls warm up caches and memory too, and b contains a part "
            "of their time.",
        ),
        figure="one_off",
    )


FALLING = (
    "N is the number of calls. A run pays a one-off cost: it connects, and its first call finds cold caches. A mean "
    "over more calls contains a smaller part of this cost. The cost is too small for the document's fall. The cause "
    "of the document's fall is not known."
)


def needed(found: Measured) -> Iterator[str]:
    """Sentences, two for each mechanism, on the one-off cost of a run. One sentence has the cost that would explain the
    fall of the document's mean. The other sentence has the cost that was measured here.
    """
    for mechanism in MECHANISMS:
        if once := found.paid(mechanism, MERGE, as_original(mechanism)):
            falls_us = MEAN_US[mechanism, MERGE, CALLS[0]] - MEAN_US[mechanism, MERGE, CALLS[2]]
            once_us = falls_us / (1 / CALLS[0] - 1 / CALLS[2])
            yield (
                f"The document's fall on {label(mechanism)}, merge sort, would need a one-off cost of "
                f"{number(once_us / 1000)} ms. Here the one-off cost is {number(once.seen_us.value / 1000)} ms, "
                f"{100 * once.seen_us.value / once_us:.1f} % of the needed cost."
            )


def _fits(found: Measured) -> Iterator[str]:
    for mechanism, with_connect in (("grpc", True), ("net-rpc", False), ("grpc", False), ("net-rpc", True)):
        if once := found.paid(mechanism, MERGE, with_connect):
            how = "with connecting in its times" if with_connect else "connected before"
            once_us, off = value_words(once.fit.once_us, " µs"), f"{100 * once.fit.off_share:.0f} %"
            is_shown = once.fit.once_us.low > 0
            cost = f"{once_us} are paid once" if is_shown else f"the fit shows no one-off cost: {once_us}"
            yield (
                f"On {label(mechanism)}, {how}, merge sort: a call takes {value_words(once.fit.each_us, ' µs')}, and "
                f"{cost}. The fit is off by {off} at most. Timed separately, the one-off cost is "
                f"{value_words(once.seen_us, ' µs')}."
            )


def _array_len(found: Measured) -> Answer:
    growth = [each for name, each in found.judged.items() if name.startswith("growth_")]
    said = " ".join(_means_by_length(found))
    names = [f"mechanism_{algorithm}_{length}" for length in LENGTHS for algorithm in ALGORITHMS]
    return Answer(
        question="How does the time of a call grow with the length of the array, if the document's N is this length?",
        sentence=said or (NOT_HERE if found.has_go else NO_GO),
        deciding=(),
        details=(
            *(
                f"{each.comparison.title}: {ratio_with_ends(each.typical)}; N log N would be {number(NLOGN)}."
                for each in growth
            ),
            *map(listed, found.found(*names)),
        ),
        estimand=f"{BESIDE} Random arrays, drawn once for each run of the client.",
        not_concluded=(
            "That the time of sorting alone grows so: the times of encoding, the wire and decoding grow too, by N and "
            "not by N log N.",
        ),
        figure="array_len",
    )


def _means_by_length(found: Measured) -> Iterator[str]:
    for mechanism in MECHANISMS:
        points = {length: found.points.get(go(mechanism, MERGE, length)) for length in LENGTHS}
        means = {length: point.mean_us.value for length, point in points.items() if point and point.mean_us}
        if means:
            shown = ", ".join(f"{length:,} numbers {number(mean_us)} µs" for length, mean_us in means.items())
            yield f"Merge sort on {label(mechanism)}: {shown}."


def _python(found: Measured) -> Answer:
    name = f"python_transport_{MERGE}"
    judged = found.found(name)
    executor = f", and both servers have the {judged[0].comparison.above.setting.executor}" if judged else ""
    return Answer(
        question="Does the mechanism matter in Python too: sockets against gRPC?",
        sentence=found.told(name, "in Python, merge sort on sockets", "gRPC"),
        deciding=(),
        details=tuple(found.brief(f"python_algorithm_{each}") for each in TRANSPORTS) if judged else (),
        estimand=(
            "mean time of a call at the client: one client process with a connection. Each transport has its own "
            f"client{executor}. The ratio is that of typical pairs of slices."
        ),
        not_concluded=(
            "How Go compares with Python: the clients differ too, and the languages were not measured in turns.",
        ),
        figure="mechanisms",
    )
