"""Result of a comparison: one sentence, a small table, JSON, and an exit code for CI.

``show.sentences`` makes the sentence. The table and the verdict are computed from all blocks that passed the gates. A
gate is a check of a block's measurements.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from experiments.compare.sweep import COMPARED, is_running
from experiments.design.arms import Comparison
from experiments.design.factors import GRPC_GO
from experiments.design.limits import BLOCKS_MAX
from experiments.design.setting import Setting, setting
from experiments.design.sweep import BLOCKS_MIN
from experiments.judge import points
from experiments.judge.gates import block_refusals
from experiments.judge.ratios import is_robbed_block
from experiments.judge.stats import Estimate, blocks_needed
from experiments.judge.verdicts import Judgement
from experiments.results.environment import Environment
from experiments.results.files import write_at_once
from experiments.results.observed import ALL, needed
from experiments.services import OURS
from experiments.show.numbers import NOTHING, counted, has_interval, number, percent, time_unit
from experiments.show.sentences import ratio_sentence
from experiments.show.tables import NO_PAIR, NONE_LEFT_OUT, rounds_sentence
from stock_service.rpc.errors import UsageError

_LIMIT = re.compile(r"(slower|faster)\s*>\s*(\d+(?:\.\d+)?)\s*%")

STRONGER_LOAD = (
    "With fewer connections, or a stronger load (`--load c` on sockets, `--load h2load` on gRPC), the server may be "
    "the limit."
)

AGAIN = "another run may give a ratio outside the brackets. Measure again on an idle machine."

NOT_RECORDED: Mapping[str, Mapping[int, str]] = {
    "c": {2: "bytes on the wire", 6: "think times", 7: "its processor time"},
    "c-http": {2: "bytes on the wire", 6: "think times"},
    GRPC_GO: {2: "bytes on the wire", 6: "think times"},
    "h2load": {
        2: "bytes on the wire",
        4: "gRPC's status (a fault counts as an answer), and lost connections",
        6: "think times",
        7: "its processor time",
    },
}
"""For each load program, the gates that cannot check the program's load. A gate's number is mapped to the value that
the program does not record."""

LOST_SAID = 0.02
"""Limit on a side's share of lost slices. If a side has a larger share, a line below the table states the shares of
both sides."""

BEYOND_EXIT, UNDECIDED_EXIT = 4, 5
"""Exit codes of ``--fail-if``. ``BEYOND_EXIT``: the whole interval is beyond the limit. ``UNDECIDED_EXIT``: the limit
lies inside the interval, or there is no verdict."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Limit of ``--fail-if``: the largest share by which B may be slower than A, or by which B may be faster than A.

    ``ratio``: the limit as a ratio B ÷ A.
    """

    text: str
    ratio: float

    def is_beyond(self, at: Estimate) -> bool:
        """True if the whole interval is beyond the limit."""
        return at.low > self.ratio if self.ratio > 1 else at.high < self.ratio

    def is_inside(self, at: Estimate) -> bool:
        """True if the limit lies inside the interval. The comparison then does not show if B keeps the limit."""
        return at.low <= self.ratio <= at.high


@dataclass(frozen=True, slots=True)
class Side:
    """Numbers of one side, over all blocks that count."""

    server: str
    mean_us: float | None
    p50_us: float | None
    p99_us: float | None
    """99th percentile of response times. None if there are too few requests for this percentile. ``p50_us`` is None if
    there are too few requests for a median."""
    server_cpu_us: float | None
    """Processor time of the server for each request; None if unknown."""
    p99_needs: int | None
    """Number of requests that a 99th percentile needs. None if this side has enough requests, or no request."""
    requests: int
    errors: int
    lost_share: float
    """Share of this side's slices that were lost because of long pauses. No pair contains a lost slice."""
    load_limited: bool | None
    """True if the load was at its limit, so that client and server together determine the latency. None if the load's
    processor time is not recorded."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Content of the file of ``--json``. Ratios are B ÷ A of mean response times."""

    load: str
    """Load of both sides, such as ``lean`` or ``c connections=16``."""
    a: Side
    b: Side
    blocks: int
    seed: int
    """Seed of the random choices: the cores, the requests, and the order of starts and slices."""
    left_out: tuple[str, ...]
    """A sentence, with the reason, for each block that is left out of all numbers."""
    rounds: str
    """Sentence on the rounds that are left out of all numbers because other processes took the cores."""
    not_checked: tuple[str, ...]
    """Gates that could not check the load, each with the value that the load program does not record."""
    confidence: float
    ratio: float | None
    low: float | None
    high: float | None
    whole_ratio: float | None
    """Ratio of the means without trimming. ``whole_low`` and ``whole_high`` are the ends of this ratio's interval."""
    whole_low: float | None
    whole_high: float | None
    verdict: str | None
    """Verdict in words. None if the comparison did not end at a declared look, or if the load was the limit."""
    blocks_needed: int | None
    """Total number of blocks with which the comparison would be decided with 80 % power. None unless the verdict is
    INCONCLUSIVE."""
    refusals: tuple[str, ...]
    sentence: str
    environment: Environment


def parsed_limit(text: str) -> Limit:
    """Parses a limit such as ``slower>5%`` or ``faster>10%``. Raises UsageError."""
    match = _LIMIT.fullmatch(text.strip())
    share = float(match[2]) / 100 if match else math.nan
    if match is None or (match[1] == "faster" and share >= 1):
        raise UsageError("--fail-if", text, "slower>PERCENT% or faster>PERCENT%, such as 'slower>5%'")
    return Limit(text, 1 + share if match[1] == "slower" else 1 - share)


def outcome(judgement: Judgement, environment: Environment) -> Outcome:
    """Result of the blocks so far, with all numbers."""
    judged = judgement.judged.get(COMPARED)
    comparison = _comparison(judgement)
    used = [block for block in judgement.blocks if judged is not None and block.number in judged.log_ratios]
    sides = points.points(judgement.sweep, used)
    a, b = (_side(sides.get((arm, ALL)), arm.setting) for arm in (comparison.below, comparison.above))
    has_verdict = judged is not None and bool(judged.rulings)
    ratio, low, high = _numbers(None if judged is None else judged.typical)
    whole_ratio, whole_low, whole_high = _numbers(None if judged is None else judged.whole)
    lacking = NOT_RECORDED.get(comparison.below.setting.text("client"), {})
    return Outcome(
        load=_load(comparison.below.setting),
        a=a,
        b=b,
        blocks=len(judgement.blocks),
        seed=judgement.sweep.seed,
        left_out=tuple(_left_out(judgement)),
        rounds=rounds_sentence(judgement),
        not_checked=tuple(f"gate {gate}: {lacks}" for gate, lacks in lacking.items()),
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
    """Answer in a few sentences. The answer has no verdict if the comparison did not end at a declared look."""
    judged, blocks = judgement.judged.get(COMPARED), counted(len(judgement.blocks), "block")
    if judged is None:
        return " ".join((f"Nothing can be compared after {blocks}.", *_left_out(judgement)[:1]))
    comparison = judged.comparison
    names = ("B", "A") if comparison.kind == "ratio" else (_served(comparison.above.setting),) * 2
    text = ratio_sentence(judged, *names)
    if any(is_running(arm.setting) for arm in (comparison.above, comparison.below)):
        text = f"Of these two processes: {text}"
    if judged.load_share is not None:
        text += f" {STRONGER_LOAD}"
    elif not judged.rulings:
        needed = max(judgement.sweep.looks[0], BLOCKS_MIN)
        text += f" A verdict needs at least {needed} blocks; this run has {blocks}."
    disturbed = sum(is_robbed_block(judgement.sweep.limits, each) for each in judgement.blocks)
    if 2 * disturbed > len(judgement.blocks):
        text += f" Other programs disturbed {disturbed} of {blocks}: {AGAIN}"
    return text


def table(of: Outcome) -> Iterator[str]:
    """Lines of the table: a heading, a line for each side, then lines with further facts."""
    yield f"{'':2}{'mean':>10}{'p50':>10}{'p99':>10}{'server CPU':>13}   server"
    for name, side in (("A", of.a), ("B", of.b)):
        numbers = (f"{_time(each):>10}" for each in (side.mean_us, side.p50_us, side.p99_us))
        mark = " †" if side.load_limited else ""
        yield f"{name:2}{''.join(numbers)}{_time(side.server_cpu_us):>13}   {side.server}{mark}"
    interval = f"brackets are the {percent(of.confidence)} interval of the typical ratio, of this run alone"
    yield f"Load: {of.load}. Times are for each request. Verdict: {of.verdict or 'none'}; {interval}."
    for name, side in (("A", of.a), ("B", of.b)):
        if side.p99_needs is not None:
            yield f"{side.requests:,} replies are too few for {name}'s p99: some {side.p99_needs:,} are needed."
    if of.a.load_limited or of.b.load_limited:
        yield "† The load side was at its limit, or late: the times are of client and server together."
    if of.a.mean_us is not None and (of.a.lost_share > LOST_SAID or of.b.lost_share > LOST_SAID):
        yield f"Slices lost to long pauses: {percent(of.a.lost_share)} of A's, {percent(of.b.lost_share)} of B's."
    if of.left_out:
        yield f"{counted(len(of.left_out), 'block')} of {of.blocks} left out. {of.left_out[0]}"
    if of.rounds != NONE_LEFT_OUT:
        yield of.rounds
    if of.not_checked:
        yield f"Not checked, since {of.load.split()[0]} does not record these values: {'; '.join(of.not_checked)}."


def undecided(judgement: Judgement, limit: Limit | None) -> str:
    """Sentence that states with how many blocks the limit would be decided. Empty if no limit is given, if the limit is
    decided, or if there is no verdict."""
    judged = judgement.judged.get(COMPARED)
    if limit is None or judged is None or not judged.rulings or judged.refusals or not limit.is_inside(judged.typical):
        return ""
    logs = [value - math.log(limit.ratio) for value in judged.log_ratios.values()]
    blocks = blocks_needed(logs, 1, judgement.sweep.level, (1.0, 1.0))
    many = "over 1,000 blocks" if blocks is None else f"about {counted(blocks, 'block')}"
    most = (
        f", and a comparison has {BLOCKS_MAX} at most: measure on a quieter machine, or choose another limit"
        if (blocks or 1001) > BLOCKS_MAX
        else ""
    )
    again = "" if most else f": --blocks {blocks}"
    return f"{limit.text} is not decided: it lies inside the interval. In all {many} would decide it{again}{most}."


def exit_code(judgement: Judgement, limit: Limit | None) -> int:
    """Exit code for CI: 0 if B keeps the limit, or if no limit is given. Otherwise ``BEYOND_EXIT`` or
    ``UNDECIDED_EXIT``."""
    judged = judgement.judged.get(COMPARED)
    if limit is None:
        return 0
    if judged is None or not judged.rulings or judged.refusals or limit.is_inside(judged.typical):
        return UNDECIDED_EXIT
    return BEYOND_EXIT if limit.is_beyond(judged.typical) else 0


def save(of: Outcome, file: Path) -> None:
    """Writes the outcome as JSON. Raises OSError."""
    write_at_once(file, msgspec.json.format(msgspec.json.encode(of), indent=2) + b"\n")


def _side(point: points.Point | None, of: Setting) -> Side:
    """Numbers of one side. If no block counts, ``point`` is None, and the numbers are None or 0."""
    if point is None:
        return Side(_served(of), None, None, None, None, None, 0, 0, 1.0, None)
    count, p99_us = point.times.count, point.percentile_us(99)
    return Side(
        server=_served(of),
        mean_us=None if point.mean_us is None else point.mean_us.value,
        p50_us=point.percentile_us(50),
        p99_us=p99_us,
        server_cpu_us=None if point.server_cpu_us is None else point.server_cpu_us.value,
        p99_needs=needed(99, count, point.effective) if p99_us is None and count else None,
        requests=count,
        errors=point.errors,
        lost_share=point.lost_share,
        load_limited=None if 7 in NOT_RECORDED.get(of.text("client"), {}) else point.load_limited,
    )


def _served(of: Setting) -> str:
    """Words for a server: the command or address as given, or the words of its setting."""
    service = of.text("service")
    return str(setting(**dict(of.of("server")))) if service in OURS else service


def _load(of: Setting) -> str:
    """Words for a load: the client, then the factors that are not at their defaults. With ``--call`` the words name the
    method instead of the mix."""
    own = dict(of.of("load"))
    called = "/" in of.text("mix")
    words = (
        f"{'call' if name == 'mix' and called else name}={of.text(name)}"
        for name, _ in of.said()
        if name in own and name != "client"
    )
    return " ".join((of.text("client"), *words))


def _comparison(judgement: Judgement) -> Comparison:
    """Comparison of A and B in the plan of the sweep."""
    return next(each for each in judgement.sweep.comparisons if each.name == COMPARED)


def _left_out(judgement: Judgement) -> list[str]:
    """A sentence, with the reason, for each block that is left out of all numbers."""
    judged, comparison = judgement.judged.get(COMPARED), _comparison(judgement)
    found = []
    for block in judgement.blocks:
        if judged is not None and block.number in judged.log_ratios:
            continue
        refused = next(block_refusals(judgement.sweep, block, comparison), None)
        why = NO_PAIR if refused is None else f"gate {refused.gate}: {refused.said}"
        found.append(f"Block {block.number}: {why}.")
    return found


def _time(value_us: float | None) -> str:
    """Text of a time, such as ``72.4 µs``."""
    if value_us is None:
        return NOTHING
    unit, factor = time_unit((value_us,))
    return f"{number(value_us / factor)} {unit}"


def _numbers(of: Estimate | None) -> tuple[float | None, float | None, float | None]:
    """Value of an estimate and both ends of its interval. Missing numbers are None."""
    if of is None:
        return None, None, None
    return (of.value, of.low, of.high) if has_interval(of) else (of.value, None, None)
