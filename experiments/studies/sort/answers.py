"""The study's questions, each answered by a sentence, its number and its limits."""

from collections.abc import Iterator

from experiments.judge.stats import Estimate
from experiments.show.content import Answer, Seen
from experiments.show.figures.style import label
from experiments.show.numbers import number, ratio_words, times_between
from experiments.show.sentences import to_decide
from experiments.studies.sort import one_off
from experiments.studies.sort.design import ALGORITHMS, CALLS, LENGTHS, MEAN_US, MECHANISMS, MERGE, TRANSPORTS, go
from experiments.studies.sort.measured import NO_GO, Measured, measured

MECHANISM_NAMES = tuple(f"mechanism_{each}" for each in ALGORITHMS)
ALGORITHM_NAMES = ("algorithm_grpc", "algorithm_net_rpc")

BESIDE = (
    "mean time of a warm call at the client: one client with one connection, in a closed loop. Both sides have Go's "
    "own client. It is typical of pairs of windows side by side."
)

NOT_HERE = "That was not measured in this run."

NLOGN = 40 / 3
"""Ratio of 10,000 log 10,000 to 1,000 log 1,000."""


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers to all five questions."""
    found = measured(seen)
    return _mechanism(found), _algorithm(found), _falling(found), _array_len(found), _python(found)


def array_len(seen: Seen) -> tuple[Answer, ...]:
    """Answer on long arrays."""
    return (_array_len(measured(seen)),)


def python(seen: Seen) -> tuple[Answer, ...]:
    """Answer on Python."""
    return (_python(measured(seen)),)


def _mechanism(found: Measured) -> Answer:
    deciding = found.found(*MECHANISM_NAMES)
    said = [found.told(f"mechanism_{each}", f"in Go, {name} on gRPC", "net/rpc") for each, name in ALGORITHMS.items()]
    return Answer(
        question="Does Go's net/rpc answer sooner than gRPC?",
        sentence=" ".join(said) if found.has_go else NO_GO,
        deciding=deciding,
        estimand=BESIDE,
        not_concluded=(
            "That gRPC wastes the time: it has deadlines, metadata, streams and flow control. net/rpc has none of "
            "these, and is frozen: Go adds nothing to it.",
            "That it holds for many clients, or across a network: there the wire takes a larger part.",
        ),
        figure="answers",
        to_decide=to_decide(found.parts["sort"], MECHANISM_NAMES) if found.has_go else None,
    )


def _algorithm(found: Measured) -> Answer:
    deciding = found.found(*ALGORITHM_NAMES)
    said = [
        found.told(f"algorithm_{name}", f"on {where}, merge sort", "quicksort")
        for name, where in (("grpc", "gRPC"), ("net_rpc", "net/rpc"))
    ]
    return Answer(
        question="Does it matter which algorithm sorts the seven numbers?",
        sentence=" ".join(said) if found.has_go else NO_GO,
        deciding=deciding,
        details=("Both mechanisms run the same sorting code, so what lies between them is none of the sort's.",),
        estimand=BESIDE,
        not_concluded=("Which algorithm is faster: seven numbers are no test of a sort.",),
        figure="answers",
        to_decide=to_decide(found.parts["sort"], ALGORITHM_NAMES) if found.has_go else None,
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
            "fresh servers. Every run is a fresh client process; the order of all runs is drawn."
        ),
        not_concluded=(
            "That longer inputs take less time: every call sorts the same seven numbers.",
            "That the first call alone is dear: the next ones warm up caches and memory too, which b holds in part.",
        ),
        figure="one_off",
    )


FALLING = (
    "N is the number of calls. What is paid once is spread over them: connecting, and a first call that finds "
    "everything cold. So a mean over more calls holds less of it. That is too little for the document's fall, "
    "whose cause is open."
)


def needed(found: Measured) -> Iterator[str]:
    """Sentences on each mechanism: the one-off time that the document's falling means would need, and the one-off time
    here."""
    for mechanism in MECHANISMS:
        paid = one_off.paid(found.cold, mechanism, MERGE, one_off.as_original(mechanism))
        if paid is not None:
            falls_us = MEAN_US[mechanism, MERGE, CALLS[0]] - MEAN_US[mechanism, MERGE, CALLS[2]]
            once_us = falls_us / (1 / CALLS[0] - 1 / CALLS[2])
            yield (
                f"The document's fall on {label(mechanism)}, merge sort, would take {number(once_us / 1000)} ms paid "
                f"once; here it is {number(paid.seen_us.value / 1000)} ms, {100 * paid.seen_us.value / once_us:.1f} % "
                "of that."
            )


def _fits(found: Measured) -> Iterator[str]:
    for mechanism, with_connect in (("grpc", True), ("net-rpc", False), ("grpc", False), ("net-rpc", True)):
        paid = one_off.paid(found.cold, mechanism, MERGE, with_connect)
        if paid is not None:
            how = "connecting within its times" if with_connect else "connecting before"
            yield (
                f"On {label(mechanism)}, {how}, merge sort: a call takes {_us(paid.fit.each_us)} and "
                f"{_us(paid.fit.once_us)} are paid once. Timed apart they are {_us(paid.seen_us)}. "
                f"The fit is off by {100 * paid.fit.off_share:.0f} % at most."
                + (NO_COST if paid.fit.once_us.low <= 0 else "")
            )


NO_COST = " The interval of what is paid once reaches 0: the fit alone does not tell it from nothing."


def _array_len(found: Measured) -> Answer:
    growth = [each for name, each in found.judged.items() if name.startswith("growth_")]
    means = [_means_by_length(found, mechanism) for mechanism in ("grpc", "net-rpc")]
    said = " ".join(text for text in means if text)
    return Answer(
        question="How does a call grow with the length of the array, the document's N as it is read?",
        sentence=said or (NOT_HERE if found.has_go else NO_GO),
        deciding=(),
        details=(
            *(
                f"{each.comparison.title}: {ratio_words(each.typical)[0]} ({ratio_words(each.typical)[1]}); "
                f"N log N would be {number(NLOGN)}."
                for each in growth
            ),
            *(
                found.brief(f"mechanism_{algorithm}_{length}")
                for length in LENGTHS
                for algorithm in ALGORITHMS
                if f"mechanism_{algorithm}_{length}" in found.judged
            ),
        ),
        estimand=f"{BESIDE} Random arrays, drawn once for each run of the client.",
        not_concluded=(
            "That sorting alone grows so: encoding, the wire and decoding grow with the length too, by N and not by "
            "N log N.",
        ),
        figure="array_len",
    )


def _means_by_length(found: Measured, mechanism: str) -> str:
    shown = [
        f"{length:,} numbers {number(point.mean_us.value)} µs"
        for length in LENGTHS
        for point in (found.points.get(go(mechanism, MERGE, length)),)
        if point is not None and point.mean_us is not None
    ]
    return f"Merge sort on {label(mechanism)}: {', '.join(shown)}." if shown else ""


def _python(found: Measured) -> Answer:
    name = f"python_transport_{MERGE}"
    further = [found.brief(f"python_algorithm_{each}") for each in TRANSPORTS]
    judged = found.found(name)
    executor = f", and both servers have the {judged[0].comparison.above.setting.executor}" if judged else ""
    return Answer(
        question="Does the mechanism matter in Python too: sockets against gRPC?",
        sentence=found.told(name, "in Python, merge sort on sockets", "gRPC"),
        deciding=(),
        details=tuple(further) if judged else (),
        estimand=(
            "mean time of a call at the client: one client process with a connection. Each transport has its own "
            f"client{executor}. It is typical of pairs of slices."
        ),
        not_concluded=(
            "How Go compares with Python: their clients differ too, and they were measured one after the other.",
        ),
        figure="mechanisms",
    )


def _us(of: Estimate) -> str:
    return f"{number(of.value)} µs ({times_between(of, 1)})"
