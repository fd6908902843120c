"""Claims that were made before the measurement, each with its verdict. Pure functions.

The claims are common advice on Python's threads, and the accuracy that the model promises. Verdicts on comparisons
decide a claim about pools. A claim about predicted throughputs counts arms (an arm is one server under one load). An
arm counts as within the limit where its whole interval is within the limit. An arm counts as outside where its whole
interval is outside. No claim is judged before the sweep is at a look (a declared number of blocks).
"""

from collections.abc import Callable, Iterator, Sequence

from experiments.design.arms import Comparison
from experiments.design.setting import Setting
from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judgement
from experiments.recommend.advice import USUAL
from experiments.show.content import Claim, Entry, Finding, Seen, decided
from experiments.show.numbers import counted, percent, ratio_words
from experiments.show.sentences import verdict_words
from experiments.studies.pool_size.answers import gains_from_threads
from experiments.studies.pool_size.beside import (
    NEAR,
    STEPS_MIN,
    TAIL_WITHIN,
    THROUGHPUT_WITHIN,
    asked,
    beside,
    of_clients,
    of_pools,
)
from experiments.studies.pool_size.design import NO_GIL, Work, model_of, work_of

HITS, OF_ARMS = 10, 12
"""Numbers of arms for the claim on throughput. The claim is confirmed where the whole interval is within the limit in
at least 10 of 12 arms.
"""

ARMS_MIN = 12
"""Fewest arms that can decide the claim on throughput."""

_NOT_MEASURED: Finding = ("NOT TESTABLE", "No arm of this kind was measured.")
_NO_FREE_THREADED: Finding = ("NOT TESTABLE", "No free-threaded Python was measured: `make peers` says how to get one.")
_ONE_CORE: Finding = ("NOT TESTABLE", "This machine has one core.")
_NO_LOOK: Finding = ("INCONCLUSIVE", "The sweep has not reached a number of blocks with verdicts.")


def claims(seen: Seen) -> tuple[Claim, ...]:
    """Every claim, in the order of the README."""
    return tuple(entry.claim(seen) for entry in ENTRIES)


def _lookups_gain_nothing(seen: Seen) -> Finding:
    lookups = seen.after.get("pool_lookups")
    return _NOT_MEASURED if lookups is None else _all(lookups, _asked(lookups), gain=False)


def _without_gil(seen: Seen) -> Finding:
    own = [each for each, work in _works(seen, with_gil=False) if work.cpu_ms > 0 and not work.io_ms]
    if not own:
        return _NO_FREE_THREADED
    return _ONE_CORE if _has_one_core(seen) else _all(seen.main, own, gain=True)


def _of_work(
    is_asked: Callable[[Work], bool], gain: bool = True, needs_cores: bool = False
) -> Callable[[Seen], Finding]:
    """Function that judges a claim on one kind of work, over all servers with a GIL.

    ``is_asked``: gives True for the works of the claim. ``gain``: True where the claim is that more threads gain.
    ``needs_cores``: True for a claim that needs two cores.
    """

    def finding(seen: Seen) -> Finding:
        if needs_cores and _has_one_core(seen):
            return _ONE_CORE
        own = [each for each, work in _works(seen, with_gil=True) if is_asked(work)]
        return _all(seen.main, own, gain)

    return finding


def _asked(judgement: Judgement) -> tuple[Comparison, ...]:
    """Comparisons of pools that the sweep declares, with a value or without."""
    return tuple(each for each in judgement.sweep.comparisons if each.kind != "same")


def _works(seen: Seen, with_gil: bool) -> Iterator[tuple[Comparison, Work]]:
    """Declared comparisons of pools, each with the work of its requests, on interpreters with a GIL or without a
    GIL."""
    for each in _asked(seen.main):
        of = each.above.setting
        if (model_of(of) != NO_GIL) == with_gil:
            yield each, work_of(of)


def _has_one_core(seen: Seen) -> bool:
    return bool(seen.main.blocks) and seen.main.blocks[0].cores < 2


def _all(judgement: Judgement, own: Sequence[Comparison], gain: bool) -> Finding:
    """Finding on a claim about all comparisons in ``own``. Where ``gain`` is True, the claim is that more threads gain
    in every comparison. Where ``gain`` is False, the claim is that more threads gain in no comparison. A comparison
    without a value keeps the claim open.
    """
    judged = [judgement.judged[each.name] for each in own if each.name in judgement.judged]
    if not own:
        return _NOT_MEASURED
    judged.sort(key=lambda each: ((found := gains_from_threads(each)) is gain, found is None))
    told = [f"{each.comparison.title}: {ratio_words(each.typical)[0]}, {verdict_words(each)}." for each in judged]
    missing = len(own) - len(judged)
    said = (" ".join(told) + _missed(missing, "comparison")).strip()
    found = [gains_from_threads(each) for each in judged]
    if judgement.look is None:
        return "INCONCLUSIVE", said
    return decided(set(found) == {gain} and not missing, (not gain) in found), said


def _throughput(seen: Seen) -> Finding:
    ratios = [each.ratio for each in beside(seen) if not each.is_open and each.ratio is not None]
    if seen.main.look is None:
        return _NO_LOOK
    if len(ratios) < ARMS_MIN:
        return "INCONCLUSIVE", f"{counted(len(ratios), 'arm')}; a verdict needs {ARMS_MIN}."
    surely, out, said = _counted(ratios, THROUGHPUT_WITHIN, "arm")
    every = len(_closed(seen))
    said += _missed(every - len(ratios), "arm")
    return decided(OF_ARMS * surely >= HITS * every, OF_ARMS * out > (OF_ARMS - HITS) * every), said


def _closed(seen: Seen) -> list[Setting]:
    """Settings of the closed loops with a prediction, measured or not."""
    return [each for each in asked(seen) if each["rate_hz"] is None]


def _missed(number: int, noun: str) -> str:
    """Sentence that ``number`` arms or comparisons have no value. Begins with a space. Empty for 0."""
    return f" {counted(number, noun)} {'has' if number == 1 else 'have'} no value." if number else ""


def _counted(ratios: Sequence[Estimate], within: float, noun: str) -> tuple[int, int, str]:
    """Two numbers, and a sentence on them. The first number counts the ratios (measured ÷ predicted) whose whole
    interval is within ``within`` of 1. The second number counts the ratios whose whole interval is farther from 1.
    ``noun``: word for a ratio in the sentence."""
    low, high = 1 - within, 1 + within
    hits = sum(low <= each.value <= high for each in ratios)
    surely = sum(low <= each.low and each.high <= high for each in ratios)
    out = sum(each.high < low or each.low > high for each in ratios)
    whole = f"{surely} with the whole interval, and {out} with the whole interval outside."
    return surely, out, f"Within the limit: {hits} of {counted(len(ratios), noun)}; {whole}"


def _steps(seen: Seen) -> Finding:
    every = beside(seen)
    tried = (*of_pools(every), *of_clients(every))
    found = [each for each in tried if each.can_miss]
    if seen.main.look is None:
        return _NO_LOOK
    if not tried:
        return _NOT_MEASURED
    if not found:
        return "INCONCLUSIVE", "In every tried row each step is within one step of the predicted step."
    surely, out = sum(each.is_sure_hit for each in found), sum(each.is_sure_miss for each in found)
    hits = f"{sum(each.is_hit for each in found)} of {counted(len(found), 'row')} in which a miss is possible"
    missing = len(_closed(seen)) - sum(each.ratio is not None for each in every if not each.is_open)
    said = f"{hits}; {surely} surely, by all intervals, and {out} surely missed.{_missed(missing, 'arm')}"
    if max(len(each.steps) for each in found) == STEPS_MIN:
        said += f" A row of {STEPS_MIN} steps misses only where one end is predicted and the other end is sufficient."
    return ("INCONCLUSIVE" if missing else decided(surely == len(found), out > 0)), said


def _tails(seen: Seen) -> Finding:
    known = beside(seen)
    every = [each for each in known if each.share_now is not None and abs(each.share_now - USUAL) < NEAR]
    ratios = [each.tail_ratio for each in every if each.tail_ratio is not None]
    there = {each.setting for each in known}
    untold = sum(each["rate_hz"] is not None and each not in there for each in asked(seen))
    missing = len(every) - len(ratios) + untold
    if seen.main.look is None:
        return _NO_LOOK
    if not every and not untold:
        near = f"{percent(USUAL - NEAR)} to {percent(USUAL + NEAR)}"
        return "INCONCLUSIVE", f"No open loop was at {near} of the capacity that the sweep predicts."
    if not ratios:
        return "INCONCLUSIVE", "Too few requests for a 99th percentile, or no prediction."
    surely, out, counts = _counted(ratios, TAIL_WITHIN, "row")
    said = f"Measured ÷ predicted: {', '.join(f'{each.value:.2f}' for each in ratios)}. {counts}"
    return decided(surely == len(ratios) and not missing, out > 0), said + _missed(missing, "arm")


ENTRIES: tuple[Entry[Seen], ...] = (
    Entry("A pure Lookup gains nothing from more threads.", _lookups_gain_nothing),
    Entry(
        "Computing that holds the interpreter gains nothing from more threads.",
        _of_work(lambda work: work.cpu_ms > 0 and work == Work(cpu_ms=work.cpu_ms), gain=False),
    ),
    Entry(
        "Computing that releases the interpreter gains from more threads, on several cores.",
        _of_work(lambda work: work.hash_ms > 0 and work == Work(hash_ms=work.hash_ms), needs_cores=True),
    ),
    Entry("Without a GIL, computing in bytecode gains from more threads, on several cores.", _without_gil),
    Entry(
        "A request that waits a millisecond or more gains from more threads.", _of_work(lambda work: work.io_ms >= 1)
    ),
    Entry(
        "A trade that waits for the disk gains from more threads, where a waiting trade holds a thread: trades share a "
        "commit.",
        _of_work(lambda work: work.durable),
    ),
    Entry(f"Throughput is predicted to within {percent(THROUGHPUT_WITHIN)} in ten arms of twelve.", _throughput),
    Entry(
        "The smallest sufficient pool, or number of clients, is predicted to within one step, in every tried row.",
        _steps,
    ),
    Entry(
        f"At 70 % of the predicted capacity, the 99th percentile is predicted to within {percent(TAIL_WITHIN)}.", _tails
    ),
)
"""Every claim, in the order of the README."""
