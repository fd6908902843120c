"""Rates and clocks of each arm over the blocks, and texts with these values. Pure functions.

An arm is one server under one load. An arm has two rates: the rate of each client, and the rate of all clients
together. The clocks (wall clock, and processor time of client and server) give the cost of a reply. Each quantity is
computed for each block. The interval of a quantity is Student's t interval over the logarithms of the blocks' values,
so that the interval lies above 0. Blocks that a gate refuses are left out. Rounds in which other programs took the
cores are left out too, except from the rate of each client. In a block of cold runs a quantity is the mean over the
block's runs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import harmonic_mean

import numpy as np

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.judge import gates, ratios
from experiments.judge.cold import ColdJudged
from experiments.judge.points import CONFIDENCE
from experiments.judge.stats import Estimate, geometric_interval
from experiments.judge.verdicts import Judgement
from experiments.kinds.cold import ColdRow
from experiments.results.observed import ALL, Block
from experiments.show.content import Seen
from experiments.show.numbers import value_words
from experiments.show.sentences import ratio_sentence
from experiments.studies.greeter.design import CALLS, LABELS, ONE, PEER

NOT_MEASURED = f"Not measured: the peer {PEER} was not built. `make peers` builds it."


def brief(judgement: Judgement, name: str, above: str, below: str) -> str:
    """Sentence on a comparison, or on the reason why the comparison has no value. ``above``, ``below``: texts for the
    two arms."""
    judged = judgement.judged.get(name)
    if judged is not None:
        return ratio_sentence(judged, above, below)
    declared = any(each.name == name for each in judgement.sweep.comparisons)
    return "No block passed the gates; the report says why." if declared else NOT_MEASURED


def milliseconds(of: Estimate) -> str:
    """Text in milliseconds of a time in µs: ``0.105 ms (0.102 to 0.108)``."""
    return value_words(of.over(1000), " ms")


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates and times of an arm. Rates are in replies a second; times are in µs for each reply."""

    load_limited: bool
    """True where the clients took over 80 % of their core. Client and server together then determine rates and
    times."""
    total_hz: Estimate
    """Replies a second of the server to all clients together."""
    client_hz: Estimate
    """Mean, over the clients, of the replies a second to one client, in the client's own time."""
    response_us: Estimate
    """Mean time of a call."""
    wall_us: Estimate
    """Wall-clock time for each reply of the server: 1 ÷ rate of all clients together."""
    client_cpu_us: Estimate
    """Processor time of the clients' program for each reply, with all threads."""
    server_cpu_us: Estimate
    """Processor time of the server for each reply, with all threads."""
    wall_over_cpu: Estimate
    """Ratio: wall-clock time ÷ processor time of the clients' program."""
    rate_times_response: Estimate
    """Rate of the server × mean time of a call: by Little's law the mean number of calls under way."""


@dataclass(frozen=True, slots=True)
class FromCold:
    """Times of cold runs in µs. A cold run is a fresh client program with a fresh connection."""

    connect_us: Estimate
    """Time of connecting."""
    first_us: Estimate
    """Time of the first call, without connecting."""
    as_timed_us: Estimate
    """Time of connecting and of the first call together. The original's program measured this time, since the program
    connects within its first call."""
    rest_us: Estimate
    """Mean time of the other calls of a run."""
    first_over_rest: Estimate
    """Ratio: time of the first call ÷ mean time of the other calls."""
    as_timed_over_rest: Estimate
    """Ratio: time of connecting and of the first call together ÷ mean time of the other calls."""


def rates(judgement: Judgement, of: Setting) -> Rates | None:
    """Rates of an arm in the blocks that no gate refuses. None without such a block, or where the clients do not report
    their clocks."""
    sweep, arm = judgement.sweep, Arm(of)
    blocks = [
        block for block in judgement.blocks if arm in sweep.arms and not any(gates.arm_refusals(sweep, block, arm))
    ]
    if not blocks:
        return None
    place = sweep.arms.index(arm)
    sums = [_sums(judgement, block, place) for block in blocks]

    def per(above: str, below: str, unit: float = 1.0) -> Estimate | None:
        return _over_blocks(each[above] / each[below] / unit if each[below] else None for each in sums)

    found = (
        per("replies", "wall_ns", 1e-9),
        _over_blocks(_mean_rate_hz(block, place) for block in blocks),
        _over_blocks(ratios.arm_mean_us(sweep, block, place, ALL) for block in blocks),
        per("wall_ns", "replies", 1000),
        per("cpu_ns", "replies", 1000),
        _over_blocks(ratios.arm_cpu_us(sweep, block, place) for block in blocks),
        per("wall_ns", "cpu_ns"),
        per("response_ns", "wall_ns"),
    )
    estimates = [each for each in found if each is not None]
    if len(estimates) < len(found):
        return None
    return Rates(gates.is_load_limited(sweep, blocks, arm), *estimates)


def _sums(judgement: Judgement, block: Block, place: int) -> dict[str, float]:
    """Sums over an arm's windows in a block, without the windows that pairs leave out: number of replies, response
    times, wall-clock time, and the clients' processor time. Times are in ns."""
    slices = block.slices
    own = ratios.used(judgement.sweep.limits, block) & (ratios.column(slices.arm) == place)
    columns = {"replies": slices.counts[ALL], "response_ns": slices.sums_ns[ALL]}
    columns |= {"wall_ns": slices.active_ns, "cpu_ns": slices.client_cpu_ns}
    return {name: float(np.asarray(column)[own].sum()) for name, column in columns.items()}


def _mean_rate_hz(block: Block, place: int) -> float | None:
    """Mean rate of the clients over the windows of an arm in a block. None without a window.

    Every client makes the same number of calls in every window. So the mean (all calls ÷ all time) is the harmonic mean
    of the clients' rates.
    """
    rates_hz = [hz for window in block.arms[place].windows for hz in window.clients_hz]
    return harmonic_mean(rates_hz) if rates_hz else None


def by_language(judgement: Judgement, settings: Mapping[str, Setting]) -> dict[str, Rates]:
    """Rates of each language's setting, by the language's name in texts. Languages that were not measured are left
    out."""
    found = ((LABELS[language], rates(judgement, of)) for language, of in settings.items())
    return {name: each for name, each in found if each is not None}


def cold_runs(seen: Seen) -> ColdJudged:
    """Judged cold runs, without rows where no cold run was measured."""
    return seen.of(ColdJudged) or ColdJudged()


def from_cold(rows: Sequence[ColdRow], of: Setting) -> FromCold | None:
    """Times of a setting's cold runs of 1,000 calls. None where these runs were not measured."""
    own = [row for row in rows if row.cell.setting == of and row.cell.calls == CALLS]

    def over(value: Callable[[ColdRow], float]) -> Estimate | None:
        return _over_blocks(map(value, own))

    found = (
        over(lambda row: row.connect_us),
        over(lambda row: row.first_call_us),
        over(lambda row: row.connect_us + row.first_call_us),
        over(lambda row: row.rest_us_mean or 0.0),
        over(lambda row: row.first_call_us / row.rest_us_mean if row.rest_us_mean else 0.0),
        over(lambda row: (row.connect_us + row.first_call_us) / row.rest_us_mean if row.rest_us_mean else 0.0),
    )
    estimates = [each for each in found if each is not None]
    return FromCold(*estimates) if len(estimates) == len(found) else None


def all_from_cold(seen: Seen) -> dict[str, FromCold]:
    """Times of cold runs, by the language's name in texts. Languages that were not measured are left out."""
    found = ((name, from_cold(cold_runs(seen).rows, ONE[language])) for language, name in LABELS.items())
    return {name: each for name, each in found if each is not None}


def _over_blocks(values: Iterable[float | None]) -> Estimate | None:
    return geometric_interval(values, CONFIDENCE)
