"""The report's tables, as Markdown: what each setting measured, how each comparison was judged, what the lock cost.

Rules: a number stands with its 95 % interval over runs where it is a mean of them; what was not measured is a dash; a
latency that the load side limited is marked, and so is a line of which gates refuse some run. Left out: sentences.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from experiments import stats
from experiments.figures.series import Point, p99_us, point, request_types
from experiments.figures.style import LIMITED_MARK, REFUSED_MARK, look
from experiments.gates import GATES
from experiments.results import ALL, Row
from experiments.stats import Verdict
from experiments.studies.stock.comparisons import MORE_BLOCKS_MEND, Judged, runs_refused
from experiments.studies.stock.growth import violates_littles_law
from experiments.studies.stock.questions import Answer, LockCost
from experiments.studies.stock.wording import TOGETHER, ends_text, gates_text, number, starved_text

NOTHING = "–"
LIMITED_NOTE = (
    f"{LIMITED_MARK} In some run the clients took over 80 % of their core: {TOGETHER}. No claim about the server’s "
    "capacity."
)
LITTLE_MARK = "‡"
LITTLE_NOTE = (
    f"{LITTLE_MARK} In some run Little’s law does not hold to within 2 %: clock or counting are in doubt there, and "
    "what is said of N ÷ throughput does not stand."
)
TYPES_NOTE = (
    "Replies/s is of the line’s own request type, N/X of all types of its runs together: in each run, N ÷ the sum of "
    "the types’ replies a second. Both are means over runs."
)
ARRIVED_NOTE = (
    "Replies/s of an open loop: the replies that came within the window ÷ its length, which the figure calls achieved. "
    "Both are means over runs. The load side waits awake for what is due, so that its share of a core says nothing and "
    f"no line is marked {LIMITED_MARK}: the late sends tell."
)

Cells = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A factor that a part varies, and how its levels are written."""

    head: str
    of: Callable[[Row], str]
    rank: Callable[[Row], float | str]


def _offered_hz(row: Row) -> float:
    """For the order of lines: a closed loop, which offers no rate, comes first."""
    return 0.0 if row.rate_hz is None else row.rate_hz


_FACTORS: tuple[Column, ...] = (
    Column("Service", lambda row: row.service, lambda row: row.service),
    Column("Server", lambda row: look(row.transport).label, lambda row: row.transport),
    Column("Request", lambda row: row.request.capitalize(), lambda row: row.request),
    Column("Mix", lambda row: row.mix.replace(",", " "), lambda row: row.mix),
    Column("Locking", lambda row: row.locking, lambda row: row.locking),
    Column("Executor", lambda row: row.executor, lambda row: row.executor),
    Column("Pool", lambda row: str(row.workers), lambda row: row.workers),
    Column("Task", lambda row: row.dispatch, lambda row: row.dispatch),
    Column("Connection", lambda row: row.connection, lambda row: row.connection),
    Column("Updater", lambda row: "yes" if row.updater else "no", lambda row: int(row.updater)),
    Column("Stamped", lambda row: "yes" if row.timeline else "no", lambda row: int(row.timeline)),
    Column("Client", lambda row: row.client, lambda row: row.client),
    Column("Loop", lambda row: row.loop, lambda row: row.loop),
    Column("Arrivals", lambda row: row.arrivals or NOTHING, lambda row: row.arrivals),
    Column("Offered, 1/s", lambda row: NOTHING if row.rate_hz is None else f"{row.rate_hz:,g}", _offered_hz),
    Column("Connections", lambda row: str(row.connections), lambda row: row.connections),
    Column("Clients", lambda row: str(row.clients), lambda row: row.clients),
)

_MEASURES: Cells = (
    "Mean, ms",
    "95 % interval",
    "Median, ms",
    "p99, ms",
    "N/X, ms",
    "Replies/s",
    "Server CPU, µs/request",
    "Errors",
    "Starved",
    "Load side, % of a core",
)


_LATE: Cells = ("Late sends, p99, µs: median run, worst",)
"""Of an open loop."""

_TYPICAL = "Typical wait (geometric mean), µs"


def markdown_table(head: Cells, lines: Iterable[Cells], left: int = 1) -> str:
    """A table; the first ``left`` columns are text, the others numbers, set to the right."""
    rule = [":---" if column < left else "---:" for column in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *lines))


def measured_table(rows: Sequence[Row], sweep: Sequence[Row] = ()) -> str:
    """Every setting of a part: the factors that vary in it, and what was measured.

    ``sweep`` is every row of the sweep that they are of, by which the gates judge each line's runs; without it no gate
    is asked. ValueError where two runs of one block would share a line: what tells them apart is no column.
    """
    types = request_types(rows) or [ALL]
    own = [row for row in rows if row.request in types]
    varied = [column for column in _FACTORS if len({column.of(row) for row in own}) > 1 or _is_told(column, own)]
    settings: dict[tuple[float | str, ...], list[Row]] = {}
    for row in own:
        settings.setdefault(tuple(column.rank(row) for column in varied), []).append(row)
    for found in settings.values():
        _one_run_a_block(found)
    late = _LATE if any(row.late_us_p99 is not None for row in own) else ()
    lines, gates = [], set()
    for _, found in sorted(settings.items()):
        refused = {refusal.gate for refusal in runs_refused(sweep, [found])} if sweep else set()
        gates |= refused
        factors = (column.of(found[0]) for column in varied)
        lines.append((*factors, *_measured(found, bool(refused)), *(_late(found) for _ in late)))
    table = markdown_table((*(column.head for column in varied), *_MEASURES, *late), lines, len(varied))
    return "\n\n".join((table, *_notes(own, gates)))


def _is_told(column: Column, rows: Sequence[Row]) -> bool:
    """What is said where it does not vary too: how many sent."""
    return column.head == "Clients" or (column.head == "Connections" and rows[0].connections > 1)


def _notes(rows: Sequence[Row], gates: Collection[int]) -> Iterator[str]:
    """What the marks of a table mean, and numbers that do not say it themselves."""
    if any(row.load_limited for row in rows):
        yield LIMITED_NOTE
    if any(map(violates_littles_law, rows)):
        yield LITTLE_NOTE
    if gates:
        yield _refused_note(gates)
    if any("," in row.mix for row in rows):
        yield TYPES_NOTE
    if any(row.loop == "open" for row in rows):
        yield ARRIVED_NOTE


def _refused_note(gates: Collection[int]) -> str:
    named = "; ".join(f"gate {gate.number}: {gate.name}" for gate in GATES if gate.number in gates)
    return (
        f"{REFUSED_MARK} Refused by a gate ({named}), for some run of the line or for the whole sweep: no verdict "
        "rests on its numbers."
    )


def _one_run_a_block(rows: Sequence[Row]) -> None:
    """ValueError unless these are one setting's: of one request type, once in a block at most."""
    seen: dict[tuple[int, str], Row] = {}
    for row in rows:
        other = seen.setdefault((row.block, row.request), row)
        if other is not row:
            raise ValueError(f"{row.part}: runs {other.run_id} and {row.run_id} of block {row.block} on one line")


def _replies_hz(row: Row) -> float:
    """Replies a second of the row's own type. In an open loop those that came within the window, of all types: of the
    requests that were due in it, all may be answered, however late."""
    return row.throughput_all_hz if row.loop == "open" else row.throughput_hz


def _measured(rows: Sequence[Row], refused: bool) -> Cells:
    mean = point(rows, lambda row: row.response_us_mean, 0)
    marks = (LIMITED_MARK if any(row.load_limited for row in rows) else "") + (REFUSED_MARK if refused else "")
    errors = sum(row.errors for row in rows)
    starved = [row.starved_clients for row in rows]
    share = point(rows, lambda row: row.client_cpu_share, 0)
    return (
        _ms(mean) + (marks if mean else ""),
        _interval_ms(mean),
        _ms(point(rows, lambda row: row.response_us_p50, 0)),
        _ms(point(rows, p99_us, 0)),
        _ms(point(rows, lambda row: row.n_over_x_us, 0))
        + (LITTLE_MARK if any(map(violates_littles_law, rows)) else ""),
        _plain(point(rows, _replies_hz, 0)),
        _plain(point(rows, lambda row: row.server_cpu_us_per_request, 0)),
        str(errors),
        f"{min(starved)}" if min(starved) == max(starved) else f"{min(starved)}–{max(starved)}",
        f"{100 * share.value:.0f}" if share else NOTHING,
    )


def _late(rows: Sequence[Row]) -> str:
    """The 99th percentile of the late sends: of the typical run, and of the worst."""
    late_us = [row.late_us_p99 for row in rows if row.late_us_p99 is not None]
    return f"{number(median(late_us))}, {number(max(late_us))}" if late_us else NOTHING


def verdict_table(compared: Sequence[Judged]) -> str:
    """How each comparison was judged."""
    lines = [
        (
            judged.contrast.text + (f" {LIMITED_MARK}" if judged.load_limited else ""),
            _verdict(judged),
            number(judged.result.ratio.value),
            _ends(judged.result.ratio),
            number(judged.result.p_holm),
            str(judged.result.ratio.n),
        )
        for judged in compared
    ]
    head = ("Ratio of mean latencies", "Verdict", "Ratio", "95 % interval", "p (Holm)", "Blocks")
    table = markdown_table(head, lines, 2)
    return f"{table}\n\n{LIMITED_NOTE}" if any(judged.load_limited for judged in compared) else table


def summary_table(found: Sequence[Answer]) -> str:
    """The four answers at a glance: the comparison that decides each."""
    lines = []
    for answer in found:
        if not answer.deciding:
            lines.append((str(answer.number), answer.question, "not run here", NOTHING, NOTHING))
        for judged in answer.deciding:
            name = judged.contrast.text + (f" {LIMITED_MARK}" if judged.load_limited else "")
            ratio = judged.result.ratio
            lines.append((str(answer.number), name, _verdict(judged), number(ratio.value), _ends(ratio)))
    table = markdown_table(("", "Ratio of mean latencies", "Verdict", "Ratio", "95 % interval"), lines, 3)
    limited = any(judged.load_limited for answer in found for judged in answer.deciding)
    return f"{table}\n\n{LIMITED_NOTE}" if limited else table


def lock_table(costs: Sequence[LockCost]) -> str:
    """What was waited for the lock, and what part of the latency that is."""
    lines = [
        (
            cost.locking,
            cost.request.capitalize(),
            look(cost.transport).label,
            str(cost.clients),
            (number(cost.wait_us.value) if cost.wait_us else "no lock") + (REFUSED_MARK if cost.refused else ""),
            _ends(cost.wait_us) if cost.wait_us else NOTHING,
            number(cost.latency_us.value / 1000)
            + (LIMITED_MARK if cost.load_limited else "")
            + (REFUSED_MARK if cost.refused else ""),
            f"{number(100 * cost.share.value)} %" if cost.share else NOTHING,
        )
        for cost in costs
    ]
    head = ("Strategy", "Request", "Server", "Clients", _TYPICAL, "95 % interval", "Mean latency, ms", "Typical share")
    limited = [LIMITED_NOTE] if any(cost.load_limited for cost in costs) else []
    gates = {refusal.gate for cost in costs for refusal in cost.refused}
    refused = [_refused_note(gates)] if gates else []
    return "\n\n".join((markdown_table(head, lines, 3), *limited, *refused))


def _verdict(judged: Judged) -> str:
    verdict, needed = judged.result.verdict, judged.result.blocks_needed
    if verdict is not Verdict.INCONCLUSIVE:
        return f"**{verdict.value}**"
    why = [gates_text(judged.refused)] if judged.refused else []
    if judged.starved_blocks:
        why.append(starved_text(judged))
    elif all(refusal.gate in MORE_BLOCKS_MEND for refusal in judged.refused):
        why.append(f"about {needed} blocks would decide" if needed else "blocks to decide unknown")
    return f"**{verdict.value}**, {'; '.join(why)}"


def _ms(found: Point | None) -> str:
    return number(found.value / 1000) if found else NOTHING


def _plain(found: Point | None) -> str:
    return number(found.value) if found else NOTHING


def _interval_ms(found: Point | None) -> str:
    if found is None or found.low is None or found.high is None:
        return NOTHING
    return f"{number(found.low / 1000)} to {number(found.high / 1000)}"


def _ends(estimate: stats.Estimate) -> str:
    """A dash where there are too few runs: one, or so few that the interval of a positive quantity crosses zero."""
    if estimate.n < 2 or estimate.low <= 0:
        return NOTHING
    return ends_text(estimate)
