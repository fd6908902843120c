"""Answers of ``pool_size``: five questions, each with its numbers beside the predictions. Pure."""

from collections.abc import Iterator, Sequence

from experiments.design.sweep import Sweep
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.show.content import Answer, Seen
from experiments.show.numbers import counted, has_interval, number, percent, times_between
from experiments.show.sentences import ratio_sentence, to_decide
from experiments.studies.pool_size.beside import (
    TAIL_WITHIN,
    THROUGHPUT_WITHIN,
    Beside,
    Ladder,
    beside,
    of_clients,
    of_pools,
)
from experiments.studies.pool_size.effect import BEGINS, Gain, begins, gains
from experiments.studies.pool_size.sweeps import AIO, GRPC, NO_GIL, PROCESSES, SOCKETS, model_of, named, work_of

NOT_YET = "Not known: nothing was measured of it."

MODEL_SAYS = (
    "What is foretold was written down before the sweep: from one client of one worker, and the work that is asked for."
)

LOOPBACK = "What a network between client and server adds: here it is the loopback of one machine."


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers to every question, in the order in which one asks them."""
    every = beside(seen)
    return _lookups(seen.after.get("pool_lookups")), _begins(seen), _best(every), _error(every), _kinds(every)


def lookups(seen: Seen) -> tuple[Answer, ...]:
    """Answer of the part ``pool_lookups`` by itself."""
    judged = tuple(each for each in seen.main.judged.values() if each.comparison.kind != "same")
    answer = _lookups(seen.main)
    names = [each.comparison.name for each in judged]
    return (
        Answer(
            answer.question, answer.sentence, judged, estimand=answer.estimand, to_decide=to_decide(seen.main, names)
        ),
    )


def one(seen: Seen) -> tuple[Answer, ...]:
    """Answer of the part ``pool_one``: its table of arms has the values that all predictions are made of."""
    sentence = "Its processor time and response time stand in the table of all arms. No verdict is asked of them."
    return (Answer("What does one client find of one worker?", sentence if seen.main.blocks else NOT_YET, ()),)


def gains_nothing(judged: Judged) -> bool | None:
    """True where more threads gain nothing, or under 5 %; None where it is not decided."""
    if not judged.decided:
        return None
    return judged.verdict is not Verdict.FASTER or judged.by_less_than_5


def compared(judgement: Judgement) -> tuple[Judged, ...]:
    """The comparisons of pools that have a value."""
    return tuple(each for each in judgement.judged.values() if each.comparison.kind != "same")


def declared(sweep: Sweep) -> int:
    """Number of comparisons of pools in a sweep."""
    return sum(each.kind != "same" for each in sweep.comparisons)


def _lookups(judgement: Judgement | None) -> Answer:
    question = "Does a pure Lookup gain from more threads?"
    judged = () if judgement is None else compared(judgement)
    if judgement is None or not judged:
        return Answer(question, NOT_YET, ())
    found = [gains_nothing(each) for each in judged]
    if None in found:
        head = "It is not decided for all."
    else:
        head = "No." if all(found) else "It depends on the server." if any(found) else "Yes."
    told = [ratio_sentence(each, *_lookup_words(each)) for each in judged]
    first = sorted({found.index(each) for each in found})  # one of each finding
    return Answer(
        question,
        " ".join((head, *(told[place] for place in first))),
        (),
        details=tuple(text for place, text in enumerate(told) if place not in first),
        estimand="mean response of 16 connections in a closed loop, typical of pairs of neighbouring slices",
        not_concluded=("That a pool's size never matters: this request is a pure Lookup.",),
        figure="lookups",
    )


def _lookup_words(judged: Judged) -> tuple[str, str]:
    above, below = judged.comparison.above.setting, judged.comparison.below.setting
    return (
        f"on {model_of(above)}, a Lookup with {counted(above.whole('workers'), 'thread')}",
        f"one with {counted(below.whole('workers'), 'thread')}",
    )


def _begins(seen: Seen) -> Answer:
    question = "Where does the effect of more threads begin?"
    found = gains(seen)
    if not found:
        return Answer(question, NOT_YET, ())
    first, last = begins(found), found[-1]
    sentence = f"No gain of {percent(BEGINS)} is shown up to an I/O share of {percent(round(last.share, 3))}."
    if first is not None:
        sentence = f"With an I/O share of {percent(round(first.share, 3))}: {_gained(first)}."
    return Answer(
        question,
        sentence,
        (),
        details=(*(f"At {percent(round(each.share, 3))}: {_gained(each)}." for each in found), MODEL_SAYS),
        estimand=(
            "throughput of 16 threads ÷ that of one, 16 clients. A request has 1 ms of computing, and a longer and "
            "longer wait. The share is that of the wait in one worker's time for a request."
        ),
        not_concluded=(
            "The same share of other work: what holds the interpreter is what counts, and here it is 1 ms.",
        ),
        figure="effect",
    )


def _gained(gain: Gain) -> str:
    seen = gain.measured
    ends = f", {times_between(seen, 1)}" if has_interval(seen) else ""
    return f"16 threads answer {number(seen.value)} times as many as one{ends}; foretold {number(gain.foretold)}"


def _best(every: Sequence[Beside]) -> Answer:
    question = "Which pool is enough for which work?"
    found = of_pools(every, least=2)
    if not found:
        return Answer(question, NOT_YET, ())
    return Answer(
        question,
        " ".join(f"{_enough(each)}." for each in found[:3]),
        (),
        details=tuple(f"{_enough(each)}." for each in found[3:]),
        estimand="the least pool of those tried that gets 95 % of the throughput of any of them, as many clients each",
        not_concluded=("That a larger one does no harm: that is the next question's table, and memory.", LOOPBACK),
        figure="pools",
    )


def _enough(of: Ladder) -> str:
    told, seen = of.steps[of.foretold], of.steps[of.seen]
    also = "as foretold" if told == seen else f"foretold {told}"
    return f"{of.what}, {of.beside}: {counted(seen, of.noun)} of {', '.join(map(str, of.steps))}, {also}"


def _error(every: Sequence[Beside]) -> Answer:
    question = "How far off is the prediction?"
    closed = [each.ratio for each in every if each.ratio is not None and not each.is_open]
    if not closed:
        return Answer(question, NOT_YET, ())
    hits = sum(abs(each.value - 1) <= THROUGHPUT_WITHIN for each in closed)
    return Answer(
        question,
        f"The throughput of {hits} of {counted(len(closed), 'arm')} is within {percent(THROUGHPUT_WITHIN)} of what was "
        "foretold.",
        (),
        details=(*_ladder_hits(every), *_tail_hits(every), MODEL_SAYS),
        estimand="measured ÷ foretold replies a second of a closed loop; every arm counts, misses included",
        not_concluded=("That the model holds for a server that shares its cores with other programs.",),
        figure="prediction",
    )


def _ladder_hits(every: Sequence[Beside]) -> Iterator[str]:
    for what, found in (("pool", of_pools(every)), ("number of clients", of_clients(every))):
        if found:
            hits = sum(each.is_hit for each in found)
            yield f"The least {what} that is enough is foretold to within one step in {hits} of {len(found)} rows."


def _tail_hits(every: Sequence[Beside]) -> Iterator[str]:
    tails = [(each.share, each.tail_ratio) for each in every if each.share is not None and each.tail_ratio is not None]
    for share in sorted({round(share, 1) for share, _ in tails}):
        own = [ratio for at, ratio in tails if round(at, 1) == share]
        hits = sum(abs(each - 1) <= TAIL_WITHIN for each in own)
        yield (
            f"At {percent(share)} of the foretold capacity the 99th percentile is within {percent(TAIL_WITHIN)} of the "
            f"prediction in {hits} of {counted(len(own), 'row')}."
        )


def _kinds(every: Sequence[Beside]) -> Answer:
    question = "Threads, an event loop or processes?"
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
        details=(*told[1:], "No verdict is asked of these numbers: these arms stood in turns of their own."),
        estimand="replies a second with as many clients in a closed loop, the largest pool of threads",
        not_concluded=(
            "How a loop does where work holds it up: such work belongs on threads or processes.",
            "What more processes than cores do: here are two, and the load takes its part of both.",
            "What gRPC does without a GIL: grpcio has no build for a free-threaded Python.",
        ),
        figure="loop",
    )


def _beside(every: Sequence[Beside], model: str, other: str, who: str) -> Iterator[str]:
    """Sentences on each closed loop of a model at its largest pool, beside the other's with as many clients and the
    same work."""
    for each in every:
        if model_of(each.setting) != model or each.is_open or each.workers < _most(every, model, each):
            continue
        beside = [one for one in every if model_of(one.setting) == other and _alike(one, each)]
        pool = max(beside, key=lambda one: one.workers, default=None)
        if pool is None or pool.throughput_hz is None or each.throughput_hz is None:
            continue
        share = each.throughput_hz.value / pool.throughput_hz.value
        yield (
            f"{named(work_of(each.setting))}, {counted(each.clients, 'client')}: {who} "
            f"{number(each.throughput_hz.value)} requests a second, {counted(pool.workers, 'thread')} of one process "
            f"{number(pool.throughput_hz.value)}: {number(share)} times as many."
        )


def _alike(one: Beside, other: Beside) -> bool:
    return not one.is_open and one.clients == other.clients and work_of(one.setting) == work_of(other.setting)


def _most(every: Sequence[Beside], model: str, of: Beside) -> int:
    """The largest pool of a model with the same work and clients."""
    return max(each.workers for each in every if model_of(each.setting) == model and _alike(each, of))
