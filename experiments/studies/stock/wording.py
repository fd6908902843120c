"""Sentences made from judged comparisons: each says what its verdict allows, and no more.

The verdict chooses the sentence, and the numbers fill it. Where there is no verdict, the numbers stand without one of
its words, and why. Left out: which sentences are said, and in what order.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.design.arms import Arm, Comparison
from experiments.design.sweep import BLOCKS_MAX
from experiments.judge import ratios
from experiments.judge.gates import NAMES, Refusal, arm_refusals, block_refusals, is_load_limited
from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judged, Judgement, Ruling, Verdict
from experiments.results.observed import ALL

LABELS = {"grpc": "gRPC"}
"""Transports as people write them, where that is not their name."""

SMALL_EFFECTS = 20
"""The gate that keeps back a verdict on effects smaller than equal arms showed: of one ruling, not of all."""


@dataclass(frozen=True, slots=True)
class Words:
    """What each verdict on a ratio means; ``{ratio}`` is its place, and the interval comes behind in brackets."""

    faster: str
    slower: str
    equivalent: str
    whether: str
    """What is not decided: a clause that begins with ``whether``."""


def words(where: str, above: str, below: str) -> Words:
    """The plain ones: ``With 1 client a Trade takes 1.10 times as long as a Lookup (1.08 to 1.12)``."""
    return Words(
        faster=f"{where} {above} takes {{ratio}} of the time of {below}",
        slower=f"{where} {above} takes {{ratio}} times as long as {below}",
        equivalent=f"{where} {above} and {below} take the same time to within 5 %: ratio {{ratio}}",
        whether=f"whether {where[:1].lower()}{where[1:]} {above} or {below} takes less time",
    )


def told(judgement: Judgement, name: str, said: Words) -> str:
    """One comparison of kind ``ratio``, as its verdict has it."""
    judged = judgement.judged.get(name)
    if judged is None:
        return f"Not known: {said.whether}. {absence(judgement, name)}"
    if not judged.rulings:
        return without_verdict(judgement, judged)
    ruling, value, interval = judged.rulings[0], value_text(judged), interval_text(judged)
    match ruling.verdict:
        case Verdict.FASTER:
            little = ", less by under 5 %" if is_small(judged, ruling) else ""
            return f"{said.faster.format(ratio=value)} ({interval}){little}."
        case Verdict.SLOWER:
            little = ", longer by under 5 %" if is_small(judged, ruling) else ""
            return f"{said.slower.format(ratio=value)} ({interval}){little}."
        case Verdict.EQUIVALENT:
            return f"{said.equivalent.format(ratio=value)} ({interval})."
        case _:
            return f"Undecided: {said.whether}. The ratio is {value} ({interval}). {why(judged, ruling)}"


def grown(judgement: Judgement, name: str, where: str) -> str:
    """Growth with the clients: against the ratio of the clients, and where the comparison asks it, against 1."""
    judged = judgement.judged.get(name)
    if judged is None:
        return f"Not known: how the time of a Lookup grows {where}. {absence(judgement, name)}"
    if not judged.rulings:
        return without_verdict(judgement, judged)
    comparison = judged.comparison
    most, few = (arm.connections for arm in (comparison.above, comparison.below))
    head = (
        f"{where[:1].upper()}{where[1:]} a Lookup takes {value_text(judged)} times as long with {clients(most)} as "
        f"with {few} ({interval_text(judged)})"
    )
    decided = _growth(judged)
    return " ".join((f"{head}: {decided}." if decided else f"{head}.", *_open_growth(judged)))


def _growth(judged: Judged) -> str:
    """What is decided of it, in a clause; empty where nothing is."""
    verdicts = {ruling.verdict for ruling in judged.rulings}
    times = f"{times_text(judged.comparison.clients_ratio)} times"
    against_clients = judged.rulings[-1]
    little = ", by under 5 %" if is_small(judged, against_clients) else ""
    if Verdict.FLAT in verdicts:
        return "the same to within 5 %"
    if Verdict.FALLS in verdicts:
        return "less time than with fewer"
    longer = "longer" if Verdict.GROWS in verdicts else ""
    match against_clients.verdict:
        case Verdict.SUBLINEAR:
            return f"{longer}, but less than {times}{little}" if longer else f"less than {times}{little}"
        case Verdict.SUPERLINEAR:
            return f"more than {times}{little}"
        case Verdict.PROPORTIONAL:
            return "in proportion, to within 5 %"
        case _:
            return longer


def _open_growth(judged: Judged) -> Iterable[str]:
    """What is not decided of it, a sentence for each test."""
    times = f"{times_text(judged.comparison.clients_ratio)} times"
    for ruling in judged.rulings:
        if ruling.verdict is Verdict.INCONCLUSIVE:
            what = "it takes longer at all" if ruling.against == 1 else f"it is less than {times}, or more"
            yield f"Undecided: whether {what}. {why(judged, ruling)}"


def why(judged: Judged, ruling: Ruling) -> str:
    """Why a ruling is INCONCLUSIVE, in a sentence or two: what a gate found, or the blocks that would decide."""
    left_out = f" {_left_out(judged)}" if judged.dropped else ""
    refusal = keeps_back(judged, ruling)
    if refusal is not None:
        return f"Gate {refusal.gate} keeps the verdict back ({NAMES[refusal.gate]}): {refusal.said}.{left_out}"
    have, needed = blocks(judged.typical.n), ruling.blocks_needed
    if needed is None:
        return f"{have} are too few; over 1000 would be needed, or how many is unknown.{left_out}"
    return f"{have} are too few; about {needed} decide with 80 % power.{left_out}"


def keeps_back(judged: Judged, ruling: Ruling) -> Refusal | None:
    """The gate's refusal that made this ruling INCONCLUSIVE; None where it is only short of blocks."""
    if ruling.verdict is not Verdict.INCONCLUSIVE:
        return None
    own = (each for each in judged.refusals if each.gate != SMALL_EFFECTS or ruling.blocks_needed is None)
    return next(own, None)


def absence(judgement: Judgement, name: str) -> str:
    """Why a comparison has no value, in a sentence."""
    comparison = declared(judgement, name)
    if comparison is None:
        return "This sweep has not the numbers of clients that it needs."
    if not judgement.blocks:
        return "No block has been run."
    refused = [each for block in judgement.blocks for each in block_refusals(judgement.sweep, block, comparison)]
    if refused:
        return f"Gate {refused[0].gate} left out its blocks ({NAMES[refused[0].gate]}): {refused[0].said}."
    return "No two slices of it were answered side by side."


def without_verdict(judgement: Judgement, judged: Judged) -> str:
    """The numbers of a comparison, and why there is no verdict."""
    return f"{judged.comparison.title}: {in_brackets(judged)} so far. {unfinished(judgement)}"


def unfinished(judgement: Judgement) -> str:
    """Why a sweep has no verdicts, in a sentence."""
    done, looks = len(judgement.blocks), judgement.sweep.looks
    if not judgement.sweep.has_verdicts:
        return f"No verdict: {blocks(done)}, and fewer than 6 decide nothing."
    following = next((look for look in looks if look > done), None)
    if following is None:
        return f"No verdict: {blocks(done)}, and no look was declared there."
    return f"No verdict yet: {done} of {following} blocks."


def to_decide(judgement: Judgement, names: Sequence[str]) -> str | None:
    """The command that would decide these comparisons, or that this machine is too noisy; None if all are decided."""
    found = [judgement.judged.get(name) for name in names]
    command = f"python -m experiments run {judgement.sweep.part}"
    if all(each is not None and each.decided for each in found):
        return None
    if judgement.look is None:
        goes_on = judgement.sweep.has_verdicts and 0 < len(judgement.blocks) < judgement.sweep.looks[-1]
        return f"{command} --out FOLDER --resume" if goes_on else command
    judged = [each for each in found if each is not None]
    pending = [(one, ruling) for one in judged for ruling in one.rulings if ruling.verdict is Verdict.INCONCLUSIVE]
    if len(judged) < len(found) or any(keeps_back(*each) for each in pending):
        return f"{command} (anew: more blocks do not mend what a gate found)"
    needed = [ruling.blocks_needed + len(one.dropped) for one, ruling in pending if ruling.blocks_needed is not None]
    if len(needed) == len(pending) and max(needed) <= BLOCKS_MAX:
        return f"{command} --blocks {max(needed)}"
    many = f"some {max(needed)}" if len(needed) == len(pending) else "too many"
    return f"This machine is too noisy now: {many} blocks would decide, {BLOCKS_MAX} are the most. Later: {command}"


def limits_note(judgement: Judgement, judged: Iterable[Judged]) -> tuple[str, ...]:
    """A sentence for each of their arms whose latency is that of client and server together."""
    arms = dict.fromkeys(arm for one in judged for arm in (one.comparison.below, one.comparison.above))
    limited = [arm for arm in arms if is_load_limited(judgement.sweep, judgement.blocks, arm)]
    return tuple(
        f"With {clients(arm.connections)} on {label(arm)} ({arm.setting['mix']}) the clients took over 80 % of their "
        "core: it is the latency of client and server together."
        for arm in limited
    )


def mean_us(judgement: Judgement, arm: Arm, request: str = ALL) -> float | None:
    """The mean over blocks of an arm's mean latency, as figures have it; None where it has none, or a gate objects."""
    sweep = judgement.sweep
    if arm not in sweep.arms or any(refusal for each in judgement.blocks for refusal in arm_refusals(sweep, each, arm)):
        return None
    means = [ratios.arm_mean_us(sweep, block, sweep.arms.index(arm), request) for block in judgement.blocks]
    seen = [mean for mean in means if mean is not None]
    return sum(seen) / len(seen) if seen else None


def declared(judgement: Judgement, name: str) -> Comparison | None:
    """The comparison of this name, whether or not it has a value."""
    return next((each for each in judgement.sweep.comparisons if each.name == name), None)


def found(judgement: Judgement, *names: str) -> tuple[Judged, ...]:
    """Those of the comparisons that have a value."""
    return tuple(judgement.judged[name] for name in names if name in judgement.judged)


def is_small(judged: Judged, ruling: Ruling) -> bool:
    """Whether its whole interval is within 5 % of what it is tested against."""
    low, high = judged.equivalent
    return low * ruling.against < judged.typical.low and judged.typical.high < high * ruling.against


def in_brackets(judged: Judged) -> str:
    """``0.29 (0.28 to 0.30)``."""
    return f"{value_text(judged)} ({interval_text(judged)})"


def value_text(judged: Judged) -> str:
    """``0.29``."""
    return ratio(judged.typical.value, _bounds(judged), (2, 3))


def interval_text(judged: Judged) -> str:
    """``0.28 to 0.30``; with the ratio of whole means where the two intervals do not meet."""
    typical, bounds = _ends(judged.typical, _bounds(judged)), _bounds(judged)
    if not judged.typical_is_not_whole:
        return typical
    return f"{typical}; of whole means {ratio(judged.whole.value, bounds)}, {_ends(judged.whole, bounds)}"


def brief(judgement: Judgement, name: str) -> str:
    """For lists: the comparison's title, its numbers and its verdicts, and why one is INCONCLUSIVE."""
    judged = judgement.judged.get(name)
    if judged is None:
        return absence(judgement, name)
    if not judged.rulings:
        return without_verdict(judgement, judged)
    verdicts = ", ".join(
        ruling.verdict.value + " by less than 5 %" * (judged.by_less_than_5 and ruling.against == 1)
        for ruling in judged.rulings
    )
    pending = next((ruling for ruling in judged.rulings if ruling.verdict is Verdict.INCONCLUSIVE), None)
    reason = "" if pending is None else f" {why(judged, pending)}"
    return f"{judged.comparison.title}: {in_brackets(judged)}, {verdicts}.{reason}"


def ratio(value: float, bounds: Sequence[float] = (0.95, 1.0, 1.05), allowed: Sequence[int] = (2, 3, 4)) -> str:
    """Two decimals, and more where these would show it on a bound that it is not on."""
    if not 0.1 <= value < 100:
        return number(value)
    texts = [f"{value:.{decimals}f}" for decimals in allowed]
    return next((text for text in texts if all(abs(float(text) - bound) > 1e-9 for bound in bounds)), texts[0])


def number(value: float) -> str:
    """Three significant digits, without an exponent where it is under a million."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) >= 100:
        return f"{value:,.0f}" if abs(value) < 1e6 else f"{value:.2e}"
    return f"{value:.{2 - math.floor(math.log10(abs(value)))}f}"


def times_text(of: float) -> str:
    """A number of times: ``5``, or ``2.5``."""
    return f"{of:.3g}"


def clients(count: int) -> str:
    """``1 client``, ``5 clients``."""
    return "1 client" if count == 1 else f"{count} clients"


def blocks(count: int) -> str:
    """``1 block``, ``10 blocks``."""
    return "1 block" if count == 1 else f"{count} blocks"


def label(arm: Arm) -> str:
    """Its transport, as people write it."""
    transport = arm.setting.text("transport")
    return LABELS.get(transport, transport)


def confidence(judgement: Judgement) -> str:
    """What the brackets hold."""
    return f"In brackets: the {100 * judgement.confidence:.3g} % interval over blocks."


def _bounds(judged: Judged) -> Sequence[float]:
    """What numbers of it may be shown to be only if they are: 1, the ratio of the clients, and 5 % about each."""
    return [share * test for test in (1.0, judged.comparison.clients_ratio) for share in (1.0, *judged.equivalent)]


def _ends(of: Estimate, bounds: Sequence[float]) -> str:
    if math.isinf(of.high):
        return "one block: no interval"
    return f"{ratio(of.low, bounds)} to {ratio(of.high, bounds)}"


def _left_out(judged: Judged) -> str:
    gates = sorted({refusal.gate for refusals in judged.dropped.values() for refusal in refusals})
    named = ", ".join(map(str, gates))
    return f"{blocks(len(judged.dropped))} more left out by gate {named}."
