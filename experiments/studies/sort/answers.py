"""Answers to the study's questions. Each answer has a sentence with a number, and the limits of the answer."""

from collections.abc import Iterator, Mapping

from experiments.show.content import Answer, Seen
from experiments.show.figures.style import label
from experiments.show.numbers import number, ratio_with_ends, value_words
from experiments.show.sentences import listed, to_decide
from experiments.studies.sort.design import ALGORITHMS, CALLS, LENGTHS, MEAN_US, MECHANISMS, MERGE, TRANSPORTS, go
from experiments.studies.sort.measured import NO_GO, Measured, as_original, measured, paid

BESIDE = (
    "mean time of a warm call at the client: one client with one connection, in a closed loop. Both sides have Go's "
    "own client. The ratio is that of typical pairs of neighbouring windows."
)

NOT_HERE = "This was not measured in this run."

NLOGN = 40 / 3
"""Ratio of 10,000 log 10,000 to 1,000 log 1,000: growth factor of the time of a sort from 1,000 to 10,000 numbers."""


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
    """Sentences, two for each mechanism, on the one-off cost of a run. One cost would explain the fall of the
    document's mean; the other cost was measured here."""
    for mechanism in MECHANISMS:
        if once := paid(found.cold, mechanism, MERGE, as_original(mechanism)):
            falls_us = MEAN_US[mechanism, MERGE, CALLS[0]] - MEAN_US[mechanism, MERGE, CALLS[2]]
            once_us = falls_us / (1 / CALLS[0] - 1 / CALLS[2])
            yield (
                f"The document's fall on {label(mechanism)}, merge sort, would need a one-off cost of "
                f"{number(once_us / 1000)} ms. Here the one-off cost is {number(once.seen_us.value / 1000)} ms, "
                f"{100 * once.seen_us.value / once_us:.1f} % of the needed cost."
            )


def _fits(found: Measured) -> Iterator[str]:
    for mechanism, with_connect in (("grpc", True), ("net-rpc", False), ("grpc", False), ("net-rpc", True)):
        if once := paid(found.cold, mechanism, MERGE, with_connect):
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
