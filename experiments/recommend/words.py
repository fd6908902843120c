"""An advice in plain words, a table of pools, and a figure. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from experiments.capacity import Demands, tail
from experiments.recommend.advice import BUSIEST, Advice, Kind, Size, Wish
from experiments.recommend.seen import Inferred, Load
from experiments.recommend.started import Checked
from experiments.show.figures import advice as figure
from experiments.show.figures.style import Picture
from experiments.show.numbers import number, percent

DESCRIBED_ERROR, DESCRIBED_TAIL_ERROR = 0.25, 0.25
"""How far the model's rates and tails are from a server's whose demands are known, in nine cases of ten.

In the recording of the study ``pool_size`` six rates of seven are within 10 %.
"""

UNSEEN_ERROR = 0.30
"""The same of a rate with more workers than were seen: processor time a request changes as a server gets busier."""

SHARES = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)
"""Of the highest rate, where the figure's tail has points."""

BESIDE = 0.9
"""Where the server reached less than this share of what is predicted, both are said."""

LITTLE = 0.01
"""A smaller gain is none."""

_LIMITS = {
    "gil": "the GIL: one thread computes at a time, so more threads add nothing",
    "cores": "the processor: all cores are busy",
    "lock": "the one lock that requests share",
    "workers": "the workers: each is busy with a request all the time",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What was measured for an advice; all of it empty where a service was described."""

    loads: Sequence[Load] = ()
    inferred: Inferred | None = None
    checked: Sequence[Checked] = ()
    tail: Load | None = None
    """An open loop."""
    tail_rate_hz: float = 0.0
    tail_predicted_s: float = 0.0
    before_check: int | None = None
    """The pool that was advised before the check; None where the check changed nothing."""


def sentences(demands: Demands, wish: Wish, advice: Advice, seen: Seen) -> Iterator[str]:
    """The advice, a line each."""
    yield f"Advice: {_advised(advice)}."
    yield from _needs(demands, seen)
    yield from _expected(wish, advice, seen)
    yield from _measured(seen)
    yield from _why(demands, wish, advice)
    for what, then in advice.changes:
        yield f"If {what}: {then}."


def _advised(advice: Advice) -> str:
    if advice.kind is Kind.ASYNCIO:
        return "asyncio, in one process. 64 threads are too few, as requests wait most of their time"
    if advice.kind is Kind.PROCESSES:
        return str(advice).replace(" of ", ", each with ")
    return f"{advice}, in one process"


def _needs(demands: Demands, seen: Seen) -> Iterator[str]:
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
    yield f"A request takes {' and '.join(parts)}{', as measured' if seen.loads else ''}."
    if seen.inferred is not None and seen.inferred.pool is not None and not seen.checked:  # whose pool is known
        many = "1 request" if seen.inferred.pool == 1 else f"{seen.inferred.pool} requests"
        yield f"The server works at about {many} at once, and no more: its pool, or a lock around the waiting."
    if seen.inferred is not None and seen.inferred.client_limited:
        yield "Our client was at its limit: the server may do more than was measured."


def _expected(wish: Wish, advice: Advice, seen: Seen) -> Iterator[str]:
    chosen = advice.chosen
    _, tail_error = errors(chosen, seen)
    yield _highest(wish, chosen, seen)
    if math.isfinite(chosen.p99_s):
        share = f" ({percent(chosen.rate_hz / chosen.highest_hz)} of that)" if wish.rate_hz is None else ""
        how = f"within {percent(tail_error)}" if tail_error <= 1 else "if it has the cores to itself"
        yield f"At {_rate(chosen.rate_hz)}{share}, 99 of 100 replies come within {_time(chosen.p99_s)}, {how}."
    if _is_unseen(chosen, seen):
        yield "So many workers were not seen yet: --start checks them."
    if not advice.carried:
        yield from _not_carried(wish, advice)
    if wish.target_p99_s is not None and advice.highest_in_target_hz is not None:
        target = _time(wish.target_p99_s)
        if advice.highest_in_target_hz:
            yield f"A p99 of {target} is kept up to about {_rate(advice.highest_in_target_hz)}."
        else:
            yield f"A p99 of {target} is kept at no rate."


def _highest(wish: Wish, of: Size, seen: Seen) -> str:
    """What to expect at most: a range, where the machine had other things to do as well."""
    limit, share = f"The limit is {_LIMITS[of.limit]}.", reached(of, seen)
    if share >= BESIDE:
        return f"Expect up to {_rate(of.highest_hz)}, within {percent(errors(of, seen)[0])}. {limit}"
    beside = f"{_rate(share * of.highest_hz)} beside our load and all else that runs here"
    return f"Expect up to {beside}, and {_rate(of.highest_hz)} where it has {_cores(wish.cores)} to itself. {limit}"


def reached(of: Size, seen: Seen) -> float:
    """Of the highest rate, what was measured: of that very size, where it was checked; 1 where nothing was measured."""
    own = [
        each.throughput_hz / of.highest_hz
        for each in seen.checked
        if (each.workers, each.processes) == (of.workers, of.processes)
    ]
    if own:
        return min(1.0, own[0])
    return 1.0 if seen.inferred is None else seen.inferred.reached


def _not_carried(wish: Wish, advice: Advice) -> Iterator[str]:
    chosen = advice.chosen
    if wish.rate_hz is not None and wish.rate_hz > BUSIEST * chosen.highest_hz:
        most = _rate(BUSIEST * chosen.highest_hz)
        yield f"This does not carry {_rate(wish.rate_hz)} on {_cores(wish.cores)}: {most} is as much as is safe."
    elif wish.target_p99_s is not None:
        yield f"This misses the wished p99 of {_time(wish.target_p99_s)}; nothing on {_cores(wish.cores)} keeps it."


def _measured(seen: Seen) -> Iterator[str]:
    if seen.inferred is not None and not seen.checked:
        yield f"Measured as it runs now: up to {_rate(seen.inferred.highest_hz)}."
    if seen.tail is not None:
        measured, predicted = _time(seen.tail.p99_s), _time(seen.tail_predicted_s)
        yield f"At {_rate(seen.tail_rate_hz)} a p99 of {measured} was measured, and {predicted} predicted."
    if seen.checked:
        sizes = ", ".join(f"{each.workers}: {_rate(each.throughput_hz)}" for each in seen.checked)
        where = "one process" if (processes := seen.checked[0].processes) == 1 else f"{processes} processes"
        yield f"Checked in {where}, by turns, workers and what they did at most: {sizes}."
    if seen.before_check is not None:
        yield f"The prediction was {seen.before_check} workers; the check found better."


def _why(demands: Demands, wish: Wish, advice: Advice) -> Iterator[str]:
    chosen, largest = advice.chosen, advice.pools[-1]
    if advice.kind is Kind.ASYNCIO:
        yield f"That asks for waits that can be awaited; 64 threads do up to {_rate(largest.highest_hz)}."
    elif chosen.workers < largest.workers:
        gain = largest.highest_hz / chosen.highest_hz - 1
        raised = f"would raise the highest rate by {percent(gain)}" if gain >= LITTLE else "would do no more"
        yield f"{largest.workers} threads {raised}."
    if advice.kind is Kind.THREADS and chosen.workers > 1 and demands.gil_s and demands.wait_s:
        yield "On asyncio no size has to be chosen, if what a request waits for can be awaited."
    if chosen.limit == "gil" and chosen.processes < wish.cores:
        yield f"For more, start more processes: each has a GIL of its own, and needs one of the {wish.cores} cores."


def table(advice: Advice) -> Iterator[str]:
    """Every pool, a line each, under a heading."""
    yield f"{'workers':>9}{'at most':>13}{'at':>12}{'p99':>11}"
    for size in advice.pools:
        mark = "  advised" if size.workers == advice.chosen.workers else ""
        p99 = _time(size.p99_s) if math.isfinite(size.p99_s) else "too slow"
        yield f"{size.workers:>9}{_rate(size.highest_hz):>13}{_rate(size.rate_hz):>12}{p99:>11}{mark}"


def errors(of: Size, seen: Seen) -> tuple[float, float]:
    """How far off a size's rate and tail may be, as shares: what was seen, and at least the model's own."""
    error, tail_error = DESCRIBED_ERROR, DESCRIBED_TAIL_ERROR
    if seen.inferred is not None:
        error = max(error, round(seen.inferred.error, 2), UNSEEN_ERROR if _is_unseen(of, seen) else 0.0)
    if seen.tail is not None and math.isfinite(seen.tail_predicted_s):
        ratio = seen.tail_predicted_s / seen.tail.p99_s
        tail_error = max(tail_error, round(max(ratio, 1 / ratio) - 1, 2))
    return error, tail_error


def _is_unseen(of: Size, seen: Seen) -> bool:
    """Whether it has more workers than the server that was measured, so that its processor was never as busy."""
    pool = None if seen.inferred is None else seen.inferred.pool
    return pool is not None and of.workers > pool and of.workers not in {each.workers for each in seen.checked}


def pictured(demands: Demands, wish: Wish, advice: Advice, seen: Seen) -> Picture:
    """The figure. Computes for a second."""
    chosen = advice.chosen
    rates_hz = [share * chosen.highest_hz for share in SHARES]
    shown = figure.Shown(
        advised=str(advice),
        pool=chosen.workers if chosen in advice.pools else None,
        highest_hz=[(size.workers, size.highest_hz) for size in advice.pools],
        measured_hz=_measured_hz(advice, seen),
        p99_ms=[(rate_hz, 1000 * _tail_s(demands, wish, chosen, rate_hz)) for rate_hz in rates_hz],
        measured_p99_ms=_measured_p99_ms(advice, seen),
        rate_hz=wish.rate_hz,
        target_p99_ms=None if wish.target_p99_s is None else 1000 * wish.target_p99_s,
    )
    return figure.picture("advice", f"How many workers? {str(advice).capitalize()}", shown)


def _measured_hz(advice: Advice, seen: Seen) -> Sequence[tuple[float, float]]:
    """By workers; none where they are those of one process and several are advised."""
    if seen.checked:
        of = [each for each in seen.checked if each.processes == advice.chosen.processes]
        return [(each.workers, each.throughput_hz) for each in of]
    if advice.chosen.processes > 1 or seen.inferred is None:
        return []
    return [] if seen.inferred.pool is None else [(seen.inferred.pool, seen.inferred.highest_hz)]


def _measured_p99_ms(advice: Advice, seen: Seen) -> Sequence[tuple[float, float]]:
    """By rate; none where another server was measured than the advised one."""
    if seen.tail is None or not seen.checked or advice.kind is not Kind.THREADS:
        return []
    return [(seen.tail_rate_hz, 1000 * seen.tail.p99_s)]


def _tail_s(demands: Demands, wish: Wish, of: Size, rate_hz: float) -> float:
    return tail(demands, of.workers, rate_hz, cores=wish.cores, processes=of.processes)


def _rate(rate_hz: float) -> str:
    return f"{number(rate_hz)}/s"


def _cores(cores: int) -> str:
    return "1 core" if cores == 1 else f"{cores} cores"


def _time(seconds: float) -> str:
    """``84.0 µs``, ``12.0 ms``, ``1.50 s``."""
    if seconds < 0.001:
        return f"{number(seconds * 1e6)} µs"
    return f"{number(seconds * 1000)} ms" if seconds < 1 else f"{number(seconds)} s"
