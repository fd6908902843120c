"""Sentences about judged comparisons. A sentence states no more than the verdict allows.

``ratio_sentence`` expresses a verdict in words, for a study, the report and ``compare``. The verdict determines the
sentence, which gives the ratio and the interval. Without a verdict, the sentence gives the number of blocks that would
decide the comparison, or the gate that withholds the verdict. A gate is a check of the measurements. Left out: the
choice and the order of sentences.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from experiments.design.arms import Measure
from experiments.design.limits import BLOCKS_MAX
from experiments.design.sweep import BLOCKS_MIN
from experiments.judge.stats import POWER, Deviation
from experiments.judge.verdicts import APART, Judged, Judgement, Ruling, Verdict
from experiments.show.numbers import TOO_FEW, counted, has_interval, percent, ratio_with_ends, ratio_words

MEANINGS: Mapping[Verdict, str] = {
    Verdict.FASTER: "A takes less time than B.",
    Verdict.SLOWER: "A takes more time than B.",
    Verdict.EQUIVALENT: "A and B take the same time, to within 5 %.",
    Verdict.GROWS: "Latency is higher with more clients.",
    Verdict.FALLS: "Latency is lower with more clients.",
    Verdict.FLAT: "Latency is the same with more clients, to within 5 %.",
    Verdict.SUBLINEAR: "With N times the clients, latency is less than N times as high.",
    Verdict.PROPORTIONAL: "With N times the clients, latency is N times as high, to within 5 %.",
    Verdict.SUPERLINEAR: "With N times the clients, latency is more than N times as high.",
    Verdict.LESS: "A takes less processor time than B.",
    Verdict.MORE: "A takes more processor time than B.",
    Verdict.INCONCLUSIVE: "These blocks decide nothing. That does not mean that there is no difference.",
}
"""Meaning of each verdict on a ratio A ÷ B."""

REACH_SAID = 0.005
"""Smallest change of a ratio by a further run that is worth a sentence, as a log-ratio."""

HOUR_S = 3600.0
"""Shortest time between earlier runs, in seconds. If the time is shorter, the sentence on a further run does not say
"another hour"."""

_INTERVAL = re.compile(r"\([^() ]+ to [^() ]+\)")
"""Pattern of an interval in the text of an answer."""

_WHAT: Mapping[Measure, str] = {"response": "time", "cpu": "processor time", "wall": "time per reply"}


def ratio_sentence(judged: Judged, above_label: str, below_label: str) -> str:
    """Sentences on a comparison: ``Sockets take 0.290 of the time of gRPC (0.280 to 0.300).``

    The labels are words for the two arms, in the form that stands inside a sentence. A further run may change the
    ratio. The sentences mention this change only if the change would undo the verdict. ``reach_sentences`` mentions
    every change.
    """
    return " ".join((_begun(" ".join(_told(judged, above_label, below_label))), *_reservations(judged, is_brief=True)))


def reach_sentences(judged: Iterable[Judged]) -> tuple[str, ...]:
    """Sentences on each ratio: the change that a further run may make. Empty without earlier runs."""
    moved = ((each.comparison.title, each.between) for each in judged if _is_moved(each))
    return tuple(f"{title}: {_between(between)}" for title, between in moved if between)


def reach_of_all(answers: str, judged: Iterable[Judged]) -> str:
    """Sentence on the ratios in these answers: the largest change that a further run may make. Empty without earlier
    runs.

    ``In another hour, 4 of these ratios may differ by up to 5.8 %, as 16 earlier runs show.``
    """
    shown = (each for each in judged if f"({ratio_words(each.typical)[1]})" in answers)
    known = [each.between for each in shown if each.between is not None]
    furthest = max(known, key=lambda each: each.reach, default=None)
    if furthest is None or furthest.reach < REACH_SAID:
        return ""
    later, _ = _later(furthest)
    moved = f"{later}, {len(known)} of these ratios may differ by up to {_percent_more(furthest.reach)}"
    others = " For the other ratios no difference is known." if len(known) < len(_INTERVAL.findall(answers)) else ""
    return f"{moved}, as {furthest.runs} earlier runs show.{others}"


def ratio_so_far(judgement: Judgement) -> str:
    """Text with the ratio of the first comparison, and no verdict: ``sockets ÷ gRPC 0.290 (0.280 to 0.300)``. Empty
    without a value."""
    judged = next(iter(judgement.judged.values()), None)
    if judged is None:
        return ""
    return f"{judged.comparison.title.rpartition(': ')[2]} {ratio_with_ends(judged.typical)}"


def verdict_words(judged: Judged) -> str:
    """Words for the verdicts: ``FASTER, by less than 5 %``; ``GROWS, SUBLINEAR``.

    ``no verdict`` if the sweep has no verdicts now. ``no verdict on the server`` if the client was near its limit.
    """
    if judged.load_share is not None:
        return "no verdict on the server"
    if not judged.rulings:
        return "no verdict"
    small = (", by less than 5 %" * judged.is_small(ruling) for ruling in judged.rulings)
    return ", ".join(dict.fromkeys(f"{each.verdict.value}{by}" for each, by in zip(judged.rulings, small, strict=True)))


def undecided_words(judged: Judged) -> str:
    """Text on an undecided comparison: the number of blocks that would decide the comparison (``about 24 blocks``), or
    the gate that refuses the comparison (``gate 5``). Empty for a decided comparison."""
    if judged.decided or not judged.rulings:
        return ""
    if judged.refusals:
        return f"gate {', '.join(str(each) for each in sorted({refusal.gate for refusal in judged.refusals}))}"
    needed = _blocks_needed(judged)
    return "over 1,000 blocks, or unknown" if needed is None else f"about {counted(needed, 'block')}"


def state_sentences(judgement: Judgement) -> Iterator[str]:
    """Sentences on a sweep's progress: the blocks done and planned, the declared numbers of blocks (looks), and the
    undecided comparisons."""
    have, looks = len(judgement.blocks), judgement.sweep.looks
    at = " or ".join((", ".join(map(str, looks[:-1])), str(looks[-1]))) if len(looks) > 1 else str(looks[-1])
    if not judgement.sweep.has_verdicts:
        yield f"This sweep has {counted(have, 'block')} of {looks[-1]}. It decides nothing."
        yield f"A verdict needs at least {BLOCKS_MIN} blocks. The numbers are a first impression."
        return
    if judgement.look is None:
        goal = next((look for look in looks if look > have), looks[-1])
        yield f"This sweep is not finished: it has {have} of {counted(goal, 'block')}. There are no verdicts."
        yield f"It is judged at {at} blocks only. Until then the numbers may change."
        return
    yield f"This sweep was judged at {counted(judgement.look, 'block')}. Its plan allows verdicts at {at} blocks."
    headline = [each.name for each in judgement.sweep.comparisons if each.family == "headline"]
    found = [judgement.judged.get(name) for name in headline]
    open_ = sum(each is None or not each.is_settled for each in found)
    limited = sum(each is not None and each.load_share is not None for each in found)
    if open_:
        yield f"{open_} of {counted(len(headline), 'headline comparison')} {'is' if open_ == 1 else 'are'} undecided."
    elif limited < len(headline):
        yield f"Every {'other ' * bool(limited)}headline comparison is decided."
    if limited:
        yield f"{counted(limited, 'headline comparison')} {'has' if limited == 1 else 'have'} no verdict on the server."


def to_decide(judgement: Judgement, names: Sequence[str]) -> str | None:
    """Sentence with the command that would decide these comparisons. None if all comparisons are decided."""
    found = [judgement.judged[name] for name in names if name in judgement.judged]
    undecided = [each for each in found if not each.is_settled]
    command = f"python -m experiments run {judgement.sweep.part}"
    if len(found) == len(names) and not undecided:
        return None
    if judgement.look is None:
        goes_on = judgement.sweep.has_verdicts and 0 < len(judgement.blocks) < judgement.sweep.looks[-1]
        return f"To go on: `{command} --out FOLDER --resume`" if goes_on else f"This would decide it: `{command}`"
    if len(found) < len(names) or any(each.refusals for each in undecided):
        return f"More blocks do not help, since a gate refused data. To measure again: `{command}`"
    needed = [_blocks_needed(each) for each in undecided]
    most = max((each for each in needed if each is not None), default=0)
    if None not in needed and most <= BLOCKS_MAX:
        return f"This would decide it: `{command} --blocks {most}`"
    many = "too many" if None in needed else f"some {most}"
    needs = f"a verdict needs {many} blocks, and a run has at most {BLOCKS_MAX}"
    return f"This machine is too noisy now: {needs}. Later: `{command}`"


def _blocks_needed(judged: Judged) -> int | None:
    """Total number of blocks that would decide the comparison, including blocks that gates left out. None if this
    number is over 1,000 or unknown."""
    needed = [each.blocks_needed for each in judged.rulings if each.verdict is Verdict.INCONCLUSIVE]
    known = [blocks for blocks in needed if blocks is not None]
    return max(known) + len(judged.dropped) if known and len(known) == len(needed) else None


def take(label: str) -> str:
    """Verb that agrees with a label: ``take`` for a label in the plural, else ``takes``."""
    head = re.split(r" (?:with|on|of|per|at|in|by|for|under|from)\b", label.rpartition(", ")[2])[0]
    words = [word for word in re.sub(r"\(.*?\)", "", head).split() if "=" not in word]
    plural = bool(words) and words[-1].endswith("s") and not words[-1].endswith("ss")
    return "take" if plural else "takes"


def _told(judged: Judged, above: str, below: str) -> Iterator[str]:
    """Sentences on a comparison. The kind of the comparison selects the sentences. The first sentence begins in lower
    case."""
    kind = judged.comparison.kind
    if judged.load_share is not None:
        yield f"{_sized(judged, above, below)}."
        yield _limited(judged.load_share)
    elif not judged.rulings:
        yield f"no verdict. {_begun(_sized(judged, above, below))}."
    elif kind == "ratio":
        yield _compared(judged, judged.rulings[0], above, below)
    elif kind == "same":
        yield _same(judged, above)
    elif kind == "growth":
        yield from _growth(judged, above, below)
    elif kind == "per client":
        yield from _beside_clients(judged, judged.rulings[0], _sized(judged, above, below))
    else:
        assert_never(kind)


def _limited(load_share: float) -> str:
    """Sentences on a load that was near its limit. ``load_share``: the load's share of its core."""
    told = "So client and server together determine the ratio, and there is no verdict on the server."
    return f"The load took {percent(round(load_share, 2))} of its core. {told}"


def _sized(judged: Judged, above: str, below: str) -> str:
    """Clause with a ratio: ``sockets take 0.290 of the time of gRPC (0.280 to 0.300)``."""
    value, said = _numbers(judged)
    times = "of" if judged.typical.value < 1 else "times"
    if judged.comparison.kind in ("growth", "per client"):
        return f"{above} {'has' if above.startswith('1 ') else 'have'} {value} {times} the latency of {below} ({said})"
    return f"{above} {take(above)} {value} {times} the {_what(judged)} of {below} ({said})"


def _compared(judged: Judged, ruling: Ruling, above: str, below: str) -> str:
    """Sentences on a comparison of two different arms."""
    what = _what(judged)
    if ruling.verdict in APART:
        less = "less" if ruling.verdict in (Verdict.FASTER, Verdict.LESS) else "more"
        small = f" That is {less} {what}, but by less than 5 %." if judged.by_less_than_5 else ""
        return f"{_sized(judged, above, below)}.{small}"
    if ruling.verdict is Verdict.EQUIVALENT:
        return f"{above} and {below} take the same {what}, to within 5 %: ratio {_ratio(judged)}."
    return f"whether {above} or {below} {take(below)} less {what} is not decided: ratio {_ratio(judged)}."


def _same(judged: Judged, label: str) -> str:
    """Sentence on the ratio of two equal arms, which are an A/A pair."""
    ratio = f"ratio {_ratio(judged)}"
    if judged.verdict is Verdict.EQUIVALENT:
        return f"two equal servers ({label}) take the same {_what(judged)}, to within 5 %: {ratio}."
    if judged.verdict is Verdict.INCONCLUSIVE:
        return f"two equal servers ({label}) show no difference: {ratio}."
    return f"two equal servers ({label}) show a difference, which is an error: {ratio}."


def _growth(judged: Judged, above: str, below: str) -> Iterator[str]:
    """Sentences on a ratio of latencies: with more clients ÷ with fewer clients."""
    ruling, beside = judged.rulings
    if ruling.verdict is Verdict.FLAT:
        yield f"latency is the same with {above} as with {below}, to within 5 %: ratio {_ratio(judged)}."
    elif ruling.verdict is Verdict.INCONCLUSIVE:
        differs = f"whether latency differs between {below} and {above} is not decided: ratio {_ratio(judged)}"
        yield from _beside_clients(judged, beside, differs)
    else:
        yield from _beside_clients(judged, beside, _sized(judged, above, below))
        if judged.is_small(ruling):
            yield f"That is {'more' if ruling.verdict is Verdict.GROWS else 'less'} time, but by less than 5 %."


def _beside_clients(judged: Judged, ruling: Ruling, grown: str) -> Iterator[str]:
    """Sentences that compare a ratio of latencies (``grown``) with the ratio of the clients: ``… (1.70 to 1.84): less
    than 5 times.``"""
    times = f"{ruling.against:.3g} times"
    small = ", by under 5 %" * judged.is_small(ruling)
    match ruling.verdict:
        case Verdict.SUBLINEAR:
            yield f"{grown}: less than {times}{small}."
        case Verdict.SUPERLINEAR:
            yield f"{grown}: more than {times}{small}."
        case Verdict.PROPORTIONAL:
            yield f"{grown}: {times}, to within 5 %."
        case _:
            yield f"{grown}."
            yield f"Whether latency grows as the number of clients does, {times}, is not decided."


def listed(judged: Judged) -> str:
    """Text for a list: the comparison's title, numbers and verdict, and the reason for INCONCLUSIVE.

    Without a verdict, ``no verdict`` comes before the numbers.
    """
    numbers, verdict = _ratio(judged), verdict_words(judged)
    words = f"{numbers}, {verdict}" if judged.rulings else f"{verdict}, {numbers}"
    if judged.load_share is not None:
        return " ".join((f"{judged.comparison.title}: {numbers}.", _limited(judged.load_share), *_reservations(judged)))
    return " ".join((f"{judged.comparison.title}: {words}.", *_reservations(judged)))


def _reservations(judged: Judged, is_brief: bool = False) -> Iterator[str]:
    """Sentences that follow a ratio. The sentences are on plain means that disagree with the ratio, and on the change
    that a further run may make. The last sentence is on the number of blocks that would decide the comparison.

    With ``is_brief``, the change is mentioned only if it would undo the verdict.
    """
    if judged.typical_is_not_whole:
        whole = ratio_with_ends(judged.whole)
        yield f"That is the typical ratio. The ratio of the plain means, which include long pauses, is {whole}."
    if _is_moved(judged) and judged.between is not None:
        if not is_brief:
            yield _between(judged.between)
        if not judged.survives:
            moved = _percent_more(judged.between.reach)
            yield f"In a further run the ratio may differ by {moved}, enough to undo the verdict."
    if judged.decided or not judged.rulings or judged.comparison.kind == "same":
        return
    if judged.refusals:
        first = min(judged.refusals, key=lambda refusal: refusal.gate)
        yield f"Gate {first.gate} refuses a verdict: {first.said}."
        return
    words = undecided_words(judged)
    if words.startswith("about"):
        yield f"{_begun(words)} in all would decide it with {percent(POWER)} power."
    else:
        yield "How many blocks would decide it is unknown, or over 1,000."
    if judged.dropped:
        yield f"Gates left out {counted(len(judged.dropped), 'block')}."


def _is_moved(judged: Judged) -> bool:
    """True if the comparison has different arms and is decided, and if the deviation between earlier runs is known."""
    return judged.between is not None and judged.decided and judged.comparison.kind != "same"


def _between(known: Deviation) -> str:
    """Sentence on the change that a further run may make to a ratio. The change is computed from the deviation between
    earlier runs."""
    later, apart = _later(known)
    runs = f"{known.runs} earlier runs on such a machine{apart}"
    if known.reach < REACH_SAID:
        return f"{runs} show no difference between runs; up to {_percent_more(known.tau_high)} is possible."
    return f"{later}, the ratio may differ by {_percent_more(known.reach)}, as {runs} show."


def _later(known: Deviation) -> tuple[str, str]:
    """Two texts: the first on the time of the further run, the second on the time between the earlier runs.

    If the earlier runs were within one hour, their deviation holds only for a further run some minutes later.
    """
    return ("In another hour", "") if known.over_s >= HOUR_S else ("In a run some minutes later", ", minutes apart,")


def _percent_more(log: float) -> str:
    """Change in percent of a ratio whose logarithm changes by ``log``: ``5.8 %``."""
    return percent(round(math.expm1(log), 3))


def _begun(sentence: str) -> str:
    """The sentence, with a capital letter at its beginning. A first word that contains a capital letter, such as gRPC,
    stays unchanged."""
    return sentence[:1].upper() + sentence[1:] if sentence.split(" ")[0].islower() else sentence


def _numbers(judged: Judged) -> tuple[str, str]:
    """Texts of the typical ratio and of its interval. Without an interval the second text is ``TOO_FEW``."""
    value, ends = ratio_words(judged.typical)
    return value, ends if has_interval(judged.typical) else TOO_FEW


def _ratio(judged: Judged) -> str:
    """Text of the typical ratio and of the interval: ``0.290 (0.280 to 0.300)``."""
    value, ends = _numbers(judged)
    return f"{value} ({ends})"


def _what(judged: Judged) -> str:
    """Words for the quantity that a comparison measures: ``time``, ``processor time``, ``time per reply``."""
    return _WHAT[judged.comparison.measure]
