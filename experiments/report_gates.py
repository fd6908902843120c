"""What the gates say of a study, for its report: which comparisons they refuse and why, and what A/A runs showed.

Beside them the cross-check of the intervals, which refuses nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from experiments.evidence import compared_with_itself, machine_evidence, undisturbed_us
from experiments.figures.style import look
from experiments.gates import GATES
from experiments.gates.refusal import Refusal
from experiments.gates.unchecked import unchecked
from experiments.repetition import STEAL_SHARE_MAX
from experiments.report_tables import markdown_table
from experiments.results import Row
from experiments.run_records import RUNS_FILE
from experiments.stats import BLOCKS_MIN
from experiments.studies.stock.comparisons import Judged, judge, mean_latency_us, same_settings
from experiments.studies.stock.declared import clients_text
from experiments.studies.stock.wording import ends_text, number

CROSS_CHECKED_MIN = 3
"""Blocks; two are always even."""

DISTURBED = 1.25
"""So many times its undisturbed time, and a calibration is said to be disturbed."""

WIDEST = 1000.0
"""Per cent: an interval that reaches farther than tenfold tells nothing, and its number neither."""

SHOWN_MAX = 40
"""Refusals that are worth a line each."""


def section(rows: Sequence[Row]) -> Iterator[str]:
    """The section's paragraphs."""
    judged = judge(rows)
    yield "## What the gates say"
    yield (
        "Twenty gates look at every comparison, and at every run that it rests on, before anything is concluded: at "
        "clocks, counts, Little’s law, load, arrivals, order, errors, steadiness and more. What one of them refuses is "
        "INCONCLUSIVE, whatever the numbers."
    )
    yield from _same(rows)
    yield f"{_disturbed(rows)} {_done_again(rows)}".strip()
    yield _cross_checked([one for one in judged.values() if one.result.ratio.n >= CROSS_CHECKED_MIN])
    yield _unseen(judged.values())
    if not judged:
        yield "No comparison is declared among these settings." + (
            " What gates refuse of the runs of each offered load is marked in the figure and the table."
            if any(row.loop == "open" for row in rows)
            else ""
        )
        return
    refused = {name: one for name, one in judged.items() if one.refused}
    if not refused:
        yield f"None of them refuses any of the {len(judged)} comparisons of this report."
        return
    yield f"They refuse {len(refused)} of the {len(judged)} comparisons of this report:"
    yield _table(refused)


def _same(rows: Sequence[Row]) -> Iterator[str]:
    """The A/A run of the sweep, and what it showed of each setting."""
    pairs = sorted(same_settings(rows), key=lambda pair: (pair.above[0].transport, pair.above[0].clients))
    records = machine_evidence(rows, pairs, mean_latency_us).aa
    if not records:
        yield (
            "No setting was run twice in each block, so that nothing tells what this machine makes of no difference at "
            "all: no comparison can be concluded."
        )
        return
    (record,) = records
    width = 100 * (record.effect_min - 1)
    few = len({row.block for row in rows}) < BLOCKS_MIN
    found = f"{record.false_differences or 'none'} of these comparisons showed one"
    yield (
        f"{record.comparisons} settings were run twice in each block. Any difference between a setting and itself is "
        + ("false, and so few blocks show none. " if few else f"false; {found}. ")
        + (
            f"Half of their intervals are narrower than {number(width)} % either way, and no smaller difference is "
            "concluded here."
            if width < WIDEST
            else "Their intervals reach so far that nothing could be concluded here."
        )
    )
    lines = [
        (_setting(pair.above[0]), number(found.ratio.value), ends_text(found.ratio), str(found.ratio.n))
        for pair, found in compared_with_itself(pairs, mean_latency_us)
    ]
    head = ("A setting’s runs ÷ the same setting’s runs", "Ratio of mean latencies", "95 % interval", "Blocks")
    yield markdown_table(head, lines)


def _setting(row: Row) -> str:
    return f"{row.request.capitalize()} on {look(row.transport).label}, {clients_text(row.clients)}"


def _disturbed(rows: Sequence[Row]) -> str:
    """How often a neighbour was in the way of the fixed piece of work that is timed before every run."""
    times_us = {row.run_id: row.calibration_us for row in rows if row.calibration_us is not None}
    if not times_us:
        return ""
    own_us = undisturbed_us(list(times_us.values()))
    share = sum(each > DISTURBED * own_us for each in times_us.values()) / len(times_us)
    stolen = [row.steal_share for row in rows if row.steal_share is not None]
    text = (
        f"A fixed piece of work, timed on the server’s core before every run, took over {DISTURBED:g} times as long as "
        f"it does undisturbed before {number(100 * share)} % of the runs"
    )
    steal = f"; of the cores’ time in a run the hypervisor took up to {number(100 * max(stolen))} %" if stolen else ""
    return f"{text}{steal}. That is the neighbours’ noise, which the intervals have in them."


def _done_again(rows: Sequence[Row]) -> str:
    """Which runs the rule of ``repetition`` had done again; nothing where there were none."""
    attempts = [attempt for attempt in {row.run_id: row.attempt for row in rows}.values() if attempt > 1]
    if not attempts:
        return ""
    runs = "1 run was" if len(attempts) == 1 else f"{len(attempts)} runs were"
    superseded = sum(attempts) - len(attempts)
    left_out = "1 attempt was superseded" if superseded == 1 else f"{superseded} attempts were superseded"
    return (
        f"{runs} done again at once, since the hypervisor had taken over {100 * STEAL_SHARE_MAX:g} % of the "
        f"cores’ time: {left_out}, by a rule fixed beforehand that looks at stolen time alone and lets the last one "
        f"count, and every attempt’s record is in {RUNS_FILE}."
    )


def _cross_checked(judged: Sequence[Judged]) -> str:
    """Where the percentile bootstrap says something else than Student's t; nothing where no comparison can tell."""
    if not judged:
        return ""
    texts = [one.contrast.text for one in judged if one.result.disagreement]
    check = (
        "As a cross-check of Student’s t intervals, those of the percentile bootstrap lie elsewhere in "
        f"{len(texts)} of {len(judged)} comparisons; by chance they do in 2 to 5 of 100."
    )
    if not texts:
        return check
    return f"{check} There, some blocks lie far from the others, and an interval’s ends may be off: {'; '.join(texts)}."


def _unseen(judged: Iterable[Judged]) -> str:
    """What gates would have looked at and was not measured: silence there is no pass."""
    missing = {
        (each.gate, each.missing) for one in judged if one.evidence is not None for each in unchecked(one.evidence)
    }
    named = "; ".join(f"{what} (gate {gate})" for gate, what in sorted(missing))
    return f"Not measured, so that no gate could look at it, of some or all: {named}." if named else ""


def _table(refused: Mapping[str, Judged]) -> str:
    """A line for each reason, with the comparisons that it holds for."""
    reasons: dict[tuple[int, str, str], list[str]] = {}
    for one in refused.values():
        for refusal in _distinct(one.refused):
            reasons.setdefault((refusal.gate, refusal.what, refusal.do), []).append(one.contrast.text)
    names = {gate.number: gate.name for gate in GATES}
    lines = [
        (f"{gate}: {names[gate]}", "; ".join(texts), f"{what[:1].upper()}{what[1:]}. To do: {do}.")
        for (gate, what, do), texts in sorted(reasons.items())[:SHOWN_MAX]
    ]
    table = markdown_table(("Gate", "Comparison", "What is wrong, and what to do"), lines, 3)
    left = len(reasons) - SHOWN_MAX
    return table if left <= 0 else f"{table}\n\nAnd {left} more."


def _distinct(refusals: Sequence[Refusal]) -> list[Refusal]:
    """The first of each gate: ten runs with the same fault need no ten lines."""
    return list({refusal.gate: refusal for refusal in reversed(refusals)}.values())
