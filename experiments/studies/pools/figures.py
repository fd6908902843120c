"""The figures and tables of the study ``pools``: the document's beside ours, and the document's faults.

The document draws nothing. Its tables 1 and 2 are lines over the pool here, one figure for a column that a conclusion
is about; its figures 1 and 2, pictures of JMeter's tables, are one figure of throughput. One figure more has the
processor time of a request over connections. Every declared ratio has a line. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from experiments.judge.stats import exact
from experiments.judge.stress import StressJudged
from experiments.judge.table import OF_THE_LOAD, CellJudged, TableJudged
from experiments.kinds.table import Cell
from experiments.show.content import Section, Seen
from experiments.show.figures import curves
from experiments.show.figures.curves import Line, Panel, Scale
from experiments.show.figures.style import LIMITED, Picture
from experiments.show.numbers import NOTHING, number, ratio_words
from experiments.show.tables import LIMITED_MARK, LIMITED_NOTE, Table
from experiments.studies.pools import original
from experiments.studies.pools.design import BOTH, CONNECTIONS, LANGUAGES, POOL, POOLS, VERBS

DRAWN = {
    "response_ms": ("response", "Mean time of a request", "Mean time, ms", True),
    "cpu_percent": ("processor", "Processor use of the server, all cores free", "Processor, % of a core", False),
    "memory_percent": ("memory", "Memory of the server", "Memory, % of the machine's", True),
}
"""A column of tables 1 and 2: the figure's name, title and quantity, and if our servers are pinned."""

HOLLOW = f"{LIMITED}; so is all of the document"


def pictures(seen: Seen) -> tuple[Picture, ...]:
    """A figure for each column and request; processor time over connections; throughput under stress."""
    drawn: list[Picture] = []
    if (cells := seen.of(TableJudged)) is not None:
        for quantity, (name, title, unit, pinned) in DRAWN.items():
            ticks = [(float(pool), str(pool)) for pool in POOLS]
            scale = Scale("Threads in the pool", unit, ticks, hollow=HOLLOW, columns=2)
            if quantity == "response_ms":  # ten times the connections wait ten times as long
                scale = replace(scale, shared="row")
            if quantity == "memory_percent":  # servers differ tenfold, and a pool adds a third to one
                scale = replace(scale, log_y=True)
            panels = {verb: list(_panels(cells, quantity, verb, pinned)) for verb in VERBS}
            for verb, own in panels.items():
                told = f"{title}: {verb.upper()}, by the size of the server's pool"
                drawn.append(curves.picture(f"{name}_{verb}", told, scale, own, list(panels.values())))
        drawn.append(_connections(cells))
    if (stress := seen.of(StressJudged)) is not None:
        drawn.append(_stress(stress))
    return tuple(drawn)


def _panels(seen: TableJudged, quantity: str, verb: str, pinned: bool) -> Iterator[Panel]:
    """For each number of connections the document's panel and ours: each language over the pool."""
    for connections in CONNECTIONS:
        levels = (pinned, verb, connections)
        own = [c for c in seen.plan.cells if (c.pinned, c.setting["mix"], c.setting["connections"]) == levels]
        ours = [_line(seen, quantity, language, own) for language in LANGUAGES]
        table = [row for row in original.TABLES[verb] if row.connections == connections]
        theirs = [
            _series(
                language,
                [(float(row.pool), _printed(row, quantity)) for row in table if row.language == language],
                quantity in OF_THE_LOAD,
            )
            for language in BOTH
        ]
        if any(line.points for line in ours):
            yield Panel(f"{connections:,} connections: the document", theirs)
            yield Panel(f"{connections:,} connections: here", [line for line in ours if line.points])


def _connections(seen: TableJudged) -> Picture:
    """Processor time of a request over connections: a row of panels of the document, and one of ours."""
    document, here = list[Panel](), list[Panel]()
    for verb in VERBS:
        table = [row for row in original.TABLES[verb] if row.pool == POOL]
        theirs = [
            _series(
                language, [(float(row.connections), original.cpu_us(row)) for row in table if row.language == language]
            )
            for language in BOTH
        ]
        levels = (True, verb, POOL)
        own = [c for c in seen.plan.cells if (c.pinned, c.setting["mix"], c.setting["workers"]) == levels]
        ours = [_line(seen, "cpu_us", language, own, "connections") for language in LANGUAGES]
        document.append(Panel(f"{verb.upper()}: the document", theirs))
        here.append(Panel(f"{verb.upper()}: here, own scale", [line for line in ours if line.points]))
    ticks = [(float(each), f"{each:,}") for each in CONNECTIONS]
    scale = Scale("Connections", "Processor time, µs", ticks, columns=2, shared="row")
    title = f"Processor time of a request by connections, {POOL} threads"
    return curves.picture("connections", title, scale, [*document, *here])


def _series(language: str, points: Sequence[tuple[float, float]], limited: bool = False) -> Line:
    """Line of the document: its load was at its limit in every cell."""
    return Line(language.capitalize(), "", [(x, exact(y)) for x, y in points], hollow=[x for x, _ in points] * limited)


def _printed(row: original.Row, quantity: str) -> float:
    """Value of a column of the document; means that break Little's law are replaced by those of their totals."""
    return row.little_ms if quantity == "response_ms" else float(getattr(row, quantity))


def _line(seen: TableJudged, quantity: str, language: str, cells: Sequence[Cell], over: str = "workers") -> Line:
    own = sorted((c for c in cells if c.setting["language"] == language), key=lambda c: c.setting.whole(over))
    found = [(float(c.setting.whole(over)), value) for c in own if (value := seen.estimate(c, quantity))]
    limited = [float(c.setting.whole(over)) for c in own if quantity in OF_THE_LOAD and seen.is_load_limited(c)]
    return Line(language.capitalize(), "", found, hollow=limited)


def _stress(seen: StressJudged) -> Picture:
    """Requests a second of each kind, their total in a panel of its own, and errors, which the test is about."""
    kinds = {kind: float(place) for place, kind in enumerate(dict.fromkeys(row.kind for row in seen.rows))}
    kinds |= {"TOTAL": len(kinds) - 0.3}
    total = [row for row in seen.rows if row.kind == "TOTAL"]
    errors, samples = sum(row.errors for row in total), sum(row.samples for row in total)
    theirs = [
        _series(each, [(kinds[row.kind], row.throughput_hz) for row in original.JMETER if row.language == each])
        for each in BOTH
    ]
    ours = [
        Line(
            server.text("language").capitalize(),
            "",
            [(kinds[row.kind], row.throughput_hz) for row in seen.rows if row.server == server],
        )
        for server in seen.plan.servers
    ]
    scale = Scale(
        "TOTAL: all ÷ the whole time",
        "Requests a second",
        [(place, kind.replace(" data", "")) for kind, place in kinds.items()],
        log_x=False,
        joined=False,
        shared="none",
    )
    at = f"{seen.plan.connections:,} connections each"
    panels = [
        Panel("The document: one kind after another; another machine", theirs),
        Panel(f"Here: all kinds at once, {at}; own scale", ours),
    ]
    title = f"Stress test, here: {errors:,} errors in {samples:,} requests to all servers. Rates measure no speed"
    return curves.picture("stress", title, scale, panels)


COLUMNS = {
    "cpu_percent": "avg CPU, %",
    "cpu_percent_max": "max CPU, %",
    "memory_percent": "avg memory, %",
    "memory_percent_max": "max memory, %",
    "total_s": "total, s",
    "response_ms": "mean, ms",
    "received_kb_s": "received, KB/s",
    "sent_kb_s": "sent, KB/s",
    "connect_ms": "connect, ms",
    "processing_ms": "processing, ms",
}
"""Columns of tables 1 and 2, after language, pool, requests and connections."""

LITTLE = "N ÷ throughput, ms"
"""Column whose value the mean must nearly equal, in a closed loop of N connections (Little's law)."""

HEAD = ("language", "pool", "requests", "connections", *COLUMNS.values())

QUANTITIES = {
    "response_ms": "time of a request",
    "cpu_us": "processor time a request",
    "cpu_percent": "share of the processor, all cores free",
    "memory_mib": "memory",
    "connect_ms": "connecting",
    "processing_ms": "processing",
    "received_kb_s": "bytes received a second",
}
"""Quantity of a ratio."""


def sections(seen: Seen) -> tuple[Section, ...]:
    """All tables, as far as they were measured."""
    found: list[Section] = []
    if (cells := seen.of(TableJudged)) is not None:
        for number_, verb in enumerate(VERBS, 1):
            found += _tables(cells, verb, number_)
        found.append(Section("All cells, compared", ratio_table(cells.judged.values())))
    if (stress := seen.of(StressJudged)) is not None:
        found.append(Section("Stress test, as JMeter has it", stress_table(stress), ("stress",)))
    found.append(Section("What is wrong in the document's tables", "\n".join(f"- {each}" for each in faults())))
    return tuple(found)


def _tables(seen: TableJudged, verb: str, number_: int) -> Iterator[Section]:
    of = verb.upper()
    names = [f"{name}_{verb}" for name in ("response", "memory")]
    pinned = cell_table(seen, verb, pinned=True)
    yield Section(f"Table {number_}: {of}, server and load on a core each", pinned, tuple(names))
    yield Section(
        f"Table {number_}: {of}, all cores free", cell_table(seen, verb, pinned=False), (f"processor_{verb}",)
    )
    yield Section(f"Table {number_} of the document: {of}", original_table(verb))


def cell_table(seen: TableJudged, verb: str, pinned: bool) -> str:
    """Table with the document's columns, processor time a request, and the load's share of its core; means over
    blocks."""
    own = [cell for cell in seen.plan.cells if cell.setting["mix"] == verb and cell.pinned == pinned]
    lines = [
        (
            *_named(cell),
            *(_value(seen, cell, each) for each in COLUMNS),
            _little_ms(seen, cell),
            _value(seen, cell, "cpu_us"),
            _value(seen, cell, "client_percent") + LIMITED_MARK * seen.is_load_limited(cell),
            f"{seen.errors(cell):,}",
        )
        for cell in own
    ]
    head = (*HEAD, LITTLE, "CPU a request, µs", "load's CPU, %", "errors")
    blocks = len(seen.blocks)
    note = (
        f"Means over {blocks} {'block' if blocks == 1 else 'blocks'}; requests are of one block. CPU is of one core, "
        "memory of the machine's. A time ends when the server has closed the connection, as `ab`'s does. "
        f"The mean is under {LITTLE.removesuffix(', ms')} by up to N ÷ (2 × requests): in the end connections idle."
    )
    limited = any(seen.is_load_limited(cell) for cell in own)
    return Table(head, tuple(lines), notes=(note, *((LIMITED_NOTE,) * limited))).markdown


def original_table(verb: str) -> str:
    """Table as printed; ‡ marks a mean that breaks Little's law."""
    lines = [
        (
            each.language,
            str(each.pool),
            f"{original.REQUESTS:,}",
            f"{each.connections:,}",
            *(f"{getattr(each, name):g}" + _mark(each, name) for name in COLUMNS),
            number(original.cpu_us(each)),
        )
        for each in original.TABLES[verb]
    ]
    note = "Context: another machine. ‡ N connections × total ÷ requests is ten times this mean or more: a misprint."
    head = (*HEAD, "CPU a request, µs (computed)")
    return Table(
        head, tuple(lines), notes=(note,) * any(each.breaks_littles_law for each in original.TABLES[verb])
    ).markdown


def _mark(row: original.Row, name: str) -> str:
    return " ‡" if name == "response_ms" and row.breaks_littles_law else ""


def _named(cell: Cell) -> tuple[str, ...]:
    of = cell.setting
    return of.text("language"), of.text("workers"), f"{cell.requests:,}", f"{of.whole('connections'):,}"


def _little_ms(seen: TableJudged, cell: Cell) -> str:
    found = seen.estimate(cell, "throughput_hz")
    return NOTHING if found is None else number(1000 * cell.setting.whole("connections") / found.value)


def _value(seen: TableJudged, cell: Cell, quantity: str) -> str:
    found = seen.estimate(cell, quantity)
    return NOTHING if found is None else number(found.value)


def ratio_table(judged: Iterable[CellJudged]) -> str:
    """Table of the declared ratios, without those of single cells, which the card counts."""
    lines = [
        (
            each.ratio.title,
            QUANTITIES[each.ratio.quantity],
            (f"**{each.verdict.value}**" if each.verdict else "no verdict") + LIMITED_MARK * each.load_limited,
            *ratio_words(each.seen),
            f"{each.p_holm:.2g}",
            str(each.seen.n),
        )
        for each in judged
        if not each.ratio.family.startswith("each")
    ]
    note = (
        "Geometric means over all cells that differ in nothing else. LESS and MORE need an interval that excludes 1. "
        "They also need Holm's p of the sign-flip test over blocks under 0.05. "
        "EQUIVALENT is an interval inside 0.95 to 1.05. "
        "A time or a rate is never EQUIVALENT where the load took over 80 % of its core: †."
    )
    head = ("A ÷ B", "of", "Verdict", "Ratio", "95 % interval", "p (Holm)", "Blocks")
    return Table(head, tuple(lines), 3, notes=(note,)).markdown


def stress_table(seen: StressJudged) -> str:
    """Table with JMeter's columns and the final state of all keys, ours beside the document's."""
    lines = []
    for row in seen.rows:
        share = 100 * row.errors / row.samples if row.samples else 0.0
        rates = (row.throughput_hz, row.received_kb_s, row.sent_kb_s)
        language = row.server.text("language")
        printed = next((e for e in original.JMETER if (e.language, e.kind) == (language, row.kind)), None)
        theirs = (printed.throughput_hz, printed.received_kb_s, printed.sent_kb_s) if printed else ()
        lines.append(
            (
                language,
                row.kind,
                f"{row.samples:,}",
                f"{share:.2f}",
                *(number(each.value) for each in rates),
                " / ".join(f"{each:,.1f}" for each in theirs) or NOTHING,
            )
        )
    states = "; ".join(
        f"{server.text('language')} {seen.right[server]:,} right, {seen.wrong[server]:,} wrong" for server in seen.right
    )
    kinds, at = len(seen.plan.kinds), seen.plan.connections
    notes = (
        f"{kinds} kinds at once, {at:,} connections each, a new one for each request. The document's KB/s and rates "
        "are context: JMeter ran on the server's machine.",
        f"Final state of every key, read one by one afterwards: {states}.",
    )
    rates_head = "throughput, 1/s", "received, KB/s", "sent, KB/s"
    head = ("language", "label", "samples", "error, %", *rates_head, "the document's three")
    return Table(head, tuple(lines), 2, notes).markdown


def faults() -> Iterator[str]:
    """Faults that a program finds in the document's own numbers, a sentence each."""
    broken = original.impossible_means()
    told = "; ".join(f"{each.response_ms:g} for {each.little_ms:.3f} ms" for each in broken)
    yield f"{len(broken)} printed means break Little's law. All are Go's PUT at 100 connections: {told}."
    slower = original.rust_not_faster("put")
    cells = ", ".join(f"pool {rust.pool} at {rust.connections:,} connections" for rust, _ in slower)
    count = sum(1 for _ in original.pairs("put"))
    yield f"Rust is not faster in {len(slower)} of {count} PUT comparisons, by the totals. They are {cells}."
    for what, column in (("processor", "cpu_percent"), ("memory", "memory_percent")):
        lowered = [(verb, *case) for verb in VERBS for case in original.pool_lowers(column, verb)]
        cases = [f"{verb.upper()} of {language} at {at:,}" for verb, language, at in lowered]
        yield f"64 threads took no more {what} than 2 in {len(cases)} of 12 cases: {', '.join(cases)} connections."
    get, put = (original.go_connects_later(verb) for verb in VERBS)
    yield (
        f"Go connects later than Rust at 1,000 connections in {len(get)} of 6 pools of GET and {len(put)} of 6 of PUT. "
        "The text says that it connects sooner."
    )
    rust_rows, go_rows = original.JMETER[:4], original.JMETER[4:]
    ratios = [of_go.throughput_hz / of_rust.throughput_hz for of_rust, of_go in zip(rust_rows, go_rows, strict=True)]
    yield (
        f"JMeter has Go {min(ratios):.1f} to {max(ratios):.1f} times as fast as Rust; tables 1 and 2 have Rust faster. "
        "The document says of its JMeter run that it is no measure of speed."
    )
    yield "Its text says that the value is a float64; its Rust code has f32. Table 1 calls Go golang, table 2 go."
