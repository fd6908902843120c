"""The replication card: the document's nine conclusions, what its stress test is to show, and its closing sentence.

CONFIRMED and CONTRADICTED come from verdicts on declared ratios alone, so never from too few blocks. A claim about
every cell is confirmed where every cell's verdict says so, and contradicted by one whose verdict is another; one about
all cells together goes by one ratio. A claim that needs a server that is not built here is NOT TESTABLE.
"""

from collections.abc import Callable, Mapping, Sequence

from experiments.judge.cells import CellJudged, CellsJudged, CellVerdict
from experiments.show.content import Claim, ClaimVerdict, Seen, Theme
from experiments.show.numbers import has_interval, ratio_words
from experiments.studies.pools import original
from experiments.studies.pools.sweeps import FEW, MANY, VERBS

Finding = tuple[ClaimVerdict, str]

BOTH = ("rust", "go")

NOT_HERE = "A server that it needs is not built here: `make peers` says how. Then `python -m experiments run pools`."

NOT_MEASURED = "Not measured in this run: `python -m experiments run pools`."

ALMOST = 0.9
"""Of the cells, for a claim that says almost always."""


def claims(seen: Seen) -> tuple[Claim, ...]:
    """Every claim, in the document's order."""
    return tuple(Claim(text, *_finding(seen, finding), THEMES.get(finding)) for text, finding in ENTRIES.items())


def _finding(seen: Seen, finding: Callable[[Seen, CellsJudged], Finding]) -> Finding:
    if seen.cells is None:
        return "NOT TESTABLE", NOT_MEASURED
    if not all(any(cell.setting["language"] == each for cell in seen.cells.plan.cells) for each in BOTH):
        return "NOT TESTABLE", NOT_HERE
    return finding(seen, seen.cells)


def all_are(wanted: CellVerdict, judged: Sequence[CellJudged | None]) -> ClaimVerdict:
    """CONFIRMED where all are as wanted, CONTRADICTED where one is decided otherwise."""
    verdicts = [None if each is None else each.verdict for each in judged]
    if any(each is not None and each not in (wanted, "INCONCLUSIVE") for each in verdicts):
        return "CONTRADICTED"
    return "CONFIRMED" if all(each == wanted for each in verdicts) else "INCONCLUSIVE"


def words(judged: CellJudged | None, label: str = "") -> str:
    """``Rust ÷ Go is 0.81 (0.79 to 0.83, LESS)``."""
    if judged is None:
        return f"{label or 'a ratio'}: not measured"
    value, between = ratio_words(judged.seen)
    interval = f"{between}, " if has_interval(judged.seen) else ""
    return f"{label or judged.ratio.title} is {value} ({interval}{judged.verdict or 'no verdict'})"


def _each(cells: CellsJudged, name: str) -> list[CellJudged | None]:
    """A ratio of both languages."""
    return [cells.judged.get(f"{name}_{language}") for language in BOTH]


def _told(judged: Sequence[CellJudged | None]) -> str:
    return "; ".join(words(each) for each in judged)


def _pool_takes_processor(_: Seen, cells: CellsJudged) -> Finding:
    judged = _each(cells, "pool_cpu_percent")
    beside = _told(_each(cells, "pool_cpu_us"))
    said = f"Share of the processor, all cores free: {_told(judged)}. Processor time a request: {beside}."
    return all_are("MORE", judged), said


def _go_leads_past_the_threads(_: Seen, cells: CellsJudged) -> Finding:
    few, many = (cells.judged.get(f"crossing_{pool}") for pool in (FEW, MANY))
    parts = all_are("LESS", [few]), all_are("MORE", [many])
    verdict: ClaimVerdict = "CONTRADICTED" if "CONTRADICTED" in parts else "INCONCLUSIVE"
    verdict = "CONFIRMED" if parts == ("CONFIRMED", "CONFIRMED") else verdict
    return verdict, (
        f"Share of the processor: {words(few)}; {words(many)}. At which pool in between Go takes over is NOT "
        "TESTABLE on two cores: the document's machine had more."
    )


def _connections_take_less(_: Seen, cells: CellsJudged) -> Finding:
    judged = _each(cells, "connections_cpu_percent")
    beside = _told(_each(cells, "connections_cpu_us"))
    said = f"Share of the processor, all cores free: {_told(judged)}. Processor time a request: {beside}."
    return all_are("LESS", judged), said


def _pool_takes_memory(_: Seen, cells: CellsJudged) -> Finding:
    judged = rust, go = _each(cells, "pool_memory_mib")
    verdict = all_are("MORE", judged)
    if rust is not None and go is not None and verdict == "CONFIRMED" and rust.seen.low <= go.seen.high:
        verdict = "CONTRADICTED" if rust.seen.high < go.seen.low else "INCONCLUSIVE"
    return verdict, f"Memory: {_told(judged)}."


def _every_cell(cells: CellsJudged, quantity: str) -> list[CellJudged | None]:
    return [
        cells.judged.get(ratio.name)
        for verb in VERBS
        for ratio in cells.plan.ratios
        if ratio.family == f"each {quantity} of {verb}"
    ]


def _counts(judged: Sequence[CellJudged | None]) -> str:
    """``LESS in 17 of 18 cells, SAME in 1``."""
    said = [each.verdict or "no verdict" if each else "not measured" for each in judged]
    found: Mapping[str, int] = {each: said.count(each) for each in dict.fromkeys(said)}
    first, *others = (f"{name} in {count}" for name, count in found.items())
    return ", ".join((f"{first} of {len(judged)} cells", *others))


def _rust_takes_less_memory(_: Seen, cells: CellsJudged) -> Finding:
    judged = _every_cell(cells, "memory_mib")
    return all_are(
        "LESS", judged
    ), f"Rust ÷ Go: {_counts(judged)}. Together {words(cells.judged.get('rust_go_memory'))}."


def _rust_is_faster(_: Seen, cells: CellsJudged) -> Finding:
    judged = _every_cell(cells, "response_ms")
    together = "; ".join(words(cells.judged.get(f"rust_go_response_ms_{verb}")) for verb in VERBS)
    broken = len(original.rust_not_faster("put"))
    return all_are("LESS", judged), (
        f"Rust ÷ Go: {_counts(judged)}. Together: {together}. Its table 2 has {broken} of 18 otherwise. "
        f"{_limited(cells)}"
    )


def _limited(cells: CellsJudged) -> str:
    """In how many cells the load was near its limit."""
    own = [cell for cell in cells.plan.cells if cell.pinned and cell.setting["language"] in BOTH]
    over = sum(cells.is_load_limited(cell) for cell in own)
    return (
        f"In {over} of {len(own)} cells of both the load took over 80 % of its core: such times are of client and "
        "server together."
    )


def _rust_transfers_more(_: Seen, cells: CellsJudged) -> Finding:
    judged = _every_cell(cells, "received_kb_s")
    verdicts = [each.verdict for each in judged if each is not None]
    more, less = (verdicts.count(each) / max(1, len(judged)) for each in ("MORE", "LESS"))
    verdict: ClaimVerdict = "CONTRADICTED" if less > 1 - ALMOST else "INCONCLUSIVE"
    verdict = "CONFIRMED" if more >= ALMOST else verdict
    return verdict, (
        f"Bytes received a second, Rust ÷ Go: {_counts(judged)}. All requests have one size: this is the claim on the "
        "time again, and bytes sent say nothing else."
    )


def _many_connections(_: Seen, cells: CellsJudged) -> Finding:
    grows = [*_each(cells, "connections_connect_ms"), *_each(cells, "connections_processing_ms")]
    connect, processing = (cells.judged.get(f"last_{each}") for each in ("connect_ms", "processing_ms"))
    parts = [all_are("MORE", grows), all_are("MORE", [connect]), all_are("LESS", [processing])]
    verdict: ClaimVerdict = "CONTRADICTED" if "CONTRADICTED" in parts else "INCONCLUSIVE"
    verdict = "CONFIRMED" if set(parts) == {"CONFIRMED"} else verdict
    return verdict, (
        f"Both grow: {_told(grows)}. A hundred times the connections take a hundred times as long by arithmetic. "
        f"Connecting, {words(connect)}; processing, {words(processing)}."
    )


def _put_takes_more(_: Seen, cells: CellsJudged) -> Finding:
    judged = _each(cells, "put_get_cpu_us")
    memory = _told(_each(cells, "put_get_memory_mib"))
    return all_are("MORE", judged), f"Processor time a request: {_told(judged)}. Memory: {memory}."


def _no_errors(seen: Seen, _: CellsJudged) -> Finding:
    if seen.stress is None:
        return "NOT TESTABLE", NOT_MEASURED
    own = [server for server in seen.stress.plan.servers if server["language"] in BOTH]
    rows = [row for row in seen.stress.rows if row.server in own and row.kind == "TOTAL"]
    errors, wrong = sum(row.errors for row in rows), sum(seen.stress.wrong[server] for server in own)
    right = sum(seen.stress.right[server] for server in own)
    samples = sum(row.samples for row in rows)
    return "CONFIRMED" if not errors and not wrong else "CONTRADICTED", (
        f"{errors} errors in {samples:,} requests, and {right:,} of {right + wrong:,} keys stood as "
        "a writer left them. The document looked at errors alone: its printed update has a data race that they do not "
        "show, see the README."
    )


def _rust_wins_otherwise(_: Seen, cells: CellsJudged) -> Finding:
    names = ("rust_go_response_ms_get", "rust_go_response_ms_put", "rust_go_memory", "crossing_64")
    time_get, time_put, memory, many = (cells.judged.get(each) for each in names)
    parts = [all_are("LESS", [time_get, time_put]), all_are("LESS", [memory]), all_are("MORE", [many])]
    verdict: ClaimVerdict = "CONTRADICTED" if "CONTRADICTED" in parts else "INCONCLUSIVE"
    verdict = "CONFIRMED" if set(parts) == {"CONFIRMED"} else verdict
    return verdict, f"Time: {words(time_get)}; {words(time_put)}. Memory: {words(memory)}. Processor: {words(many)}."


ENTRIES: Mapping[str, Callable[[Seen, CellsJudged], Finding]] = {
    "1. A larger pool takes more of the processor, in both languages.": _pool_takes_processor,
    "2. Rust takes far less of the processor until the pool exceeds the system's threads; then Go does.": (
        _go_leads_past_the_threads
    ),
    "3. At a fixed pool, more connections take less of the processor, in both.": _connections_take_less,
    "4. A larger pool takes more memory in both, in Rust by a larger factor.": _pool_takes_memory,
    "5. Rust takes much less memory in every case.": _rust_takes_less_memory,
    "6. Rust answers faster on average in every case.": _rust_is_faster,
    "7. Rust's transfer rate is higher almost always, received and sent.": _rust_transfers_more,
    "8. With 1,000 connections latency grows much and processing slows; Go connects sooner and processes slower.": (
        _many_connections
    ),
    "9. A PUT takes more resources than a GET.": _put_takes_more,
    "Stress test: both servers answer 40,000 requests of three kinds with 0 % errors, so they work.": _no_errors,
    "Closing: Go is the choice where the pool must grow; Rust is ahead in all else.": _rust_wins_otherwise,
}
"""Every claim of the document, in its order."""

THEMES: Mapping[Callable[[Seen, CellsJudged], Finding], Theme] = {
    _pool_takes_processor: Theme.POOL,
    _put_takes_more: Theme.WRITING,
}
"""What a claim is about that other documents have claims about too."""
