"""The advice in sentences, as a table of pools, and as a figure. Pure."""

import math
from collections.abc import Iterator
from functools import partial

from experiments.design.demands import Demands
from experiments.recommend.advice import BUSIEST, RATE_NEAR, USUAL, Advice, Kind, Wish
from experiments.recommend.measured import TAIL_NEAR
from experiments.recommend.seen import ONE_AT_A_TIME, RATE_FAIR, Found, Limit
from experiments.recommend.tail import tail
from experiments.show.figures import advice as figure
from experiments.show.figures.style import Picture
from experiments.show.numbers import number, percent

DESCRIBED_ERROR, DESCRIBED_TAIL_ERROR = 0.3, 0.35
"""Errors of the model for known demands, as shares of the measured values. In the study ``pool_size`` most predicted
rates are within ``DESCRIBED_ERROR``. Most predicted p99, at up to 70 % of the capacity, are within
``DESCRIBED_TAIL_ERROR``. The page of ``recommend`` has the numbers."""

MEASURED_ERROR = 0.15
"""Error of a measured rate, as a share. Nine of ten repeated measurements are within this error
(``tests/reliability/trials.py``)."""

SHARES = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)
"""Shares of the highest rate for which the figure shows a p99."""

LITTLE = 0.001
"""Smallest gain, as a share, that a sentence states."""

_MORE_PROCESSES = "For a higher rate, start more processes: each process has its own GIL, and needs"

_LIMITS = {
    "gil": "the GIL: one thread computes at a time, so more threads add nothing",
    "cores": "the processor: all cores are busy",
    "workers": "the workers: each is busy with a request all the time",
}


def sentences(demands: Demands, wish: Wish, advice: Advice) -> Iterator[str]:
    """The advice on a described service, as lines of text."""
    few = ". 64 threads are too few, as requests wait most of their time" if advice.kind is Kind.ASYNCIO else ""
    yield f"Advice: {_advised(str(advice), advice.chosen.processes)}{few}."
    yield _needs(demands)
    yield from _expected(wish, advice)
    yield from _why(demands, wish, advice)
    for what, then in advice.changes:
        yield f"If {what}: {then}."


def _advised(words: str, processes: int) -> str:
    return f"{words}, in one process" if processes == 1 else words.replace(" of ", ", each with ")


def _needs(demands: Demands) -> str:
    """Sentence on the demands of a request."""
    without = " without it" if demands.gil_s else ""
    parts = [
        f"{_time(seconds)} {what}"
        for seconds, what in (
            (demands.gil_s, "of processor time with the GIL"),
            (demands.free_s, f"of processor time{without}"),
            (demands.wait_s, "of waiting"),
        )
        if seconds
    ]
    return f"A request takes {' and '.join(parts)}."


def _expected(wish: Wish, advice: Advice) -> Iterator[str]:
    """Sentences on the expected rate and p99, and on a wish that is not met."""
    chosen = advice.chosen
    within = f"with an error up to {percent(DESCRIBED_ERROR)}"
    yield f"Expect up to {_rate(chosen.highest_hz)}, {within}. The limit is {_LIMITS[chosen.limit]}."
    if math.isfinite(chosen.p99_s):
        share = _share(chosen.rate_hz, chosen.highest_hz, wish)
        is_known = chosen.rate_hz < 1.01 * USUAL * chosen.highest_hz
        within = f"with an error up to {percent(DESCRIBED_TAIL_ERROR)}" if is_known else "by a less exact model"
        yield f"At {_rate(chosen.rate_hz)}{share}, 99 of 100 replies come within {_time(chosen.p99_s)}, {within}."
    if not advice.carried:
        yield from _missed(wish, chosen.highest_hz, f"is not kept: no server on {_cores(wish.cores)} keeps it")
    if wish.target_p99_s is not None and advice.highest_in_target_hz is not None:
        target = _time(wish.target_p99_s)
        if advice.highest_in_target_hz:
            yield f"A p99 of {target} is kept up to about {_rate(advice.highest_in_target_hz)}."
        else:
            yield f"No rate keeps a p99 of {target}."


def _missed(wish: Wish, highest_hz: float, kept: str) -> Iterator[str]:
    """Sentence on the first wish that is not met: on the wished rate, or otherwise on the wished p99. ``kept``: end of
    the sentence on the p99.
    """
    if wish.rate_hz is not None and wish.rate_hz > BUSIEST * highest_hz:
        most = _rate(BUSIEST * highest_hz)
        yield f"This server does not carry {_rate(wish.rate_hz)} on {_cores(wish.cores)}. Up to {most} is safe."
    elif wish.target_p99_s is not None:
        yield f"The wished p99 of {_time(wish.target_p99_s)} {kept}."


def _why(demands: Demands, wish: Wish, advice: Advice) -> Iterator[str]:
    """Sentences on the effect of more threads, of asyncio and of more processes."""
    chosen, largest = advice.chosen, advice.pools[-1]
    if advice.kind is Kind.ASYNCIO:
        yield f"Asyncio needs waits that can be awaited. 64 threads reach up to {_rate(largest.highest_hz)}."
    elif chosen.workers < largest.workers:
        gain = largest.highest_hz / chosen.highest_hz - 1
        raised = (
            f"would raise the highest rate by {percent(gain)}" if gain >= LITTLE else "would not raise the highest rate"
        )
        yield f"{largest.workers} threads {raised}{_as_the_same(gain, RATE_NEAR)}."
    if advice.kind is Kind.THREADS and chosen.workers > 1 and demands.gil_s and demands.wait_s:
        yield "Asyncio needs no choice of a size, if the waits of a request can be awaited."
    if chosen.limit == "gil" and chosen.processes < wish.cores:
        yield f"{_MORE_PROCESSES} one of the {wish.cores} cores."


def _share(rate_hz: float, highest_hz: float, wish: Wish) -> str:
    """Words on a rate as a share of the highest rate; empty if the user wishes a rate."""
    return f" ({percent(rate_hz / highest_hz)} of the highest rate)" if wish.rate_hz is None else ""


def _as_the_same(gain: float, near: float) -> str:
    """Words on a gain that is too small to advise a larger pool; empty for a larger gain, and for a gain under
    ``LITTLE``.

    ``near``: the share of the best rate from which a rate counts as equal to the best rate.
    """
    same = f"; a rate within {percent(1 - near)} of the best counts as equal"
    return same if LITTLE <= gain <= 1 / near - 1 else ""


def table(advice: Advice) -> Iterator[str]:
    """Lines of the table: a heading, then a line for each pool."""
    yield f"{'workers':>9}{'at most':>13}{'at':>12}{'p99':>11}"
    for size in advice.pools:
        mark = "  advised" if size.workers == advice.chosen.workers else ""
        p99 = _time(size.p99_s) if math.isfinite(size.p99_s) else "too slow"
        yield f"{size.workers:>9}{_rate(size.highest_hz):>13}{_rate(size.rate_hz):>12}{p99:>11}{mark}"


def measured_sentences(wish: Wish, found: Found) -> Iterator[str]:
    """The advice on a measured server, as lines of text. Warnings stand directly after the advice."""
    kind = "workers" if found.by_workers else "connections"
    rates = ", ".join(f"{level.at_once}: {_rate(level.throughput_hz)}" for level in found.levels)
    where = "one process" if found.processes == 1 else f"{found.processes} processes"
    yield f"Advice: {_advised(str(found), found.processes)}."
    every = [load for level in found.levels for load in level.rounds]
    if disturbed := sum(load.is_disturbed for load in every):
        yield f"Other programs took the cores in {disturbed} of {len(every)} windows: measure again when they are idle."
    if not found.by_workers:
        yield "The server ran with its own number of workers, which may be the limit: --start measures every pool."
    yield f"Highest measured rates in {where}, by {kind}: {rates}."
    within = f"with an error up to {percent(MEASURED_ERROR)}" if not disturbed else "with an unknown error"
    yield f"Expect up to {_rate(found.highest_hz)}, {within}, while the load runs on this machine."
    yield _limit(found)
    gain = found.best.throughput_hz / found.highest_hz - 1
    if gain >= LITTLE:
        yield f"With {found.best.at_once} {kind} the rate was {percent(gain)} higher{_as_the_same(gain, RATE_FAIR)}."
    yield from _measured_tails(wish, found)
    if not found.carried(wish):
        yield from _missed(wish, found.highest_hz, "was not kept")
    computes = "" if found.processor_s is None else f", and {_time(found.processor_s)} of processor time under load"
    yield f"A single request takes {_time(found.alone_s)}{computes}."


def _limit(found: Found) -> str:
    """Sentences on the limit of the rate, and on the effect of more workers."""
    most = found.best.at_once
    match found.limit:
        case Limit.CLIENT:
            return "Our client was at its limit: the server may do more than was measured."
        case Limit.CORES:
            return "The limit is the processor: all cores are busy, our load among them. More threads add nothing."
        case Limit.GIL:
            few = f"one thread computes at a time, so more than {found.workers} threads add little"
            return f"The limit is the GIL: {few}. {_MORE_PROCESSES} a core."
        case Limit.INSIDE:
            return _inside(found)
        case Limit.WORKERS:
            more = "More threads may raise the rate, and so may asyncio, if the waits of a request can be awaited"
            return f"The rate grew up to the largest number tried, {most}. {more}."
        case Limit.UNREAD:
            unread = "The server's processor time cannot be read here: the processor may be the limit, or a lock"
            return f"More concurrent requests add nothing. {unread}."


def _inside(found: Found) -> str:
    """Sentences on a limit inside the server: a lock, or a pool of connections. The measured rates cannot show which
    cause it is.
    """
    each = _time(1 / found.best.throughput_hz)
    pool = "" if found.by_workers else "its pool of workers, "
    if found.at_a_time < ONE_AT_A_TIME:
        what = f"The server serializes requests, {each} each: {pool}a lock, or one connection that all share"
    else:
        many = f"{found.at_a_time:.0f} requests at a time, {_time(found.at_a_time / found.best.throughput_hz)} each"
        what = f"The server admits {many}: {pool}a pool of connections, or a lock held for {each}"
    return f"{what}. The processor is idle meanwhile, and more threads only wait."


def _measured_tails(wish: Wish, found: Found) -> Iterator[str]:
    """A sentence for each measured p99, and a sentence on smaller pools with too long a p99."""
    for each in found.tails:
        share = _share(each.rate_hz, found.highest_hz, wish)
        pool = "" if each.workers == found.workers else f" with {each.workers} threads"
        yield f"At {_rate(each.rate_hz)}{share}{pool}, 99 of 100 replies came within {_time(each.p99_s)}."
    if any(each.workers < found.workers for each in found.tails):
        longer = percent(TAIL_NEAR - 1)
        yield f"{found.workers} threads are advised, since the p99 of smaller pools is over {longer} longer."


def measured_table(found: Found) -> Iterator[str]:
    """Lines of the table: a heading, then a line for each level."""
    kind = "workers" if found.by_workers else "connections"
    yield f"{kind:>12}{'at most':>13}{'of the best':>14}{'busy cores':>13}"
    for level in found.levels:
        mark = "  advised" if level.at_once == found.workers else ""
        share = percent(level.throughput_hz / found.best.throughput_hz)
        busy = "unread" if level.busy_cores is None else f"{level.busy_cores:.2f}"
        yield f"{level.at_once:>12}{_rate(level.throughput_hz):>13}{share:>14}{busy:>13}{mark}"


def pictured(demands: Demands, wish: Wish, advice: Advice) -> Picture:
    """Figure of a described service. Blocks for a second."""
    chosen = advice.chosen
    predicted_s = partial(tail, demands, chosen.workers, cores=wish.cores, processes=chosen.processes)
    rates_hz = [share * chosen.highest_hz for share in SHARES]
    shown = figure.Shown(
        advised=str(advice),
        pool=chosen.workers if chosen in advice.pools else None,
        at_once="workers of a process",
        how="predicted",
        highest_hz=[(size.workers, size.highest_hz) for size in advice.pools],
        p99_ms=[(rate_hz, 1000 * predicted_s(rate_hz)) for rate_hz in rates_hz],
        rate_hz=wish.rate_hz,
        target_p99_ms=None if wish.target_p99_s is None else 1000 * wish.target_p99_s,
    )
    return figure.picture("advice", f"How many workers? {str(advice).capitalize()}", shown)


def measured_picture(wish: Wish, found: Found) -> Picture:
    """Figure of a measured server."""
    shown = figure.Shown(
        advised=str(found),
        pool=found.workers if found.workers in {level.at_once for level in found.levels} else None,
        at_once="workers of a process" if found.by_workers else "connections",
        how="measured",
        highest_hz=[(level.at_once, level.throughput_hz) for level in found.levels],
        p99_ms=[(each.rate_hz, 1000 * each.p99_s) for each in found.tails if each.workers == found.workers],
        rate_hz=wish.rate_hz,
        target_p99_ms=None if wish.target_p99_s is None else 1000 * wish.target_p99_s,
    )
    return figure.picture("advice", f"How many workers? {str(found).capitalize()}", shown)


def _rate(rate_hz: float) -> str:
    return f"{number(rate_hz)}/s"


def _cores(cores: int) -> str:
    return "1 core" if cores == 1 else f"{cores} cores"


def _time(seconds: float) -> str:
    """Text of a time, such as ``84.0 µs``, ``12.0 ms``, ``1.50 s``."""
    if seconds < 0.001:
        return f"{number(seconds * 1e6)} µs"
    return f"{number(seconds * 1000)} ms" if seconds < 1 else f"{number(seconds)} s"
