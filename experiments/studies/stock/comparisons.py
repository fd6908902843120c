"""The declared comparisons as the data decides them, as far as the gates let it.

A comparison is formed within a block and judged by ``stats``; Holm's correction runs over its family, whole, what was
not run included; then every gate looks at it and at its runs (``experiments.gates``). What was not run in a folder of
results is not judged, and is absent from what ``judge`` returns. Left out: words.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from experiments import stats
from experiments.evidence import FACTORS, Arms, arm_evidence, comparison_evidence, machine_evidence
from experiments.gates import refusals, verdict_refused
from experiments.gates.evidence import ComparisonEvidence, MachineEvidence
from experiments.gates.refusal import Conclusion, Kind, Refusal, forbidding
from experiments.results import ALL, Row
from experiments.studies.stock.declared import CLIENTS, Cell, Contrast, clients_text, families

MORE_BLOCKS_MEND = frozenset({9, 10, 12})
"""Gates that refuse for want of blocks, or what want of blocks brings about (an order that chance made one-sided, an
interval without ends): then the number that would decide is worth saying."""

SEED = 4
"""Of the sign-flip test, which draws only beyond 16 blocks."""


Measure = Callable[[Row], float | None]
"""One number of a row; None where there is none."""


def mean_latency_us(row: Row) -> float | None:
    """What the declared comparisons are of."""
    return row.response_us_mean


def time_per_reply_us(row: Row) -> float | None:
    """1 ÷ throughput, so that a ratio under 1 is FASTER."""
    return 1e6 / row.throughput_all_hz if row.throughput_all_hz else None


@dataclass(frozen=True, slots=True)
class Judged:
    """A comparison as the data decided it."""

    contrast: Contrast
    result: stats.Comparison
    load_limited: bool
    """In any run of either cell the load side was the limit."""
    starved_blocks: int = 0
    """Blocks in which either cell had clients without a reply: with any of them nothing is decided."""
    refused: tuple[Refusal, ...] = ()
    """What gates have against a verdict: with any of them nothing is decided."""
    evidence: ComparisonEvidence | None = None
    """What the gates looked at, with the verdict that they left."""


def judge(rows: Sequence[Row]) -> dict[str, Judged]:
    """Every declared comparison that the rows have data for, by name. Asked again for the same rows, it remembers."""
    return dict(_judge(tuple(rows)))


@lru_cache(maxsize=4)
def _judge(rows: tuple[Row, ...]) -> dict[str, Judged]:
    """See ``judge``: a report asks for each of its pictures and tables."""
    by_cell: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        by_cell.setdefault((row.part, row.request, row.clients), []).append(row)

    def rows_of(contrast: Contrast) -> list[Row]:
        places = dict.fromkeys((cell.part, cell.request, cell.clients) for cell in (contrast.above, contrast.below))
        return [row for place in places for row in by_cell.get(place, ())]

    judged: dict[str, Judged] = {}
    machine = _machine(rows, mean_latency_us)
    for name, family in families(rows).items():
        own = {contrast.name: rows_of(contrast) for contrast in family}
        judged |= _judge_family((name, family), own, mean_latency_us, machine)
    return judged


def judge_rates(rows: Sequence[Row], part: str) -> dict[int, Judged]:
    """A reply's share of the time (1 ÷ throughput), Lookup with the most clients of a part ÷ with each other number.

    By that number, ascending. A family of its own: SLOWER says that throughput falls up to the most clients.
    """
    own = [row for row in rows if row.part == part and row.request == "lookup"]
    counts = sorted({row.clients for row in own})
    family = tuple(
        Contrast(
            f"rate_{part}_{clients}",
            f"time per reply, {counts[-1]} ÷ {clients_text(clients)}",
            Cell(part, "lookup", counts[-1]),
            Cell(part, "lookup", clients),
            CLIENTS,
        )
        for clients in counts[:-1]
    )
    machine = _machine(tuple(rows), time_per_reply_us)
    cells = {contrast.name: own for contrast in family}
    judged = _judge_family((f"rate_{part}", family), cells, time_per_reply_us, machine)
    return {one.contrast.below.clients: one for one in judged.values()}


def runs_refused(rows: Sequence[Row], arms: Iterable[Sequence[Row]], basis: Kind = "latency") -> tuple[Refusal, ...]:
    """What gates have against a number made of some of the rows, by setting: of each run, and of the whole sweep.

    ``basis`` is what of the runs the number is about.
    """
    return _refused(_machine(tuple(rows), mean_latency_us), arms, basis)


def _refused(machine: MachineEvidence, arms: Iterable[Sequence[Row]], basis: Kind) -> tuple[Refusal, ...]:
    runs = [run for arm in arms for run in arm_evidence(arm)]
    found = [refusal for run in runs for refusal in refusals(run)] + refusals(machine)
    rests_on = frozenset({machine.machine, *(run.run_id for run in runs)})
    return tuple(dict.fromkeys(forbidding(found, Conclusion("verdict", "", rests_on, basis))))


def refused_rows(rows: Sequence[Row]) -> frozenset[tuple[str, str]]:
    """The rows, by run and request type, of every setting of which gates refuse some run, or the whole sweep."""
    settings: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.request != ALL:
            settings.setdefault((row.part, *(getattr(row, name) for name in FACTORS)), []).append(row)
    machine = _machine(tuple(rows), mean_latency_us)
    refused = (arm for arm in settings.values() if _refused(machine, [arm], "latency"))
    return frozenset((row.run_id, row.request) for arm in refused for row in arm)


@lru_cache(maxsize=4)
def _machine(rows: tuple[Row, ...], measure: Measure) -> MachineEvidence:
    return machine_evidence(rows, same_settings(rows), measure)


def _judge_family(
    declared: tuple[str, Sequence[Contrast]],
    rows_of: Mapping[str, Sequence[Row]],
    measure: Measure,
    machine: MachineEvidence,
) -> dict[str, Judged]:
    """A family, by its name and all that was declared in it, from the rows of each comparison."""
    name, family = declared
    logs = {contrast.name: block_log_ratios(rows_of[contrast.name], contrast, measure) for contrast in family}
    present = [contrast for contrast in family if contrast.can_be_made and logs[contrast.name]]
    absent = len(family) - len(present)
    results = stats.compare({contrast.name: logs[contrast.name] for contrast in present}, SEED, absent)
    judged = {}
    for contrast, result in zip(present, results, strict=True):
        own = rows_of[contrast.name]
        arms = Arms(tuple(filter(contrast.above.holds, own)), tuple(filter(contrast.below.holds, own)))
        size = (name, len(family))
        evidence = comparison_evidence(arms, contrast.factors, size, logs[contrast.name], result, machine)
        judged[contrast.name] = _judged(contrast, result, arms, evidence)
    return judged


def _judged(contrast: Contrast, result: stats.Comparison, arms: Arms, evidence: ComparisonEvidence) -> Judged:
    """The comparison as far as the gates let it be decided."""
    own = arms.above + arms.below
    limited = any(row.load_limited for row in own)
    starved = len({row.block for row in own if _is_of_some_clients(row)})
    refused = tuple(verdict_refused(evidence))
    if starved or refused:
        mended = not starved and all(refusal.gate in MORE_BLOCKS_MEND for refusal in refused)
        needed = (
            (result.blocks_needed or stats.blocks_needed(evidence.log_ratios, evidence.family_size)) if mended else None
        )
        result = replace(result, verdict=stats.Verdict.INCONCLUSIVE, blocks_needed=needed)
    return Judged(contrast, result, limited, starved, refused, replace(evidence, verdict=result.verdict))


def same_settings(rows: Sequence[Row]) -> list[Arms]:
    """The settings that were run twice in each block, to see what the instrument makes of no difference at all."""
    again = {"same": 0, "same_again": 1, "figure_2": 1, "figure_4": 1}
    own = [row for row in rows if row.part in again and row.request != ALL]
    by_setting: dict[tuple[object, ...], tuple[list[Row], list[Row]]] = {}
    for row in own:
        key = tuple(getattr(row, name) for name in FACTORS)
        by_setting.setdefault(key, ([], []))[again[row.part]].append(row)
    return [Arms(tuple(above), tuple(below)) for above, below in by_setting.values() if above and below]


def _is_of_some_clients(row: Row) -> bool:
    """Whether its latency is that of some clients alone, the others having had no reply.

    No gate refuses that: starved clients are no error, every law holds of those that send, and a run may be made to
    count them. But a comparison is declared of all its clients.
    """
    return row.starved_clients > 0


def block_log_ratios(rows: Iterable[Row], contrast: Contrast, measure: Measure) -> list[float]:
    """The comparison in every block that has both of its cells."""
    found = list(rows)
    above, below = by_block(found, contrast.above, measure), by_block(found, contrast.below, measure)
    if contrast.per_client:
        above = {block: value / contrast.above.clients for block, value in above.items()}
        below = {block: value / contrast.below.clients for block, value in below.items()}
    return stats.log_ratios(above, below)


def latency_by_block(rows: Iterable[Row], cell: Cell) -> dict[int, float]:
    """Mean latency in µs by block, where there was any reply."""
    return by_block(rows, cell, mean_latency_us)


def by_block(rows: Iterable[Row], cell: Cell, measure: Measure) -> dict[int, float]:
    """One measure of a cell by block; blocks that lack it are left out."""
    values = ((row.block, measure(row)) for row in rows if cell.holds(row))
    return {block: value for block, value in values if value is not None}
