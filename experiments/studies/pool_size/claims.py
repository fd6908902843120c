"""The answers to the study's questions, and the claims made before the measurement. Pure.

The claims are common advice on Python's threads, and the model's own promise. A claim about pools takes the verdicts of
comparisons. A claim about predictions counts arms: an arm is within the limit, or outside it, where its whole interval
is. No claim is judged before the sweep's look.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.recommend.advice import USUAL
from experiments.show.content import Answer, Claim, Entry, Finding, Seen
from experiments.show.numbers import counted, has_interval, number, percent, ratio_words, times_between
from experiments.show.sentences import ratio_sentence, to_decide, verdict_words
from experiments.studies.pool_size.beside import (
    BEGINS,
    TAIL_WITHIN,
    THROUGHPUT_WITHIN,
    Beside,
    Gain,
    Ladder,
    begins,
    beside,
    gains,
    of_clients,
    of_pools,
)
from experiments.studies.pool_size.design import AIO, GRPC, NO_GIL, PROCESSES, SOCKETS, Work, model_of, named, work_of

NOT_YET = "Not known: nothing was measured of it."

MODEL_SAYS = (
    "What is foretold comes from one client of one worker, measured by turns with the arms. No arm foretells itself."
)

LOOPBACK = "What a network between client and server adds: here it is the loopback of one machine."


def answers(seen: Seen) -> tuple[Answer, ...]:
    """Answers to every question, in the order in which one asks them."""
    every = beside(seen)
    return _lookups(seen.after.get("pool_lookups")), _begins(seen), _best(every), _error(every), _kinds(every)


def lookups(seen: Seen) -> tuple[Answer, ...]:
    """Answer of the part ``pool_lookups`` by itself."""
    judged = compared(seen.main)
    own = replace(_lookups(seen.main), deciding=judged, details=(), not_concluded=(), figure=None)
    return (replace(own, to_decide=to_decide(seen.main, [each.comparison.name for each in judged])),)


def one(seen: Seen) -> tuple[Answer, ...]:
    """Answer of the part ``pool_one``: the values of its table of arms are the basis of all predictions."""
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
    closed = [each for each in every if each.ratio is not None and not each.is_open]
    if not closed:
        return Answer(question, NOT_YET, ())
    hits, before = sum(each.is_hit for each in closed), sum(each.was_hit for each in closed)
    of_before = f"By the predictions written down before the sweep, from one block of one worker, {before} are."
    return Answer(
        question,
        f"The throughput of {hits} of {counted(len(closed), 'arm')} is within {percent(THROUGHPUT_WITHIN)} of what was "
        "foretold.",
        (),
        details=(of_before, *_ladder_hits(every), *_tail_hits(every), MODEL_SAYS),
        estimand="measured ÷ foretold replies a second of a closed loop; all arms but those of the basis",
        not_concluded=("That the model holds for a server that shares its cores with other programs.",),
        figure="prediction",
    )


def _ladder_hits(every: Sequence[Beside]) -> Iterator[str]:
    for what, found in (("pool", of_pools(every)), ("number of clients", of_clients(every))):
        if found:
            hits = sum(each.is_hit for each in found)
            yield f"The least {what} that is enough is foretold to within one step in {hits} of {len(found)} rows."


def _tail_hits(every: Sequence[Beside]) -> Iterator[str]:
    known = [(each.share_now or 0.0, each.tail_ratio) for each in every if each.tail_ratio is not None]
    for where, own in (
        (f"Up to {percent(USUAL)} of the foretold capacity", [ratio for share, ratio in known if share < USUAL + NEAR]),
        ("Nearer to the capacity", [ratio for share, ratio in known if share >= USUAL + NEAR]),
    ):
        if own:
            hits = sum(abs(each - 1) <= TAIL_WITHIN for each in own)
            within = f"within {percent(TAIL_WITHIN)} of the prediction in {hits} of {counted(len(own), 'row')}"
            yield f"{where} the 99th percentile is {within}."


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
    """Sentences on each closed loop of a model at its largest pool, beside another model's loop with the same clients
    and work."""
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


SHARE = 10 / 12
"""Share of the arms that must be foretold well."""

ARMS_MIN = 12
"""Fewest arms that can confirm or contradict a share."""

NEAR = 0.05
"""Most by which the share of an open loop may differ from ``USUAL``, the share that the claim names."""

_NOT_MEASURED: Finding = ("NOT TESTABLE", "No arm of it was measured.")
_NO_FREE_THREADED: Finding = ("NOT TESTABLE", "No free-threaded Python was measured: `make peers` says how to get one.")
_ONE_CORE: Finding = ("NOT TESTABLE", "This machine has one core.")
_NO_LOOK: Finding = ("INCONCLUSIVE", "The sweep stands at no look yet.")


def claims(seen: Seen) -> tuple[Claim, ...]:
    """Every claim, in the order of the README."""
    return tuple(entry.claim(seen) for entry in ENTRIES)


def _lookups_gain_nothing(seen: Seen) -> Finding:
    lookups = seen.after.get("pool_lookups")
    return _NOT_MEASURED if lookups is None else _all(lookups, compared(lookups), gains_nothing)


def _holding(seen: Seen) -> Finding:
    return _of_work(seen, lambda work: work.cpu_ms > 0 and work == Work(cpu_ms=work.cpu_ms), gains_nothing)


def _letting_go(seen: Seen) -> Finding:
    if _has_one_core(seen):
        return _ONE_CORE
    return _of_work(seen, lambda work: work.hash_ms > 0 and work == Work(hash_ms=work.hash_ms), _gains)


def _without_gil(seen: Seen) -> Finding:
    own = [each for each in compared(seen.main) if _is_free_threaded(each)]
    own = [each for each in own if (work := work_of(each.comparison.above.setting)).cpu_ms > 0 and not work.io_ms]
    if not own:
        return _NO_FREE_THREADED
    return _ONE_CORE if _has_one_core(seen) else _all(seen.main, own, _gains)


def _has_one_core(seen: Seen) -> bool:
    return bool(seen.main.blocks) and seen.main.blocks[0].cores < 2


def _is_free_threaded(judged: Judged) -> bool:
    return model_of(judged.comparison.above.setting) == NO_GIL


def _waiting(seen: Seen) -> Finding:
    return _of_work(seen, lambda work: work.io_ms >= 1, _gains)


def _durable(seen: Seen) -> Finding:
    return _of_work(seen, lambda work: work.durable, _gains)


def _of_work(seen: Seen, wanted: Callable[[Work], bool], holds: Callable[[Judged], bool | None]) -> Finding:
    """Verdict on a kind of work, over all models with a GIL."""
    with_gil = [each for each in compared(seen.main) if not _is_free_threaded(each)]
    own = [each for each in with_gil if wanted(work_of(each.comparison.above.setting))]
    return _all(seen.main, own, holds)


def _gains(judged: Judged) -> bool | None:
    """True where more threads answer sooner, by 5 % or more; None where it is not decided."""
    if not judged.decided:
        return None
    return judged.verdict is Verdict.FASTER and not judged.by_less_than_5


def _all(judgement: Judgement, own: Sequence[Judged], holds: Callable[[Judged], bool | None]) -> Finding:
    """Verdict on a claim that something holds for all comparisons."""
    if not own:
        return _NOT_MEASURED
    said = " ".join(f"{each.comparison.title}: {ratio_words(each.typical)[0]}, {verdict_words(each)}." for each in own)
    if judgement.look is None:
        return "INCONCLUSIVE", said
    found = [holds(each) for each in own]
    if False in found:
        return "CONTRADICTED", said
    return ("INCONCLUSIVE" if None in found else "CONFIRMED"), said


def _throughput(seen: Seen) -> Finding:
    ratios = [each.ratio for each in beside(seen) if not each.is_open and each.ratio is not None]
    if seen.main.look is None:
        return _NO_LOOK
    if len(ratios) < ARMS_MIN:
        return "INCONCLUSIVE", f"{counted(len(ratios), 'arm')}; a share needs {ARMS_MIN}."
    low, high = 1 - THROUGHPUT_WITHIN, 1 + THROUGHPUT_WITHIN
    hits = sum(low <= each.value <= high for each in ratios)
    surely = sum(low <= each.low and each.high <= high for each in ratios)
    out = sum(each.high < low or each.low > high for each in ratios)
    said = f"{hits} of {len(ratios)} arms; {surely} with their whole interval, and {out} wholly out."
    if surely >= SHARE * len(ratios):
        return "CONFIRMED", said
    return ("CONTRADICTED" if out > (1 - SHARE) * len(ratios) else "INCONCLUSIVE"), said


def _steps(seen: Seen) -> Finding:
    every = beside(seen)
    found = (*of_pools(every), *of_clients(every))
    if seen.main.look is None:
        return _NO_LOOK
    if not found:
        return _NOT_MEASURED
    hits = sum(each.is_hit for each in found)
    said = f"{hits} of {len(found)} rows, by their means."
    return ("CONFIRMED" if hits >= SHARE * len(found) else "CONTRADICTED"), said


def _tails(seen: Seen) -> Finding:
    every = [each for each in beside(seen) if each.share_now is not None and abs(each.share_now - USUAL) < NEAR]
    ratios = [each.tail_ratio for each in every if each.tail_ratio is not None]
    if seen.main.look is None:
        return _NO_LOOK
    if not ratios:
        return "INCONCLUSIVE", "Too few requests for a 99th percentile."
    hits = sum(abs(each - 1) <= TAIL_WITHIN for each in ratios)
    said = (
        f"{hits} of {counted(len(ratios), 'row')}: measured ÷ foretold {', '.join(f'{each:.2f}' for each in ratios)}."
    )
    return ("CONFIRMED" if hits == len(ratios) else "CONTRADICTED"), said


ENTRIES: tuple[Entry[Seen], ...] = (
    Entry("A pure Lookup gains nothing from more threads.", _lookups_gain_nothing),
    Entry("Computing that holds the interpreter gains nothing from more threads.", _holding),
    Entry("Computing that lets the interpreter go gains from more threads, where there are cores.", _letting_go),
    Entry("Without a GIL, computing in bytecode gains from more threads, where there are cores.", _without_gil),
    Entry("A request that waits a millisecond or more gains from more threads.", _waiting),
    Entry(
        "A trade that waits for the disk gains from more threads, where it holds one: they share a commit.",
        _durable,
    ),
    Entry(
        f"Throughput is foretold to within {percent(THROUGHPUT_WITHIN)} in ten arms of twelve.",
        _throughput,
    ),
    Entry(
        "The least pool, or number of clients, that is enough is foretold to within one step, in ten of twelve.", _steps
    ),
    Entry(
        f"At 70 % of the foretold capacity, the 99th percentile is foretold to within {percent(TAIL_WITHIN)}.",
        _tails,
    ),
)
"""Every claim."""
