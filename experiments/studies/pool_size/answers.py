"""Answers to the study's questions. Pure functions.

An arm is one server under one load. The queueing model gives a prediction, and the sweep gives a measurement.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from experiments.design.arms import Arm
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.recommend.advice import USUAL
from experiments.show.content import Answer, Seen
from experiments.show.numbers import counted, has_interval, number, percent, times_between
from experiments.show.sentences import ratio_sentence, to_decide
from experiments.studies.pool_size.beside import (
    BEGINS,
    NEAR,
    TAIL_WITHIN,
    THROUGHPUT_WITHIN,
    Beside,
    Gain,
    Ladder,
    begins,
    beside,
    gains,
    grouped,
    of_clients,
    of_pools,
)
from experiments.studies.pool_size.design import AIO, GRPC, NO_GIL, PROCESSES, SOCKETS, model_of, named

NOT_YET = "Not known: no such server was measured."

MODEL_SAYS = (
    "The predictions come from measurements of one client of one worker, by turns with the arms. No arm predicts "
    "itself."
)

LOOPBACK = "The time that a network between client and server adds: here both are on one machine."


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers to all questions of the main part, in order."""
    every = beside(seen)
    return _lookups(seen.after.get("pool_lookups")), _begins(seen), _best(every), _error(every), _kinds(every)


def lookups(seen: Seen) -> tuple[Answer, ...]:
    """Answer of the part ``pool_lookups``, for the report of this part."""
    judged = compared(seen.main)
    to_ask = to_decide(seen.main, [each.comparison.name for each in judged])
    own = _lookups(seen.main)
    return (replace(own, deciding=judged, details=(), not_concluded=(), figure=None, to_decide=to_ask),)


def one(seen: Seen) -> tuple[Answer, ...]:
    """Answer of the part ``pool_one``. The answer points to the table of arms: all predictions rest on the values in
    this table."""
    sentence = "Processor time and response time of a request are in the table of all arms. They have no verdict."
    question = "What does one client measure on a server with one worker?"
    return (Answer(question, sentence if seen.main.blocks else NOT_YET, ()),)


def gains_from_threads(judged: Judged) -> bool | None:
    """True where the comparison shows that more threads answer sooner by 5 % or more. False where the comparison shows
    a smaller gain, or no gain. None where the comparison is undecided.
    """
    if not judged.decided:
        return None
    return judged.verdict is Verdict.FASTER and not judged.by_less_than_5


def compared(judgement: Judgement) -> tuple[Judged, ...]:
    """Comparisons of pools that have a value, without A/A pairs."""
    return tuple(each for each in judgement.judged.values() if each.comparison.kind != "same")


def _lookups(judgement: Judgement | None) -> Answer:
    question = "Does a pure Lookup gain from more threads?"
    judged = () if judgement is None else compared(judgement)
    if judgement is None or not judged:
        return Answer(question, NOT_YET, ())
    found = [gains_from_threads(each) for each in judged]
    if None in found:
        head = "This is not decided for all servers."
    else:
        head = "Yes." if all(found) else "It depends on the server." if any(found) else "No."
    told = [
        ratio_sentence(
            each, f"on {model_of(above.setting)}, a Lookup with {threads(above)}", f"one with {threads(below)}"
        )
        for each, above, below in ((each, each.comparison.above, each.comparison.below) for each in judged)
    ]
    first = sorted({found.index(each) for each in found})  # the first sentence with each finding
    return Answer(
        question,
        " ".join((head, *(told[place] for place in first))),
        (),
        details=tuple(text for place, text in enumerate(told) if place not in first),
        estimand="mean response of 16 connections in a closed loop; the ratio of typical pairs of neighbouring slices",
        not_concluded=("That a pool's size never matters: this request is a pure Lookup.",),
        figure="lookups",
    )


def threads(arm: Arm) -> str:
    """Text of the number of threads in an arm's pool."""
    return counted(arm.setting.whole("workers"), "thread")


def _begins(seen: Seen) -> Answer:
    question = "Where does the effect of more threads begin?"
    found = gains(seen)
    if not found:
        return Answer(question, NOT_YET, ())
    first, last = begins(found), found[-1]
    sentence = f"Up to an I/O share of {percent(round(last.share, 3))}, the data show no gain of {percent(BEGINS)}."
    if first is not None:
        sentence = f"With an I/O share of {percent(round(first.share, 3))}: {_gained(first)}."
    return Answer(
        question,
        sentence,
        (),
        details=(*(f"At {percent(round(each.share, 3))}: {_gained(each)}." for each in found), MODEL_SAYS),
        estimand=(
            "throughput of 16 threads ÷ throughput of one thread, with 16 clients. A request computes for 1 ms, and "
            "waits longer from arm to arm. The I/O share is the wait's share of one worker's time for a request."
        ),
        not_concluded=(
            "The effect for other work with the same I/O share: it depends on the time that holds the interpreter, "
            "here 1 ms.",
        ),
        figure="effect",
    )


def _gained(gain: Gain) -> str:
    seen = gain.measured
    ends = f", {times_between(seen, 1)}" if has_interval(seen) else ""
    times = f"16 threads answer {number(seen.value)} times as many requests as one thread{ends}"
    return f"{times}; predicted: {number(gain.foretold)}"


def _best(every: Sequence[Beside]) -> Answer:
    question = "Which size of the pool is enough for which work?"
    found = of_pools(every, least=2)
    if not found:
        return Answer(question, NOT_YET, ())
    return Answer(
        question,
        " ".join(f"{_enough(each)}." for each in found[:3]),
        (),
        details=tuple(f"{_enough(each)}." for each in found[3:]),
        estimand="the smallest tried pool with 95 % of the highest throughput of all tried pools, at equal clients",
        not_concluded=("That a larger pool does no harm: it can cost throughput and memory.", LOOPBACK),
        figure="pools",
    )


def _enough(of: Ladder) -> str:
    told, seen = of.steps[of.foretold], of.steps[of.seen]
    also = "as predicted" if told == seen else f"predicted: {told}"
    return f"{of.what}, {of.beside}: {counted(seen, of.noun)} of {', '.join(map(str, of.steps))}, {also}"


def _error(every: Sequence[Beside]) -> Answer:
    question = "How far off is the prediction?"
    closed = [each for each in every if each.ratio is not None and not each.is_open]
    if not closed:
        return Answer(question, NOT_YET, ())
    hits, before = sum(each.is_hit for each in closed), sum(each.was_hit for each in closed)
    of_before = f"By the predictions made before the sweep, from one block of one worker, {before} are this near."
    return Answer(
        question,
        f"The throughput of {hits} of {counted(len(closed), 'arm')} is within {percent(THROUGHPUT_WITHIN)} of the "
        "prediction.",
        (),
        details=(of_before, *_ladder_hits(every), *_tail_hits(every), MODEL_SAYS),
        estimand="measured ÷ predicted replies a second of a closed loop; all arms that no prediction is made from",
        not_concluded=("That the model holds for a server that shares its cores with other programs.",),
        figure="prediction",
    )


def _ladder_hits(every: Sequence[Beside]) -> Iterator[str]:
    for what, found in (("pool", of_pools(every)), ("number of clients", of_clients(every))):
        can_miss = [each.is_hit for each in found if each.can_miss]
        if can_miss:
            rows = f"{sum(can_miss)} of the {counted(len(can_miss), 'row')} in which a miss is possible"
            yield f"The smallest sufficient {what} is predicted to within one step in {rows}."


def _tail_hits(every: Sequence[Beside]) -> Iterator[str]:
    known = [(each.share_now or 0.0, each.tail_ratio) for each in every if each.tail_ratio is not None]
    for where, own in (
        (
            f"Under {percent(USUAL + NEAR)} of the predicted capacity",
            [ratio for share, ratio in known if share < USUAL + NEAR],
        ),
        ("Nearer to the capacity", [ratio for share, ratio in known if share >= USUAL + NEAR]),
    ):
        if own:
            hits = sum(abs(each.value - 1) <= TAIL_WITHIN for each in own)
            within = f"within {percent(TAIL_WITHIN)} of the prediction in {hits} of {counted(len(own), 'row')}"
            yield f"{where} the 99th percentile is {within}."


def _kinds(every: Sequence[Beside]) -> Answer:
    question = "Which answers more requests: threads, an event loop or processes?"
    told = [
        *_beside(every, AIO, GRPC, "the event loop of gRPC answers"),
        *_beside(every, PROCESSES, SOCKETS, "two processes answer"),
        *_beside(every, NO_GIL, SOCKETS, "threads without a GIL answer"),
    ]
    if not told:
        return Answer(question, NOT_YET, ())
    return Answer(
        question,
        told[0],
        (),
        details=(*told[1:], "These numbers have no verdict: the arms were not measured in turns with each other."),
        estimand="replies a second with equal numbers of clients in a closed loop, and the largest pool of threads",
        not_concluded=(
            "The throughput of an event loop that work blocks: such work belongs on threads or processes.",
            "The effect of more processes than cores: here are two processes, and the load uses a part of both cores.",
            "The throughput of gRPC without a GIL: grpcio has no build for a free-threaded Python.",
        ),
        figure="loop",
    )


def _beside(every: Sequence[Beside], model: str, other: str, who: str) -> Iterator[str]:
    """Sentences that compare two models in closed loops, with equal numbers of clients and equal work. Each model has
    its largest pool. ``model``, ``other``: the two models. ``who``: subject and verb of the sentences, for ``model``.
    """
    loops = grouped((each for each in every if not each.is_open), lambda each: (each.model, each.work, each.clients))
    largest = {key: max(own, key=lambda each: each.workers) for key, own in loops.items()}
    for (of, work, clients), each in largest.items():
        pool = largest.get((other, work, clients))
        if of == model and pool is not None and pool.throughput_hz is not None and each.throughput_hz is not None:
            share = each.throughput_hz.value / pool.throughput_hz.value
            yield (
                f"{named(work)}, {counted(clients, 'client')}: {who} "
                f"{number(each.throughput_hz.value)} requests a second, {counted(pool.workers, 'thread')} of one "
                f"process {number(pool.throughput_hz.value)}: {number(share)} times as many."
            )
