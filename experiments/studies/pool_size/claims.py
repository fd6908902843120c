"""Claims made before the measurement: by everyday wisdom of Python, and by the model's own promise. Pure.

A claim about pools takes the verdicts of comparisons. One about predictions counts arms: an arm is surely within, or
surely out, where its whole interval is. Nothing is said before the sweep's look.
"""

from collections.abc import Callable, Sequence

from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.show.content import Claim, Entry, Finding, Seen
from experiments.show.numbers import counted, percent, ratio_words
from experiments.show.sentences import verdict_words
from experiments.studies.pool_size.answers import compared, gains_nothing
from experiments.studies.pool_size.beside import (
    TAIL_WITHIN,
    THROUGHPUT_WITHIN,
    beside,
    of_clients,
    of_pools,
)
from experiments.studies.pool_size.sweeps import NO_GIL, Work, model_of, work_of

SHARE = 10 / 12
"""Share of the arms that must be foretold well."""

ARMS_MIN = 12
"""Fewest arms that can confirm or contradict a share."""

AT = 0.7
"""Share of the capacity at which a tail is to be foretold well."""

_NOT_MEASURED: Finding = ("NOT TESTABLE", "No arm of it was measured.")
_NO_FREE_THREADED: Finding = ("NOT TESTABLE", "No free-threaded Python was measured: `make peers` says how to get one.")
_ONE_CORE: Finding = ("NOT TESTABLE", "This machine has one core.")
_NO_LOOK: Finding = ("INCONCLUSIVE", "The sweep stands at no look yet.")


def claims(seen: Seen) -> tuple[Claim, ...]:
    """Every claim, in the order of the README."""
    return tuple(entry.claim(seen) for entry in ENTRIES)


def _lookups(seen: Seen) -> Finding:
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
    every = [each for each in beside(seen) if each.share is not None and abs(each.share - AT) < 0.01]
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
    Entry("A pure Lookup gains nothing from more threads.", _lookups),
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
        f"At {percent(AT)} of the foretold capacity, the 99th percentile is foretold to within {percent(TAIL_WITHIN)}.",
        _tails,
    ),
)
"""Every claim."""
