"""The replication card: the document's nine conclusions, its stress test, and its closing sentence.

Verdicts on declared ratios make a claim CONFIRMED or CONTRADICTED. Errors and wrong keys decide the claim on the stress
test. With too few blocks a ratio has no verdict, and decides nothing. A cell is a fresh server under one load. A claim
about every cell is CONFIRMED where the verdict on each cell agrees with the claim, and CONTRADICTED where the verdict
on one cell disagrees. One ratio over all cells decides a claim about all cells together. For a claim with the word
"far" or "much" this module sets a bound. A claim is NOT TESTABLE where a server that the claim needs is not built here.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from experiments.judge.stress import StressJudged
from experiments.judge.table import CellJudged, TableJudged
from experiments.judge.verdicts import Verdict
from experiments.show.content import Claim, ClaimVerdict, Entry, Finding, Seen, decided, not_measured
from experiments.show.numbers import TOO_FEW, has_interval, number, ratio_with_ends, ratio_words
from experiments.studies.pools import original
from experiments.studies.pools.design import BOTH, FEW, MANY, VERBS


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements that decide the claims."""

    seen: Seen
    """Measurements of the part."""
    cells: TableJudged
    """Judged cells of the part."""


EXECUTORS = "executors"
"""Name of the part of the study ``stock`` that compares a thread for each request with pools."""

POOL_SAVES = "A pool saves what creating a thread for each request costs (4)."

NOT_HERE = "A server that it needs is not built here: `make peers` says how. Then `python -m experiments run pools`."

NOT_MEASURED = "Not measured in this run: `python -m experiments run pools`."

ALMOST = 0.9
"""Least share of the cells that confirms a claim with the words "almost always". A cell is a fresh server under one
load.
"""

FAR_LESS = 0.9
"""Largest ratio of processor use that counts as "far less". In the document, with 2 threads, the ratio Rust ÷ Go is
0.89, as the geometric mean of six cells.
"""

MUCH_LESS = 1 / 1.5
"""Largest ratio of memory that counts as "much less". In the document's 36 pairs of cells the ratio Rust ÷ Go is at
most 0.61.
"""

MUCH_MORE = 10.0
"""Least growth of latency up to 1,000 connections that counts as "much". In the document the latency with 1,000
connections is about ten times the latency with 100 connections, and far more than ten times the latency with 10
connections.
"""

SAMPLES_MIN = sum(row.samples for row in original.JMETER if row.kind == "TOTAL") // len(BOTH)
"""Least number of requests to each server with which the stress test decides its claim."""


def claims(seen: Seen) -> tuple[Claim, ...]:
    """Every claim, in the document's order."""
    return _pool_saves_threads(seen), *(_claim(entry, seen) for entry in ENTRIES)


def _claim(entry: Entry[Measured], seen: Seen) -> Claim:
    """Claim with its verdict. Where the claim is a numbered conclusion, its sentences end with the size of a cell: the
    document drew these conclusions from its tables of cells.
    """
    cells = seen.of(TableJudged)
    if cells is None:
        return Claim(entry.text, "NOT TESTABLE", NOT_MEASURED)
    if not all(any(cell.setting["language"] == each for cell in cells.plan.cells) for each in BOTH):
        return Claim(entry.text, "NOT TESTABLE", NOT_HERE)
    claim = entry.claim(Measured(seen, cells))
    return replace(claim, said=f"{claim.said} {_size(cells)}") if entry.text[0].isdigit() else claim


def _pool_saves_threads(seen: Seen) -> Claim:
    """Claim that a pool saves the cost of a thread for each request. The part ``executors`` decides the claim, by its
    comparisons of a thread for each request with the thread pool."""
    if EXECUTORS not in seen.beside:
        return not_measured(POOL_SAVES, EXECUTORS)
    judgement = seen.beside[EXECUTORS]
    asked = [
        each.name
        for each in judgement.sweep.comparisons
        if [arm.setting["executor"] for arm in (each.above, each.below)] == ["thread-per-task", "thread-pool"]
    ]
    judged = [judgement.judged[name] for name in asked if name in judgement.judged]
    if not judged:
        return Claim(POOL_SAVES, "INCONCLUSIVE", "No block passed the gates.")
    values, verdicts = [one.typical.value for one in judged], [one.verdict for one in judged]
    slower = verdicts.count(Verdict.SLOWER)
    said = (
        f"In Python: a new thread for each request takes {number(min(values))} to {number(max(values))} times the "
        f"time of a thread pool; {slower} of {len(asked)} comparisons are SLOWER. From the part `{EXECUTORS}`. "
        "Servers in Rust and Go were not varied."
    )
    refuted = Verdict.FASTER in verdicts or Verdict.EQUIVALENT in verdicts
    return Claim(POOL_SAVES, decided(slower == len(asked), refuted), said)


def _size(cells: TableJudged) -> str:
    """Sentence on the number of requests in a cell, and on a cell's duration in seconds, here and in the document."""
    own = [cell for cell in cells.plan.cells if cell.setting["language"] in BOTH]
    requests = sorted({cell.requests for cell in own})
    lasted = [each.value for cell in own if (each := cells.estimate(cell, "total_s")) is not None]
    theirs = [row.total_s for table in original.TABLES.values() for row in table]
    many = f"{requests[0]:,}" if len(requests) == 1 else f"{requests[0]:,} to {requests[-1]:,}"
    seconds = f"{number(min(lasted))} to {number(max(lasted))} s" if lasted else "no time"
    return (
        f"A cell has {many} requests in {seconds}, {len(cells.blocks)} times. In the document it has "
        f"{original.REQUESTS:,} in {min(theirs):.3g} to {max(theirs):.3g} s, once."
    )


def all_are(wanted: Verdict, judged: Sequence[CellJudged | None], bound: float = 1.0) -> ClaimVerdict:
    """Verdict on a claim that all ratios lie under a bound (``wanted`` is LESS) or over a bound (``wanted`` is MORE).

    CONFIRMED where each ratio has the verdict ``wanted``, and an interval on the claim's side of the bound.
    CONTRADICTED where a ratio has the opposite verdict, or an interval on the other side of the bound. A ratio with the
    verdict EQUIVALENT contradicts the claim, unless its interval lies on the claim's side; then the ratio decides
    nothing.
    """
    return joined([_one_is(wanted, each, bound) for each in judged])


def _one_is(wanted: Verdict, judged: CellJudged | None, bound: float) -> ClaimVerdict:
    """Verdict on a claim, from one of the ratios that ``all_are`` joins."""
    if judged is None or judged.verdict in (None, Verdict.INCONCLUSIVE):
        return "INCONCLUSIVE"
    seen, less = judged.seen, wanted is Verdict.LESS
    is_beyond, is_short = (seen.high < bound, seen.low >= bound) if less else (seen.low > bound, seen.high <= bound)
    if judged.verdict is Verdict.EQUIVALENT:
        return "INCONCLUSIVE" if is_beyond else "CONTRADICTED"
    is_against = judged.verdict is not wanted or is_short
    return decided(is_beyond and not is_against, is_against)


def joined(parts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """Verdict on a claim whose parts must all hold, from the verdicts on the parts."""
    return decided(set(parts) == {"CONFIRMED"}, "CONTRADICTED" in parts)


def words(judged: CellJudged | None) -> str:
    """Text of a ratio of cells: ``Rust ÷ Go is 0.81 (0.79 to 0.83, LESS)``."""
    if judged is None:
        return "a ratio: not measured"
    value, between = ratio_words(judged.seen)
    interval = between if has_interval(judged.seen) else TOO_FEW
    if judged.verdict is None:
        return f"{judged.ratio.title}: no verdict, {value} ({interval})"
    return f"{judged.ratio.title} is {value} ({interval}, {judged.verdict.value})"


def _each(cells: TableJudged, name: str) -> list[CellJudged | None]:
    """Judged ratios with this name in Rust and in Go, the document's languages. None for a ratio without a value."""
    return [cells.judged.get(f"{name}_{language}") for language in BOTH]


def _told(judged: Sequence[CellJudged | None]) -> str:
    return "; ".join(words(each) for each in judged)


def _processor(name: str, wanted: Verdict) -> Callable[[Measured], Finding]:
    """Function that judges a claim by the share of the processor, with one ratio in each language. The text also has
    the ratios of processor time a request.

    ``name``: first words of the ratios' names. ``wanted``: verdict that confirms the claim.
    """

    def finding(of: Measured) -> Finding:
        judged = _each(of.cells, f"{name}_cpu_percent")
        beside = _told(_each(of.cells, f"{name}_cpu_us"))
        said = f"Share of the processor, all cores free: {_told(judged)}. Processor time a request: {beside}."
        return all_are(wanted, judged), said

    return finding


def _go_leads_past_the_threads(of: Measured) -> Finding:
    few, many = (of.cells.judged.get(f"crossing_{pool}") for pool in (FEW, MANY))
    return (
        joined([all_are(Verdict.LESS, [few], FAR_LESS), all_are(Verdict.MORE, [many])]),
        f"Share of the processor: {words(few)}; {words(many)}. Far less is {FAR_LESS:g} or under here. "
        "On two cores it is NOT TESTABLE from which pool on Go takes less: the document's machine had more cores.",
    )


def _pool_takes_memory(of: Measured) -> Finding:
    """Finding on the claim that a larger pool takes more memory, and that the factor is larger in Rust. The finding
    rests on the growth of memory in both languages. A larger factor in Go contradicts the claim."""
    judged = rust, go = _each(of.cells, "pool_memory_mib")
    verdict = all_are(Verdict.MORE, judged)
    if rust is not None and go is not None and verdict == "CONFIRMED" and rust.seen.low <= go.seen.high:
        verdict = "CONTRADICTED" if rust.seen.high < go.seen.low else "INCONCLUSIVE"
    return verdict, f"Memory: {_told(judged)}."


def _every_cell(cells: TableJudged, quantity: str) -> list[CellJudged | None]:
    """Judged ratios Rust ÷ Go of a quantity, one for each cell: first of GET, then of PUT."""
    families = [f"each {quantity} of {verb}" for verb in VERBS]
    names = [ratio.name for family in families for ratio in cells.plan.ratios if ratio.family == family]
    return [cells.judged.get(name) for name in names]


def _counts(judged: Sequence[CellJudged | None]) -> str:
    """Text of the number of cells by verdict: ``LESS in 17 of 18 cells, EQUIVALENT in 1``."""
    said = Counter(
        "not measured" if each is None else each.verdict.value if each.verdict else "no verdict" for each in judged
    )
    first, *others = (f"{name} in {count}" for name, count in said.items())
    return ", ".join((f"{first} of {len(judged)} cells", *others))


def _rust_takes_less_memory(of: Measured) -> Finding:
    judged = _every_cell(of.cells, "memory_mib")
    together = words(of.cells.judged.get("rust_go_memory"))
    highest = max((each.seen.high for each in judged if each is not None and has_interval(each.seen)), default=None)
    ends = f"; the highest end of an interval is {highest:.2f}" if highest is not None else ""
    return (
        all_are(Verdict.LESS, judged, MUCH_LESS),
        f"Rust ÷ Go: {_counts(judged)}{ends}. Much less is under {MUCH_LESS:.2f} here. Together {together}.",
    )


def _by_turns(seen: Seen) -> str:
    """Sentence on time in Rust ÷ time in Go, from the sweep by turns. In this sweep the load is not the limit. Empty
    where this ratio was not measured.
    """
    own = (seen.main.judged.get(f"rust_go_{verb}") for verb in VERBS)
    told = "; ".join(f"{each.comparison.title} is {ratio_with_ends(each.typical)}" for each in own if each)
    return f"Measured by turns with 1 connection, the load is not the limit: {told}." if told else ""


def _rust_is_faster(of: Measured) -> Finding:
    """Finding on the claim that Rust answers sooner. The finding rests on the ratio Rust ÷ Go of the time of a request,
    in every cell. As in the document, times are of client and server together."""
    judged = _every_cell(of.cells, "response_ms")
    together = "; ".join(words(of.cells.judged.get(f"rust_go_response_ms_{verb}")) for verb in VERBS)
    broken = len(original.rust_not_faster("put"))
    return (
        all_are(Verdict.LESS, judged),
        f"Rust ÷ Go: {_counts(judged)}. Together: {together}. Table 2 of the document contradicts the claim in "
        f"{broken} of 18 cells. "
        f"{_limited(of.cells)} {_by_turns(of.seen)}".rstrip(),
    )


def _limited(cells: TableJudged) -> str:
    """Sentence on the number of cells in which the load was near its limit."""
    own = [cell for cell in cells.plan.cells if cell.pinned and cell.setting["language"] in BOTH]
    over = sum(cells.is_load_limited(cell) for cell in own)
    return (
        f"In {over} of the {len(own)} cells of both languages the load took over 80 % of its core. Such times are of "
        "client and server together, as in the document: there is no verdict on the servers, and no such ratio is "
        "EQUIVALENT."
    )


def _rust_transfers_more(of: Measured) -> Finding:
    judged = _every_cell(of.cells, "received_kb_s")
    verdicts = [each.verdict for each in judged if each is not None]
    more, less = (verdicts.count(each) / max(1, len(judged)) for each in (Verdict.MORE, Verdict.LESS))
    return (
        decided(more >= ALMOST, less > 1 - ALMOST),
        f"Bytes received a second, Rust ÷ Go: {_counts(judged)}. {_limited(of.cells)} All requests have one size, so "
        "the ratio is that of the claim on time, and bytes sent have the same ratio.",
    )


def _many_connections(of: Measured) -> Finding:
    connecting, processed = (_each(of.cells, f"connections_{each}") for each in ("connect_ms", "processing_ms"))
    connect, processing = (of.cells.judged.get(f"last_{each}") for each in ("connect_ms", "processing_ms"))
    bounded = all_are(Verdict.MORE, [*connecting, *processed], MUCH_MORE)
    told = {"CONFIRMED": "All grow much", "CONTRADICTED": "Not all grow much", "INCONCLUSIVE": "Growth is not decided"}
    return (
        joined([bounded, all_are(Verdict.MORE, [connect]), all_are(Verdict.LESS, [processing])]),
        f"{told[bounded]}. Connecting: {_told(connecting)}. Processing: {_told(processed)}. "
        f"Much is over {MUCH_MORE:g} times here. Connecting and processing together take N ÷ throughput: "
        "100 times the connections take 100 times as long at the same throughput, whatever the server does. "
        f"The two languages: connecting, {words(connect)}; processing, {words(processing)}.",
    )


def _put_takes_more(of: Measured) -> Finding:
    judged = _each(of.cells, "put_get_cpu_us")
    return (
        all_are(Verdict.MORE, judged),
        f"Processor time a request: {_told(judged)}. Memory is not compared: one process answers GET and PUT.",
    )


def _no_errors(of: Measured) -> Finding:
    stress = of.seen.of(StressJudged)
    if stress is None:
        return "NOT TESTABLE", NOT_MEASURED
    own = [server for server in stress.plan.servers if server["language"] in BOTH]
    rows = [row for row in stress.rows if row.server in own and row.kind == "TOTAL"]
    errors, wrong = sum(row.errors for row in rows), sum(stress.wrong[server] for server in own)
    right = sum(stress.right[server] for server in own)
    least = min((row.samples for row in rows), default=0)
    verdict: ClaimVerdict = "CONTRADICTED" if errors or wrong else "CONFIRMED"
    return (
        verdict if least >= SAMPLES_MIN else "INCONCLUSIVE",
        f"{errors} errors in {sum(row.samples for row in rows):,} requests, and {right:,} of {right + wrong:,} keys "
        f"had a value of a writer. The verdict needs {SAMPLES_MIN:,} requests for each server; here are {least:,}. "
        "The document looked at errors alone. Its printed update has a data race that errors do not show, see the "
        "README.",
    )


def _rust_wins_otherwise(of: Measured) -> Finding:
    """Finding on the claim that Rust is better in all other respects. The finding rests on the time of a request, the
    memory, and the share of the processor with 64 threads. A time decides nothing where the load was near its limit."""
    names = ("rust_go_response_ms_get", "rust_go_response_ms_put", "rust_go_memory", "crossing_64")
    time_get, time_put, memory, many = (of.cells.judged.get(each) for each in names)
    times = [None if each is None or each.load_limited else each for each in (time_get, time_put)]
    return (
        joined([all_are(Verdict.LESS, [*times, memory]), all_are(Verdict.MORE, [many])]),
        f"Time: {words(time_get)}; {words(time_put)}. Memory: {words(memory)}. Processor: {words(many)}.",
    )


ENTRIES: tuple[Entry[Measured], ...] = (
    Entry("1. A larger pool takes more of the processor, in both languages.", _processor("pool", Verdict.MORE)),
    Entry(
        "2. Rust takes far less of the processor until the pool has more threads than the system; then Go takes less.",
        _go_leads_past_the_threads,
    ),
    Entry(
        "3. With a pool of fixed size, more connections take less of the processor, in both languages.",
        _processor("connections", Verdict.LESS),
    ),
    Entry("4. A larger pool takes more memory in both languages, by a larger factor in Rust.", _pool_takes_memory),
    Entry("5. Rust takes much less memory in every case.", _rust_takes_less_memory),
    Entry("6. Rust answers faster on average in every case.", _rust_is_faster),
    Entry(
        "7. Rust almost always has a higher transfer rate than Go, for received and for sent bytes.",
        _rust_transfers_more,
    ),
    Entry(
        "8. With 1,000 connections latency grows much, and processing gets slower. Go connects sooner than Rust, but "
        "processes slower.",
        _many_connections,
    ),
    Entry("9. A PUT takes more resources than a GET.", _put_takes_more),
    Entry("Stress test: both servers answer 40,000 requests of three kinds with 0 % errors, so they work.", _no_errors),
    Entry(
        "Closing: Go is the better choice where the pool must grow; Rust is better in all other respects.",
        _rust_wins_otherwise,
    ),
)
"""The document's conclusions from its tables, its stress test, and its closing sentence, in the document's order."""
