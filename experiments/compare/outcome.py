"""What a comparison came to: one sentence, a small table, JSON, and the exit code for somebody's CI."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from experiments.compare.sweep import COMPARED, is_running
from experiments.design.sweep import BLOCKS_MIN
from experiments.judge import points
from experiments.judge.gates import block_refusals
from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.results.environment import Environment
from experiments.results.files import write_at_once
from experiments.results.observed import ALL
from experiments.services import SERVICES
from experiments.show.numbers import has_interval, ratio_words
from stock_service.rpc.errors import UsageError

_LIMIT = re.compile(r"(slower|faster)\s*>\s*(\d+(?:\.\d+)?)\s*%")

LOST_SAID = 0.02
"""Lost slices are said over this share."""

BEYOND_EXIT, UNDECIDED_EXIT = 4, 5
"""For ``--fail-if``: the whole interval is beyond the limit; the limit lies inside it after the last look."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What must not be: B slower, or faster, than A by more than so much. ``ratio`` is that of B ÷ A."""

    text: str
    ratio: float

    def is_beyond(self, at: Estimate) -> bool:
        """Whether the whole interval is beyond it."""
        return at.low > self.ratio if self.ratio > 1 else at.high < self.ratio

    def is_inside(self, at: Estimate) -> bool:
        """Whether the interval holds it, so that it is not known."""
        return at.low <= self.ratio <= at.high


@dataclass(frozen=True, slots=True)
class Side:
    """One side, over all blocks."""

    server: str
    mean_us: float | None
    p50_us: float | None
    p99_us: float | None
    """None where the requests do not carry it."""
    server_cpu_us: float | None
    """For each request; None for a process that was not started here."""
    requests: int
    errors: int
    lost_share: float
    """Of its slices, those in which a pause outlasted the slice; they are in no pair."""
    load_limited: bool
    """Its latency is that of client and server together."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What ``--json`` writes. Ratios are B ÷ A of mean response times."""

    a: Side
    b: Side
    blocks: int
    confidence: float
    ratio: float | None
    low: float | None
    high: float | None
    whole_ratio: float | None
    """Of whole means, nothing trimmed, as are the two that follow."""
    whole_low: float | None
    whole_high: float | None
    verdict: str | None
    """None: it was interrupted, or stands at no declared look."""
    blocks_needed: int | None
    """Where the verdict is INCONCLUSIVE: blocks in all that decide with 80 % power."""
    refusals: tuple[str, ...]
    sentence: str
    environment: Environment


def parsed_limit(text: str) -> Limit:
    """``slower>5%`` or ``faster>10%``. Raises UsageError."""
    match = _LIMIT.fullmatch(text.strip())
    share = float(match[2]) / 100 if match else math.nan
    if match is None or (match[1] == "faster" and share >= 1):
        raise UsageError("--fail-if", text, "slower>PERCENT% or faster>PERCENT%, such as 'slower>5%'")
    return Limit(text, 1 + share if match[1] == "slower" else 1 - share)


def outcome(judgement: Judgement, environment: Environment) -> Outcome:
    """What the blocks so far say."""
    judged = judgement.judged.get(COMPARED)
    comparison = next(each for each in judgement.sweep.comparisons if each.name == COMPARED)
    sides = points.points(judgement.sweep, judgement.blocks)
    a, b = (
        _side(sides.get((arm, ALL)), arm.setting.text("service"), str(arm.setting))
        for arm in (comparison.below, comparison.above)
    )
    has_verdict = judged is not None and bool(judged.rulings)
    ratio, low, high = _numbers(None if judged is None else judged.typical)
    whole_ratio, whole_low, whole_high = _numbers(None if judged is None else judged.whole)
    return Outcome(
        a=a,
        b=b,
        blocks=len(judgement.blocks),
        confidence=judgement.confidence,
        ratio=ratio,
        low=low,
        high=high,
        whole_ratio=whole_ratio,
        whole_low=whole_low,
        whole_high=whole_high,
        verdict=judged.verdict.value if judged is not None and has_verdict else None,
        blocks_needed=judged.rulings[0].blocks_needed if judged is not None and has_verdict else None,
        refusals=tuple(f"gate {each.gate}: {each.said}" for each in (judged.refusals if judged else ())),
        sentence=sentence(judgement),
        environment=environment,
    )


def sentence(judgement: Judgement) -> str:
    """The answer in one sentence; without verdict words where it stands at no declared look."""
    judged = judgement.judged.get(COMPARED)
    if judged is None:
        return _nothing(judgement)
    comparison = judged.comparison
    processes = any(is_running(arm.setting) for arm in (comparison.above, comparison.below))
    these = "Of these two processes, B" if processes else "B"
    shown = _shown(judged.typical)
    if not judged.rulings:
        needed = max(judgement.sweep.looks[0], BLOCKS_MIN)
        return f"No verdict: {len(judgement.blocks)} of at least {needed} blocks. So far B {shown}."
    match judged.verdict:
        case Verdict.FASTER | Verdict.SLOWER:
            less = f", {judged.verdict.value.lower()} by less than 5 %" if judged.by_less_than_5 else ""
            text = f"{these} {shown}{less}."
        case Verdict.EQUIVALENT:
            text = f"{these} answers in the same time as A, to within 5 %: it {shown}."
        case _:
            text = f"Undecided: {'of these two processes, ' if processes else ''}B {shown}. {_why(judged)}"
    if judged.typical_is_not_whole:
        text += f" With every pause counted, B {_shown(judged.whole)}."
    return text


def table(of: Outcome) -> Iterator[str]:
    """Both sides, a line each, under a heading."""
    yield f"{'':2}{'mean':>10}{'p50':>10}{'p99':>10}{'server CPU':>13}   server"
    for name, side in (("A", of.a), ("B", of.b)):
        numbers = (f"{_us(each):>10}" for each in (side.mean_us, side.p50_us, side.p99_us))
        mark = " †" if side.load_limited else ""
        yield f"{name:2}{''.join(numbers)}{_us(side.server_cpu_us):>13}   {side.server}{mark}"
    if of.a.load_limited or of.b.load_limited:
        yield "† The load side was at its limit, or late: this is the time of client and server together."
    if of.a.lost_share > LOST_SAID or of.b.lost_share > LOST_SAID:
        yield f"Slices lost to long pauses: {of.a.lost_share:.0%} of A's, {of.b.lost_share:.0%} of B's."
    yield "Times are for each request. The verdict is on the mean alone."


def exit_code(judgement: Judgement, limit: Limit | None) -> int:
    """For somebody's CI: 0 where the limit is kept, or none is given."""
    judged = judgement.judged.get(COMPARED)
    if limit is None:
        return 0
    if judged is None or not judged.rulings or judged.refusals or limit.is_inside(judged.typical):
        return UNDECIDED_EXIT
    return BEYOND_EXIT if limit.is_beyond(judged.typical) else 0


def save(of: Outcome, file: Path) -> None:
    """Writes it as JSON. Raises OSError."""
    write_at_once(file, msgspec.json.format(msgspec.json.encode(of), indent=2) + b"\n")


def _side(point: points.Point | None, service: str, server: str) -> Side:
    name = server if service in ("stock", *SERVICES) else service
    if point is None:
        return Side(name, None, None, None, None, 0, 0, 1.0, False)
    return Side(
        server=name,
        mean_us=None if point.mean_us is None else point.mean_us.value,
        p50_us=point.percentile_us(50),
        p99_us=point.percentile_us(99),
        server_cpu_us=None if point.server_cpu_us is None else point.server_cpu_us.value,
        requests=point.times.count,
        errors=point.errors,
        lost_share=point.lost_share,
        load_limited=point.load_limited,
    )


def _shown(of: Estimate) -> str:
    """``answers in 0.29 of A's time, 0.28 to 0.30``, or ``takes 2.40 times as long as A, 2.17 to 2.65``."""
    value, ends = ratio_words(of)
    around = f", {ends}" if has_interval(of) else ""
    return f"answers in {value} of A's time{around}" if of.value < 1 else f"takes {value} times as long as A{around}"


def _nothing(judgement: Judgement) -> str:
    """Why no block has a value."""
    comparison = next(each for each in judgement.sweep.comparisons if each.name == COMPARED)
    refused = [each for block in judgement.blocks for each in block_refusals(judgement.sweep, block, comparison)]
    number = len(judgement.blocks)
    blocks = "1 block" if number == 1 else f"{number} blocks"
    if not refused:
        return f"Nothing to compare after {blocks}: no request was answered in both."
    return f"Nothing to compare after {blocks}. Gate {refused[0].gate} left them out: {refused[0].said}."


def _why(judged: Judged) -> str:
    if judged.refusals:
        return f"Gate {judged.refusals[0].gate} keeps the verdict back: {judged.refusals[0].said}."
    needed = judged.rulings[0].blocks_needed
    return (
        "No number of blocks up to 1000 would decide." if needed is None else f"{needed} blocks decide with 80 % power."
    )


def _us(value: float | None) -> str:
    if value is None:
        return "—"
    return f"{value:.1f} µs" if value < 100 else f"{value:.0f} µs" if value < 10_000 else f"{value / 1000:.1f} ms"


def _numbers(of: Estimate | None) -> tuple[float | None, float | None, float | None]:
    """Its value and ends; None for what is not there, or not finite, which JSON does not have."""
    if of is None:
        return None, None, None
    low, high = (end if math.isfinite(end) else None for end in (of.low, of.high))
    return of.value, low, high
