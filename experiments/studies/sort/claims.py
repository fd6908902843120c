"""The replication card: every claim of the document, with the verdict of our data.

Verdicts of sweeps, or of cold runs (fresh clients with fresh connections), make a claim CONFIRMED or CONTRADICTED. A
verdict on cold runs needs all planned blocks. It rests on an interval of 99 % over at least six blocks. Where the
document's own table contradicts a claim, the finding also has the document's numbers. The document's times are context,
since they are of another machine and another system.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product

from experiments.design.arms import Arm
from experiments.design.limits import LIMITS
from experiments.design.sweep import BLOCKS_MIN
from experiments.judge.stats import Estimate
from experiments.judge.steps import SAID, steps
from experiments.judge.verdicts import OF_GROWTH, Judged, Verdict, ruled
from experiments.show.content import Claim, Entry, Finding, Seen, decided, not_measured
from experiments.show.figures.style import label
from experiments.show.numbers import number, percent, ratio_with_ends
from experiments.studies.sort.answers import CONFIDENCE, NO_GO, Measured, as_original, measured, needed
from experiments.studies.sort.design import ALGORITHMS, CALLS, LENGTHS, MEAN_US, MECHANISMS, MERGE, QUICK, go

HALF_AS_LONG_AGAIN = 1.5
"""Least ratio of means, merge sort ÷ quicksort, that confirms the claim. At N = 100 the document's table has a larger
ratio.
"""

BY_ALGORITHM = ("algorithm_grpc", "algorithm_net_rpc")
BY_MECHANISM = ("mechanism_merge", "mechanism_quick")


def claims(seen: Seen) -> tuple[Claim, ...]:
    """Claims of a part, in the document's order. The main part has every claim. A further part has only the claims that
    its own data decide.
    """
    found = measured(seen)
    return tuple(_claim(each, found) for each in ENTRIES if seen.main.sweep.part in ("sort", each.part))


def _claim(entry: Entry[Measured], found: Measured) -> Claim:
    if entry.part not in found.parts:
        return not_measured(entry.text, entry.part)
    return entry.claim(found) if found.has_go else Claim(entry.text, "NOT TESTABLE", NO_GO)


def _means(calls: int) -> Callable[[Measured], Finding]:
    def finding(found: Measured) -> Finding:
        ours = []
        for mechanism in MECHANISMS:
            connecting = as_original(mechanism)
            means = [found.mean(mechanism, each, calls, connecting) for each in ALGORITHMS]
            texts = [number(each.value) for each in means if each is not None]
            ours.append(f"{' and '.join(texts) or 'nothing'} µs on {label(mechanism)}")
        here = f" Here, connecting as the document does: {', '.join(ours)}." if found.cold else ""
        return "NOT TESTABLE", f"Another machine and another system: context only.{here}"

    return finding


def _falls_with_calls(found: Measured) -> Finding:
    """Finding on the claim that the mean of a cold run falls with the number of calls. A step is from N calls to ten
    times as many calls. The finding rests on all steps, for every mechanism and algorithm."""
    ratios, first_calls = dict[str, Estimate | None](), dict[str, Estimate | None]()
    for mechanism, (algorithm, name) in product(MECHANISMS, ALGORITHMS.items()):
        what = f"{label(mechanism)}, {name}"
        first_calls[what] = found.first_over_rest(mechanism, algorithm)
        for few, many in pairwise(CALLS):
            ratios[f"{what}, {few:,} ÷ {many:,}"] = found.calls_ratio(mechanism, algorithm, few, many)
    verdict, where = _falling({name: _direction(found, each) for name, each in ratios.items()})
    return verdict, (
        f"Means of calls: {_listed(ratios)}. {where}N is the number of calls. "
        f"A first call ÷ the others, connecting left out: {_listed(first_calls)}. "
        f"{' '.join(needed(found))} The cause of the document's fall is not known."
    )


def _falling(directions: Mapping[str, Verdict]) -> Finding:
    """Finding on a falling mean. CONFIRMED where the mean falls at every step, CONTRADICTED where the mean rises or
    stays the same at a step. The sentences name all steps at which no fall was decided.
    """
    where: dict[Verdict, list[str]] = {}
    for name, each in directions.items():
        where.setdefault(each, []).append(name)
    others = {each: names for each, names in where.items() if each is not Verdict.FALLS}
    every = "every step" if len(where) == 1 else None
    words = "".join(f"The mean {SAID[each]} at {every or '; '.join(names)}. " for each, names in others.items())
    return decided(not others, not others.keys().isdisjoint({Verdict.GROWS, Verdict.FLAT})), words


def _direction(found: Measured, fewer_over_more: Estimate | None) -> Verdict:
    """Verdict on a step of cold runs, from the interval of the step's ratio alone. INCONCLUSIVE before all planned
    blocks are measured."""
    if fewer_over_more is None or not _carries(fewer_over_more) or not found.cold_whole:
        return Verdict.INCONCLUSIVE
    under, over, about = OF_GROWTH
    return ruled((over, under, about), fewer_over_more, p_holm=0.0, level=LIMITS.level, limits=LIMITS)


def _falls_with_length(found: Measured) -> Finding:
    """Finding on the claim that the mean falls with N, where N is the length of the array. A step is from one length to
    ten times this length. The finding rests on all steps, for every mechanism and algorithm, in warm calls.
    """
    judgement, directions, shown = found.parts["sort_array_len"], dict[str, Verdict](), list[str]()
    for mechanism, (algorithm, sort) in product(MECHANISMS, ALGORITHMS.items()):
        arms = [Arm(go(mechanism, algorithm, length)) for length in LENGTHS]
        own = {each.above: each for each in steps(judgement, arms)}
        for (few, many), arm in zip(pairwise(LENGTHS), arms[1:], strict=True):
            name = f"{label(mechanism)}, {sort}, {many:,} ÷ {few:,} numbers"
            directions[name] = own[arm].verdict(judgement) if arm in own else Verdict.INCONCLUSIVE
            if arm in own:
                shown.append(f"{name} {ratio_with_ends(own[arm].ratio)}")
    verdict, where = _falling(directions)
    return verdict, f"Means: {'; '.join(shown) or 'not measured'}. {where}".strip()


def _net_rpc_is_faster(found: Measured) -> Finding:
    judged, said = found.found(*BY_MECHANISM), found.brief(*BY_MECHANISM)
    verdicts = {each.verdict for each in judged}
    if len(judged) < len(BY_MECHANISM):
        return "INCONCLUSIVE", said
    return decided(verdicts == {Verdict.SLOWER}, bool(verdicts & {Verdict.FASTER, Verdict.EQUIVALENT})), said


def _more_so_with_calls(found: Measured) -> Finding:
    """Finding on the claim that gRPC ÷ net/rpc grows with N, where N is the number of calls, as the document measured.
    CONFIRMED where the ratio is larger after every step to ten times the calls."""
    ratios = {
        f"{ALGORITHMS[each]} {calls:,}": found.mechanisms_ratio(each, calls, connecting=True)
        for each, calls in product(ALGORITHMS, CALLS)
    }
    verdict, where = _growing(ratios if found.cold_whole else dict.fromkeys(ratios), CALLS)
    theirs = ", ".join(number(MEAN_US["grpc", MERGE, calls] / MEAN_US["net-rpc", MERGE, calls]) for calls in CALLS)
    return verdict, f"gRPC ÷ net/rpc, by calls: {_listed(ratios)}. {where}The document's own merge sort: {theirs}."


def _more_so_with_length(found: Measured) -> Finding:
    """Finding on the claim that gRPC ÷ net/rpc grows with N, where N is the length of the array, as in the document's
    conclusion. CONFIRMED where the ratio is larger after every step to ten times the length."""
    names = {(each, length): f"mechanism_{each}_{length}" for each, length in product(ALGORITHMS, LENGTHS)}
    ratios = {
        f"{ALGORITHMS[each]} {length:,}": next((one.typical for one in found.found(name) if _is_decided(one)), None)
        for (each, length), name in names.items()
    }
    verdict, where = _growing(ratios, LENGTHS)
    return verdict, f"{found.brief(*names.values())} {where}".strip()


def _growing(ratios: Mapping[str, Estimate | None], counts: Sequence[int]) -> Finding:
    """Finding on ratios that should grow with N. A step is decided where the intervals of the ratios before and after
    the step do not overlap. CONFIRMED where the ratio is larger after every step, CONTRADICTED where the ratio is
    smaller after a step. The sentences name the steps with a smaller ratio, and the undecided steps.

    ``ratios``: ratios by algorithm and N, such as ``merge sort 1,000``. ``counts``: the values of N, ascending.
    """
    smaller, open_ = list[str](), list[str]()
    for each, (fewer, more) in product(ALGORITHMS.values(), pairwise(counts)):
        few, many = ratios[f"{each} {fewer:,}"], ratios[f"{each} {more:,}"]
        step = f"{each}, from {fewer:,} to {more:,}"
        if few is None or many is None or not _carries(few, many) or (many.low <= few.high and many.high >= few.low):
            open_.append(step)
        elif many.high < few.low:
            smaller.append(step)
    words = f"The ratio is smaller at {'; '.join(smaller)}. " if smaller else ""
    words += f"No larger ratio is shown at {'; '.join(open_)}. " if open_ else ""
    return decided(not smaller and not open_, bool(smaller)), words


def _algorithms_differ_less(found: Measured) -> Finding:
    """Finding on the claim that the algorithms differ less than the mechanisms. Intervals give each difference a least
    and a largest possible value. CONFIRMED where the algorithms' largest difference is under the mechanisms' least
    difference. CONTRADICTED where the algorithms' least difference is over the mechanisms' largest difference.
    """
    said = found.brief(*BY_ALGORITHM, *BY_MECHANISM)
    theirs = MEAN_US["grpc", MERGE, 100] - MEAN_US["grpc", QUICK, 100]
    beside = MEAN_US["grpc", MERGE, 100] - MEAN_US["net-rpc", MERGE, 100]
    said += (
        f" The claim does not hold in the document's table at N = 100. On gRPC the algorithms lie {number(theirs)} µs "
        f"apart. With merge sort the mechanisms lie {number(beside)} µs apart."
    )
    algorithms, mechanisms = (list(filter(_is_decided, found.found(*each))) for each in (BY_ALGORITHM, BY_MECHANISM))
    if len(algorithms) < len(BY_ALGORITHM) or len(mechanisms) < len(BY_MECHANISM):
        return "INCONCLUSIVE", said
    (least, most), (least_beside, most_beside) = _apart(algorithms), _apart(mechanisms)
    return decided(most < least_beside, least > most_beside), said


def _apart(judged: Sequence[Judged]) -> tuple[float, float]:
    """Least and largest factor between the two arms of these comparisons, by the ends of the comparisons' intervals.
    Both factors are over 1 where no interval contains 1."""
    least = min(max(each.typical.low, 1 / each.typical.high) for each in judged)
    return least, max(max(each.typical.high, 1 / each.typical.low) for each in judged)


def _merge_is_slower(found: Measured) -> Finding:
    """Finding on the claim that merge sort takes over 1.5 times as long as quicksort, from cold runs. Each algorithm
    has its own connection here. The document ran merge sort first, and then quicksort on the same connection."""
    ratios = {label(each): found.algorithms_ratio(each, CALLS[0]) for each in MECHANISMS}
    first = {label(each): found.first_pays(each) for each in MECHANISMS}
    said = (
        f"Merge sort ÷ quicksort, each in fresh runs of 100 calls: {_listed(ratios)}. The document ran merge sort "
        f"first. The first 100 calls of a connection ÷ the next 900, the same algorithm: {_listed(first)}."
    )
    seen = [each for each in ratios.values() if each is not None and _carries(each)]
    if len(seen) < len(ratios) or not found.cold_whole:
        return "INCONCLUSIVE", said
    is_longer = all(each.low > HALF_AS_LONG_AGAIN for each in seen)
    return decided(is_longer, any(each.high < HALF_AS_LONG_AGAIN for each in seen)), said


def _listed(ratios: Mapping[str, Estimate | None]) -> str:
    """List of the ratios by name, each with its interval."""
    shown = "; ".join(f"{name} {ratio_with_ends(each)}" for name, each in ratios.items() if each)
    return f"{shown}, in intervals of {percent(CONFIDENCE)}" if shown else "not measured"


def _carries(*estimates: Estimate) -> bool:
    """True where each estimate is over enough blocks for a verdict."""
    return all(each.n >= BLOCKS_MIN for each in estimates)


def _is_decided(judged: Judged) -> bool:
    return judged.verdict in (Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT)


def _results() -> Iterator[Entry[Measured]]:
    """Claims on the mean times in the document's table of results, one claim for each N."""
    for calls in CALLS:
        on = [
            f"{' and '.join(f'{MEAN_US[mechanism, each, calls]:g}' for each in ALGORITHMS)} µs on {label(mechanism)}"
            for mechanism in MECHANISMS
        ]
        text = f"N = {calls:,}: merge sort and quicksort take {', and '.join(on)} (mean round trip)."
        yield Entry(text, _means(calls), part="sort")


ENTRIES: tuple[Entry[Measured], ...] = (
    *_results(),
    Entry(
        "The mean falls as N grows from 100 to 10,000, where N is the number of calls.", _falls_with_calls, part="sort"
    ),
    Entry(
        "The mean falls as N grows, where N is the size of the input, as in the document's conclusion.",
        _falls_with_length,
        part="sort_array_len",
    ),
    Entry(
        "At N = 100 merge sort takes over 1.5 times as long as quicksort, on both mechanisms.",
        _merge_is_slower,
        part="sort",
    ),
    Entry(
        "net/rpc consistently has a lower latency than gRPC, with merge sort and with quicksort.",
        _net_rpc_is_faster,
        part="sort",
    ),
    Entry(
        "gRPC ÷ net/rpc grows with N, where N is the number of calls, as in the document's measurement.",
        _more_so_with_calls,
        part="sort",
    ),
    Entry(
        "gRPC ÷ net/rpc grows with N, where N is the length of the array, as in the document's conclusion.",
        _more_so_with_length,
        part="sort_array_len",
    ),
    Entry("The algorithms differ by less than the mechanisms do.", _algorithms_differ_less, part="sort"),
)
"""Every claim: on the numbers of the results table, on the figures, and on the two sentences of the conclusion."""
